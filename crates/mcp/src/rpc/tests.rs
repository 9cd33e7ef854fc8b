//! Which frames are messages, and which rejection the others get.

use bytes::Bytes;

use super::{Message, Outcome, parse};

#[track_caller]
fn check(frame: &str, expected: &str) {
    let text = |raw: &super::Raw| String::from_utf8(raw.as_bytes().to_vec()).unwrap();
    let params = |params: Option<super::Raw>| params.as_ref().map_or("-".into(), text);
    let got = match parse(&Bytes::copy_from_slice(frame.as_bytes())) {
        Ok(Message::Request { id, method, params: p }) => {
            format!("request {} {method} {}", text(&id), params(p))
        }
        Ok(Message::Notification { method, params: p }) => format!("notice {method} {}", params(p)),
        Ok(Message::Response { id, outcome: Outcome::Result(raw) }) => {
            format!("result {} {}", text(&id), text(&raw))
        }
        Ok(Message::Response { id, outcome: Outcome::Error(raw) }) => {
            format!("error {} {}", text(&id), text(&raw))
        }
        Err(rejection) => {
            let id = rejection.id.as_ref().map_or("-".into(), text);
            format!("{} {id} {}", rejection.code.0, rejection.reason)
        }
    };
    assert_eq!(got, expected);
}

#[test]
fn ids_and_params_keep_their_text() {
    check(
        r#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"x","params":{"b":1,"a":1e400}}"#,
        r#"request 12345678901234567890 x {"b":1,"a":1e400}"#,
    );
    check(r#"{"id":"1\u0041","method":"ping","jsonrpc":"2.0"}"#, r#"request "1\u0041" ping -"#);
}

#[test]
fn message_without_id_is_a_notification() {
    check(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notice notifications/x -");
}

#[test]
fn responses_carry_result_or_error() {
    check(r#"{"result":{"a":[]},"jsonrpc":"2.0","id":1}"#, r#"result 1 {"a":[]}"#);
    check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, r#"error 1 {"code":1}"#);
    check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error null {}");
    check(
        r#"{"jsonrpc":"2.0","id":1,"error":{},"result":{}}"#,
        "-32600 1 a response has either `result` or `error`",
    );
}

#[test]
fn null_and_structured_ids_are_refused() {
    for id in ["null", "true", "{}", "[1]"] {
        check(
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#),
            "-32600 - member `id` must be a string or a number",
        );
    }
}

#[test]
fn batch_is_refused_by_name() {
    check(
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        "-32600 - batches are part of revision 2025-03-26 alone, with 1 to 100 messages; send one message a time",
    );
}

#[test]
fn members_spelled_otherwise_or_twice_are_refused() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#,
        "-32600 - member `Method` must be spelled `method`",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
        "-32600 - member `method` is there twice",
    );
}

#[test]
fn text_that_is_not_json_is_a_parse_error() {
    check("{oops", "-32700 - not valid JSON: key must be a string at line 1 column 2");
    check(&"[".repeat(100_000), "-32700 - nested deeper than 128 levels");
}

#[test]
fn missing_and_wrong_members_are_named() {
    check(r#"{"jsonrpc":"2.0","id":1}"#, "-32600 1 member `method` is missing");
    check(r#"{"id":1,"method":"x"}"#, "-32600 1 member `jsonrpc` must be \"2.0\"");
    check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "-32600 1 member `method` must be a string");
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":7}"#,
        "-32600 1 member `params` must be an object",
    );
}
