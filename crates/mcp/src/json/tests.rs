//! What the looking-into finds and refuses.

use super::{Fault, depth_is_bounded, few_elements, members, quote, span, splice, string};

fn look(text: &str) -> Result<[Option<&str>; 2], Fault> {
    members(text.as_bytes(), ["name", "_meta"])
}

#[test]
fn members_come_as_they_were_written() {
    let found = look(r#"{"x":1e400,"name": "a\u0062" ,"_meta":{"n":12345678901234567890}}"#);
    assert_eq!(found, Ok([Some(r#""a\u0062""#), Some(r#"{"n":12345678901234567890}"#)]));
}

#[test]
fn escaped_member_name_is_the_same_member() {
    assert_eq!(look(r#"{"n\u0061me":1}"#), Ok([Some("1"), None]));
}

#[test]
fn duplicate_member_is_refused() {
    assert_eq!(look(r#"{"name":1,"name":2}"#), Err(Fault::Duplicate("name")));
}

#[test]
fn other_spelling_is_refused() {
    let fault = Fault::Spelling { found: "NAME".into(), wanted: "name" };
    assert_eq!(look(r#"{"NAME":1}"#), Err(fault));
}

#[test]
fn array_is_no_object() {
    assert_eq!(look(r#"["a",{}]"#), Err(Fault::NotAnObject));
    assert_eq!(look("7"), Err(Fault::NotAnObject));
}

#[test]
fn broken_text_is_a_syntax_fault_whatever_else_is_wrong() {
    for text in ["", " ", "{", r#"{"name":1,"name":2"#, r#"{"name":1}x"#, "\u{feff}{}", "[1"] {
        assert!(matches!(look(text), Err(Fault::Syntax(_))), "{text:?}");
    }
    assert!(matches!(members(b"{\"a\":\"\xff\xfe\"}", ["a"]), Err(Fault::Syntax(_))));
}

#[test]
fn splices_replace_spans_and_nothing_else() {
    let text = br#"{"a": 1, "name":"x","z":[ ]}"#;
    let [name] = members(text, ["name"]).unwrap();
    let edited = splice(text, &[(span(text, name.unwrap()), b"\"ns_x\"")]);
    assert_eq!(edited, br#"{"a": 1, "name":"ns_x","z":[ ]}"#);
}

#[test]
fn depth_counts_brackets_outside_of_strings() {
    let nested = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    assert!(depth_is_bounded(&nested(128)));
    assert!(!depth_is_bounded(&nested(129)));
    assert!(!depth_is_bounded(&nested(100_000)));
    assert!(depth_is_bounded(format!("\"{}\\\"[\"", "[".repeat(500)).as_bytes()));
}

#[test]
fn strings_are_read_and_written() {
    assert_eq!(string(r#""a\nb""#).unwrap(), "a\nb");
    assert_eq!(string("1"), None);
    assert_eq!(quote("a\"b\u{1b}"), r#""a\"b\u001b""#);
}

#[test]
fn array_is_read_up_to_a_number_of_elements() {
    assert_eq!(few_elements("[1, {}]", 2).unwrap(), ["1", "{}"]);
    for refused in ["[1,2,3]", "[1", "[1] 2", "{}"] {
        assert!(few_elements(refused, 2).is_err(), "{refused}");
    }
}
