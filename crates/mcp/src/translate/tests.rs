//! What becomes of a message between the eras.

use super::{Passage, on_subscription, request_members};
use crate::rpc::{Outcome, Raw};
use crate::version::Era;

const UP: Passage = Passage { client: Era::Legacy, upstream: Era::Modern, client_says: r#""k":1"# };
const DOWN: Passage = Passage { client: Era::Modern, upstream: Era::Legacy, client_says: "" };
const EQUAL: Passage = Passage { client: Era::Modern, upstream: Era::Modern, client_says: "" };

fn answer(passage: &Passage, method: &str, result: &str) -> String {
    match passage.answer(method, Outcome::Result(Raw::trusted(result.to_owned()))) {
        Outcome::Result(raw) => String::from_utf8_lossy(raw.as_bytes()).into_owned(),
        Outcome::Error(raw) => format!("error {}", String::from_utf8_lossy(raw.as_bytes())),
    }
}

#[test]
fn modern_server_is_told_in_every_request_who_asks() {
    assert_eq!(UP.request_meta(None).unwrap().unwrap(), r#"{"k":1}"#);
    assert_eq!(
        UP.request_meta(Some(r#"{"progressToken":7}"#)).unwrap().unwrap(),
        r#"{"k":1,"progressToken":7}"#
    );
    assert_eq!(
        request_members("{}", r#"{"name":"x"}"#, Some(r#""info""#)),
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x"},"io.modelcontextprotocol/logLevel":"info""#
    );
}

#[test]
fn legacy_server_sees_no_envelope() {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"t","io.modelcontextprotocol/clientCapabilities":{}}"#;
    assert_eq!(DOWN.request_meta(Some(meta)).unwrap().unwrap(), r#"{"traceparent":"t"}"#);
    assert_eq!(DOWN.request_meta(None).unwrap(), None);
    assert_eq!(EQUAL.request_meta(Some(meta)).unwrap(), None, "it stays as it is");
}

#[test]
fn results_of_legacy_servers_are_marked_as_final() {
    assert_eq!(answer(&DOWN, "tools/call", "{ }"), r#"{"resultType":"complete" }"#);
    assert_eq!(
        answer(&DOWN, "tools/call", r#"{"content":[]}"#),
        r#"{"resultType":"complete","content":[]}"#
    );
    assert_eq!(
        answer(&DOWN, "resources/read", r#"{"contents":[]}"#),
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}"#
    );
    assert_eq!(answer(&EQUAL, "tools/call", r#"{"x":1}"#), r#"{"x":1}"#);
    for odd in [r#""a{b""#, "[{}]", "7"] {
        assert_eq!(answer(&DOWN, "tools/call", odd), odd, "what is no object stays");
    }
}

#[test]
fn results_of_modern_servers_lose_what_only_their_era_knows() {
    assert_eq!(
        answer(&UP, "tools/call", r#"{"resultType":"complete","ttlMs":5,"content":[],"x":1e400}"#),
        r#"{"content":[],"x":1e400}"#
    );
    let refused = answer(&UP, "tools/call", r#"{"resultType":"input_required"}"#);
    assert!(refused.contains("the server answered with `input_required`"), "{refused}");
}

#[test]
fn errors_get_the_codes_of_the_era() {
    let error = |text: &str| {
        let outcome = DOWN.answer("resources/read", Outcome::Error(Raw::trusted(text.to_owned())));
        let Outcome::Error(error) = outcome else { panic!("{outcome:?}") };
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    };
    assert_eq!(
        error(r#"{"code":-32002,"message":"m","data":{"x":1}}"#),
        r#"{"code":-32602,"message":"m","data":{"x":1}}"#
    );
    assert_eq!(error(r#"{"code":7,"message":"m"}"#), r#"{"code":7,"message":"m"}"#);
    assert!(error(r#"{"code":-32042,"message":"m"}"#).starts_with(r#"{"code":-32603,"#));
}

#[test]
fn notification_of_a_subscription_names_it() {
    let frame = on_subscription("notifications/x", &Raw::trusted("\"s\""), Some(r#""uri":"u""#));
    assert_eq!(
        String::from_utf8_lossy(&frame),
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"uri":"u","_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}"#
    );
}
