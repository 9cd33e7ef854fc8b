//! What the looking-into finds and refuses.

use serde::de::IgnoredAny;

use super::{Fault, entries, few_elements, members, quote, span, splice, string};

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
    assert_eq!(members(&nested(128), ["a"]), Err(Fault::NotAnObject));
    for levels in [129, 100_000] {
        assert_eq!(members(&nested(levels), ["a"]), Err(Fault::TooDeep));
    }
    let inside = |levels| format!("{{\"a\":{}}}", String::from_utf8(nested(levels)).unwrap());
    assert!(members(inside(127).as_bytes(), ["a"]).is_ok());
    assert_eq!(members(inside(128).as_bytes(), ["a"]), Err(Fault::TooDeep));
    assert!(string(&format!("\"{}\\\"[\"", "[".repeat(500))).is_some());
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

/// What is JSON here is JSON there, and the other way round, with the same members.
#[test]
fn scanner_agrees_with_a_parser_on_damaged_texts() {
    const TEXTS: [&str; 4] = [
        r#"{"jsonrpc":"2.0","id":-12.5e+3,"params":{"a":[true,false,null,{}],"b":"x\u00e9\n\\"}}"#,
        r#" { "a" : [ [ ] , [ 0 , 1.0E-7 ] , "\"" ] , "\u0061b" : "é😀 long enough" } "#,
        r#"{"text":"0123456789abcdef0123456789abcdef","n":[-0,0.1,10,1e400],"o":{"k":{"k":{}}}}"#,
        r#"[{"a":1},{"b":[]},"",-1]"#,
    ];
    const BYTES: &[u8] = b"{}[]\",:\\ \n\x01\x7f\xc3\xa90-+.eEtfnu";
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % below
    };
    let (mut valid, mut broken) = (0, 0);
    for round in 0..40_000 {
        let mut text = TEXTS[round % TEXTS.len()].as_bytes().to_vec();
        for _ in 0..next(3) {
            let (at, byte) = (next(text.len()), BYTES[next(BYTES.len())]);
            match next(3) {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => _ = text.remove(at),
            }
        }
        let is_json = std::str::from_utf8(&text).is_ok()
            && serde_json::from_slice::<IgnoredAny>(&text).is_ok();
        let is_taken = !matches!(members(&text, ["a"]), Err(Fault::Syntax(_)));
        assert_eq!(is_taken, is_json, "{}", String::from_utf8_lossy(&text));
        *if is_json { &mut valid } else { &mut broken } += 1;
        let parsed: Result<serde_json::Map<String, serde_json::Value>, _> =
            serde_json::from_slice(&text);
        if let Ok(object) = parsed {
            let found = entries(std::str::from_utf8(&text).unwrap()).unwrap();
            // Of two members of one name the parser keeps the last.
            for (name, value) in &object {
                let (_, raw) = found.iter().rfind(|(found, _)| found == name).unwrap();
                assert_eq!(serde_json::from_str::<serde_json::Value>(raw).unwrap(), *value);
            }
        }
    }
    assert!(valid > 10_000 && broken > 10_000, "{valid} {broken}");
}

#[test]
fn blanks_between_parts_are_left_out() {
    let text = "{ \"a b\" : [ 1 ,\t\"c \\\" d\\\\\" ],\r\n\"e\":null }";
    assert_eq!(super::compact(text.as_bytes()), "{\"a b\":[1,\"c \\\" d\\\\\"],\"e\":null}");
}
