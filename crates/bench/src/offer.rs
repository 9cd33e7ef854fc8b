//! What the upstreams of the benchmark offer, and what they answer, whatever the wire.
//!
//! They are as fast as can be: a slow upstream would hide the gateway in front of it.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::limits::BIG_BYTES_MAX;

/// What `echo` and `big` put behind the text that they were given.
pub const MARKER: &str = " came back";

/// A line of a big result; its end is escaped in JSON, as in most real texts.
const LINE: &str =
    r"The quick brown fox jumps over the lazy dog, and then it goes back the same way.\n";

/// The tools of one upstream.
pub struct Offer {
    /// The array of definitions, as text.
    tools: String,
    filler: String,
}

/// What was asked, and the answer to it; a notification has none.
pub struct Answer {
    pub method: &'static str,
    pub frame: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Cow<'m, str>,
    #[serde(borrow)]
    params: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Call<'m> {
    #[serde(borrow)]
    name: Cow<'m, str>,
    #[serde(borrow, default)]
    arguments: Arguments<'m>,
}

#[derive(Default, Deserialize)]
struct Arguments<'m> {
    #[serde(borrow, default)]
    text: Option<&'m RawValue>,
    #[serde(default)]
    bytes: usize,
}

impl Offer {
    /// So many tools: `echo`, `big`, and others that do the same as `echo`.
    pub fn new(tools: usize) -> Offer {
        let definitions: Vec<String> = (0..tools).map(definition).collect();
        Offer { tools: format!("[{}]", definitions.join(",")), filler: String::new() }
    }

    /// Answers one message.
    pub fn answer(&mut self, frame: &[u8]) -> Answer {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(frame) else {
            let error = r#"{"code":-32700,"message":"this can't be read"}"#;
            let frame = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
            return Answer { method: "unreadable", frame: Some(frame.into_bytes()) };
        };
        let method = known(&message.method);
        let Some(id) = message.id else { return Answer { method, frame: None } };
        let is_modern = memmem::find(frame, b"io.modelcontextprotocol/protocolVersion").is_some();
        let id = id.get();
        let frame = match method {
            "tools/call" => self.call(id, message.params, is_modern),
            "tools/list" => self.list(id, is_modern),
            _ => other(id, method),
        };
        Answer { method, frame: Some(frame) }
    }

    fn call(&mut self, id: &str, params: Option<&RawValue>, is_modern: bool) -> Vec<u8> {
        let call = params.and_then(|params| serde_json::from_str::<Call<'_>>(params.get()).ok());
        let Some(call) = call else {
            return refusal(id, -32602, "the call can't be read");
        };
        let kind = if is_modern { r#""resultType":"complete","# } else { "" };
        let text = call.arguments.text.map_or("", |text| text.get().trim_matches('"'));
        let bytes = if call.name == "big" { call.arguments.bytes.min(BIG_BYTES_MAX) } else { 0 };
        let lines = bytes.div_ceil(LINE.len());
        if self.filler.len() < lines * LINE.len() {
            self.filler = LINE.repeat(lines);
        }
        let filler = &self.filler[..lines * LINE.len()];
        let mut frame = Vec::with_capacity(filler.len() + text.len() + 160);
        for part in [
            r#"{"jsonrpc":"2.0","id":"#,
            id,
            r#","result":{"#,
            kind,
            r#""content":[{"type":"text","text":""#,
            filler,
            text,
            MARKER,
            r#""}]}}"#,
        ] {
            frame.extend_from_slice(part.as_bytes());
        }
        frame
    }

    fn list(&self, id: &str, is_modern: bool) -> Vec<u8> {
        let hints = r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#;
        let hints = if is_modern { hints } else { "" };
        let tools = &self.tools;
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{hints}"tools":{tools}}}}}"#).into_bytes()
    }
}

/// The name of a tool by its place in the list.
pub fn tool_name(place: usize) -> String {
    match place {
        0 => "echo".to_owned(),
        1 => "big".to_owned(),
        _ => format!("tool_{place}"),
    }
}

fn definition(place: usize) -> String {
    let name = tool_name(place);
    let description = "Gives back the text that it was given, with a few words behind it, so that \
        whoever asked can tell whether the answer is the one to the question.";
    format!(
        r#"{{"name":"{name}","title":"Tool {place}","description":"{description}","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to give back"}},"bytes":{{"type":"integer","minimum":0,"description":"The size of the result, for the tool `big`"}}}}}},"annotations":{{"readOnlyHint":true}}}}"#
    )
}

fn other(id: &str, method: &str) -> Vec<u8> {
    let info = r#"{"name":"bench","version":"1"}"#;
    let result = match method {
        "initialize" => format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{info}}}"#
        ),
        "server/discover" => format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"_meta":{{"io.modelcontextprotocol/serverInfo":{info}}}}}"#
        ),
        "ping" => "{}".to_owned(),
        _ => return refusal(id, -32601, "no such method"),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
}

fn refusal(id: &str, code: i32, message: &str) -> Vec<u8> {
    let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}

/// The methods that are counted by their name.
fn known(method: &str) -> &'static str {
    const METHODS: [&str; 6] = [
        "tools/call",
        "tools/list",
        "initialize",
        "notifications/initialized",
        "server/discover",
        "ping",
    ];
    METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::Offer;

    fn answer(frame: &str) -> serde_json::Value {
        let answer = Offer::new(3).answer(frame.as_bytes());
        serde_json::from_slice(&answer.frame.unwrap()).unwrap()
    }

    #[test]
    fn echo_gives_back_its_text_with_the_marker() {
        let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"n7"}}}"#;
        let answer = answer(call);
        assert_eq!(answer["id"], "a");
        assert_eq!(answer["result"]["content"][0]["text"], "n7 came back");
        assert_eq!(answer["result"]["resultType"], serde_json::Value::Null);
    }

    #[test]
    fn big_result_has_the_size_that_was_asked_for_and_ends_with_the_marker() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"text":"n7","bytes":10000}}}"#;
        let frame = Offer::new(2).answer(call.as_bytes()).frame.unwrap();
        assert!((10_000..10_400).contains(&frame.len()), "{}", frame.len());
        let answer: serde_json::Value = serde_json::from_slice(&frame).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("\nn7 came back"));
    }

    #[test]
    fn list_has_as_many_tools_as_were_wanted() {
        let answer = answer(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let names = answer["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["echo", "big", "tool_2"]);
    }

    #[test]
    fn notification_has_no_answer_and_is_counted() {
        let answer = Offer::new(0).answer(br#"{"method":"notifications/initialized"}"#);
        assert_eq!(answer.method, "notifications/initialized");
        assert!(answer.frame.is_none());
    }
}
