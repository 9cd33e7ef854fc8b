//! What becomes of a message between the eras.

use super::{Passage, on_subscription, request_members};
use crate::rpc::{Outcome, Raw};
use crate::version::{Era, Revision};

const UP: Passage =
    Passage { client: Revision::NEWEST_LEGACY, upstream: Era::Modern, client_says: r#""k":1"# };
const DOWN: Passage =
    Passage { client: Revision::NEWEST_MODERN, upstream: Era::Legacy, client_says: "" };
const EQUAL: Passage =
    Passage { client: Revision::NEWEST_MODERN, upstream: Era::Modern, client_says: "" };

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
fn results_of_modern_servers_lose_the_meta_of_their_era() {
    let info = r#""io.modelcontextprotocol/serverInfo":{"name":"s"}"#;
    let result =
        |meta: &str| format!(r#"{{"resultType":"complete","content":[],"_meta":{{{meta}}}}}"#);
    let told = |meta: &str| answer(&UP, "tools/call", &result(meta));
    assert_eq!(told(info), r#"{"content":[]}"#);
    assert_eq!(told(&format!(r#""a":1,{info}"#)), r#"{"content":[],"_meta":{"a":1}}"#);
    assert_eq!(told(r#""a": 1"#), r#"{"content":[],"_meta":{"a": 1}}"#);
    assert_eq!(answer(&EQUAL, "tools/call", &result(info)), result(info));
}

/// What a legacy server says to a client of a revision.
fn told(revision: &str, method: &str, result: &str) -> String {
    let client = Revision::parse(revision).unwrap();
    answer(&Passage { client, upstream: Era::Legacy, client_says: "" }, method, result)
}

#[test]
fn content_that_a_revision_does_not_know_becomes_text() {
    let text = r#"{"type":"text","text":"a"}"#;
    let audio = r#"{"type": "audio","data":"AAAA","mimeType":"audio/wav"}"#;
    let link = r#"{"type":"resource_link","uri":"a://b","name":"b","description":"it","mimeType":"text/plain"}"#;
    let result = format!(r#"{{"content":[{text}, {audio},{link}],"x":1.0}}"#);
    let no_audio = r#"{"type":"text","text":"Audio (audio/wav), left out: protocol revision 2024-11-05 of this client has none"}"#;
    let no_link = r#"{"type":"text","text":"Resource `b` at a://b (text/plain): it"}"#;
    assert_eq!(
        told("2024-11-05", "tools/call", &result),
        format!(r#"{{"content":[{text}, {no_audio},{no_link}],"x":1.0}}"#)
    );
    assert_eq!(
        told("2025-03-26", "tools/call", &result),
        format!(r#"{{"content":[{text}, {audio},{no_link}],"x":1.0}}"#)
    );
    for newer in ["2025-06-18", "2025-11-25"] {
        assert_eq!(told(newer, "tools/call", &result), result);
    }
    let prompt = |block: &str| format!(r#"{{"messages":[{{"role":"user","content":{block}}}]}}"#);
    assert_eq!(told("2024-11-05", "prompts/get", &prompt(audio)), prompt(no_audio));
    assert_eq!(told("2025-03-26", "prompts/get", &prompt(audio)), prompt(audio));
    // The words alone are no block.
    let talk =
        r#"{"content":[{"type":"text","text":"\"audio\""}],"structuredContent":{"audio":"audio"}}"#;
    assert_eq!(told("2024-11-05", "tools/call", talk), talk);
}

#[test]
fn structured_content_that_is_no_object_is_left_out_for_legacy_clients() {
    let text = r#"{"type":"text","text":"[1]"}"#;
    let result = format!(r#"{{"content":[{text}],"structuredContent" : [1],"isError":false}}"#);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let left = format!(r#"{{"content":[{text}],"isError":false}}"#);
        assert_eq!(told(revision, "tools/call", &result), left, "{revision}");
        for bare in [r#"{"structuredContent":[1]}"#, r#"{"content":[ ],"structuredContent":[1]}"#] {
            assert_eq!(told(revision, "tools/call", bare), format!(r#"{{"content":[{text}]}}"#));
        }
    }
    assert_eq!(answer(&EQUAL, "tools/call", &result), result, "the modern era has it");
    let up = format!(r#"{{"resultType":"complete","content":[{text}],"structuredContent":7}}"#);
    assert_eq!(answer(&UP, "tools/call", &up), format!(r#"{{"content":[{text}]}}"#));
    for fine in
        [r#"{"structuredContent": {"structuredContent":[1]}}"#, r#"{"x":{"structuredContent":[]}}"#]
    {
        assert_eq!(told("2025-06-18", "tools/call", fine), fine);
    }
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
