//! How values travel in header fields, and which annotations a tool may have.

use super::{decode, encode, matches, mirror, param_headers};

#[track_caller]
fn check_field(value: &str, field: &str) {
    assert_eq!(encode(value), field);
    assert_eq!(decode(field).as_deref(), Some(value));
}

#[test]
fn value_fit_for_a_header_is_sent_as_it_is() {
    check_field("us-west1", "us-west1");
    check_field("a b, c: \"d\"", "a b, c: \"d\"");
    check_field("=?base64?", "=?base64?");
    check_field("", "");
}

#[test]
fn value_unfit_for_a_header_is_encoded() {
    check_field("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
    check_field(" padded ", "=?base64?IHBhZGRlZCA=?=");
    check_field("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
    check_field("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
}

#[test]
fn field_that_cannot_be_decoded_says_nothing() {
    for field in ["=?base64?a?=", "=?base64?/w==?=", "=?base64?SGVs bG8=?=", "caf\u{e9}", "a\u{1}"]
    {
        assert_eq!(decode(field), None, "{field}");
    }
}

/// The fields that a schema asks for, or why it must not.
#[track_caller]
fn check(schema: &str, expected: &str) {
    let found = match param_headers(schema) {
        Ok(headers) => {
            let show = |header: &super::ParamHeader| {
                format!("{} <- {}", header.name, header.path.join("."))
            };
            headers.iter().map(show).collect::<Vec<_>>().join("\n")
        }
        Err(reason) => reason,
    };
    assert_eq!(found, expected);
}

#[test]
fn annotations_are_found_along_properties_only() {
    check(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, "");
    check(
        r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"},
            "o":{"properties":{"n":{"type":["integer","null"],"x-mcp-header":"N"}}},
            "b":{"type":"boolean","x-mcp-\u0068eader":"B"}}}"#,
        "Mcp-Param-Region <- r\nMcp-Param-N <- o.n\nMcp-Param-B <- b",
    );
    // A property or a value may well have this name.
    check(r#"{"properties":{"x-mcp-header":{"type":"string","default":{"x-mcp-header":1}}}}"#, "");
    let below = |keyword: &str| {
        format!(
            "`x-mcp-header` stands below `{keyword}` in its schema, where no argument is certain"
        )
    };
    check(
        r#"{"properties":{"l":{"items":{"type":"string","x-mcp-header":"A"}}}}"#,
        &below("items"),
    );
    check(
        r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        &below("anyOf"),
    );
    check(r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#, &below("$defs"));
    check(r#"{"x-mcp-header":"A"}"#, "`x-mcp-header` stands at the top of its schema");
}

#[test]
fn annotation_needs_a_plain_type_and_an_own_name() {
    let property = |rest: &str| format!(r#"{{"properties":{{"a":{{{rest}}}}}}}"#);
    let wrong_type = "`x-mcp-header` of its argument `a` needs the type integer, string or boolean";
    for kind in [r#""type":"number""#, r#""type":"object""#, r#""type":["string","integer"]"#] {
        check(&property(&format!(r#"{kind},"x-mcp-header":"A""#)), wrong_type);
    }
    check(&property(r#""x-mcp-header":"A""#), wrong_type);
    let wrong_name = "`x-mcp-header` of its argument `a` is no name of a header";
    for name in [r#""""#, "7", r#""a b""#, r#""a:b""#, r#""a\r\nb""#, r#""ä""#] {
        check(&property(&format!(r#""type":"string","x-mcp-header":{name}"#)), wrong_name);
    }
    check(
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},
            "b":{"type":"string","x-mcp-header":"x"}}}"#,
        "two `x-mcp-header` in its schema say `x`",
    );
}

#[test]
fn arguments_are_mirrored_where_they_are_given() {
    let schema = r#"{"properties":{
        "s":{"type":"string","x-mcp-header":"S"}, "i":{"type":"integer","x-mcp-header":"I"},
        "b":{"type":"boolean","x-mcp-header":"B"},
        "o":{"properties":{"x":{"type":"string","x-mcp-header":"X"}}}}}"#;
    let headers = param_headers(schema).unwrap();
    let check = |arguments: &str, expected: &str| {
        let found = mirror(&headers, arguments);
        let lines = found.iter().map(|(name, value)| format!("{name}: {value}"));
        assert_eq!(lines.collect::<Vec<_>>().join(", "), expected);
    };
    check(
        r#"{"s":"a\u0062","i":-7,"b":false}"#,
        "Mcp-Param-S: ab, Mcp-Param-I: -7, Mcp-Param-B: false",
    );
    check(r#"{"s":null,"i":42.0,"o":{"x":"y"}}"#, "Mcp-Param-I: 42, Mcp-Param-X: y");
    check(r#"{"s":{},"o":"x"}"#, "");
    check("{}", "");
}

#[test]
fn field_matches_the_same_value_in_the_body() {
    assert!(matches("us", r#""us""#));
    assert!(matches("=?base64?w6k=?=", r#""é""#));
    assert!(matches("42.0", "42"));
    assert!(matches("42", "4.2e1"));
    assert!(matches("true", "true"));
    assert!(!matches("us", r#""US""#));
    assert!(!matches("42.0", r#""42""#));
    assert!(!matches("9007199254740993", "9007199254740992"));
    assert!(!matches("true", "false"));
    assert!(!matches("=?base64?!?=", r#""x""#));
    assert!(!matches("{}", "{}"));
}
