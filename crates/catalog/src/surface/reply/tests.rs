//! Where definitions stand in a reply, and how much of them.

use mcp::items::Kind;
use serde_json::Value;

use super::{Definitions, result};
use crate::profile::Reads;
use crate::testing::view;
use crate::tokens::estimate;

const SAID: &str = r#"{"success":true,"result":"on","error":null}"#;

/// Texts and structure of a reply about all tools of some upstreams.
fn reply(upstreams: &str, reads: Reads) -> (Vec<Value>, Value) {
    let view = view(upstreams, &[]);
    let definitions = Definitions::of(&view, view.items(Kind::Tool));
    let result: Value = serde_json::from_str(&result(SAID, definitions.as_ref(), reads)).unwrap();
    let texts = result["content"].as_array().unwrap().iter();
    let texts = texts.map(|block| serde_json::from_str(block["text"].as_str().unwrap()).unwrap());
    (texts.collect(), result["structuredContent"].clone())
}

#[test]
fn definitions_stand_in_each_part_that_a_model_may_get() {
    let said: Value = serde_json::from_str(SAID).unwrap();
    let (texts, structure) = reply("git: log", Reads::Everything);
    assert_eq!(texts[0], said, "the confirmation is short");
    assert_eq!(texts[1]["tools"][0]["name"], "git_log");
    assert_eq!(structure["activated"][0]["name"], "git_log");
    assert!(structure["activated"][0]["inputSchema"].is_object());
    assert_eq!(structure["result"], "on");

    let (texts, _) = reply("git: log", Reads::FirstBlock);
    assert_eq!(texts[0]["activated"][0]["name"], "git_log");
    let (texts, structure) = reply("git: log", Reads::Both);
    assert_eq!((texts.len(), structure), (2, said), "nothing is said twice");
}

#[test]
fn many_definitions_are_cut_to_a_line_each_and_then_counted() {
    let names: Vec<_> = (0..2_000).map(|at| format!("tool{at}")).collect();
    let (texts, structure) = reply(&format!("git: {}", names.join(" ")), Reads::Everything);
    let whole = texts[1]["tools"].as_array().unwrap().len();
    let lines = texts[1]["more"].as_array().unwrap().len();
    assert!(whole > 100 && lines > 50, "{whole} {lines}");
    assert_eq!(structure["activated"].as_array().unwrap().len(), whole + lines);
    let note = structure["note"].as_str().unwrap();
    let left = 2_000 - whole;
    assert!(note.contains(&format!("definitions of {left} have no room")), "{note}");
    assert!(note.contains(&format!("{} of them not even that", left - lines)), "{note}");
    for part in [&texts[1], &structure] {
        assert!(estimate(part.to_string().as_bytes()) < 11_000);
    }
}
