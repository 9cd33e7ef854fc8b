//! Resources that a result names: links to them, and those that it holds.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json;
use crate::rpc::Raw;

/// The start of every such block's mark: `"resource"` or `"resource_link"`. Made once: many results are searched.
static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"resource"));

/// The URIs that the result of a tool or a prompt names, at most so many.
pub fn uris<'a>(result: &'a Raw, max: usize) -> Vec<Cow<'a, str>> {
    if MARK.find(result.as_bytes()).is_none() {
        return Vec::new();
    }
    let [content, messages] = result.members(["content", "messages"]).unwrap_or_default();
    let elements =
        |array: Option<&'a str>| json::elements(array.unwrap_or("[]")).unwrap_or_default();
    let of_message = |message: &'a str| json::members(message.as_bytes(), ["content"]).ok()?[0];
    let blocks = elements(content).into_iter();
    let blocks = blocks.chain(elements(messages).into_iter().filter_map(of_message));
    blocks.filter_map(uri).take(max).collect()
}

/// The URI of a block that links to a resource or holds one.
fn uri(block: &str) -> Option<Cow<'_, str>> {
    let [kind, uri, resource] =
        json::members(block.as_bytes(), ["type", "uri", "resource"]).ok()?;
    let uri = match json::string(kind?)?.as_ref() {
        "resource_link" => uri,
        "resource" => json::members(resource?.as_bytes(), ["uri"]).ok()?[0],
        _ => None,
    };
    json::string(uri?)
}

#[cfg(test)]
mod tests {
    use super::uris;
    use crate::rpc::Raw;

    #[test]
    fn links_and_embedded_resources_are_found() {
        let link = r#"{"type":"resource_link","uri":"a://1","name":"x"}"#;
        let held = r#"{"type":"resource","resource":{"uri":"a://\u0032","text":""}}"#;
        let text = r#"{"type":"text","text":"resource"}"#;
        let of = |result: String| {
            let result = Raw::trusted(result);
            uris(&result, 2).into_iter().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(of(format!(r#"{{"content":[{text},{link},{held}]}}"#)), ["a://1", "a://2"]);
        assert_eq!(of(format!(r#"{{"content":[{link},{link},{held}]}}"#)), ["a://1", "a://1"]);
        assert_eq!(
            of(format!(r#"{{"messages":[{{"role":"user","content":{held}}}]}}"#)),
            ["a://2"]
        );
        assert_eq!(of(format!(r#"{{"content":[{text}],"x":"a://1"}}"#)), [""; 0]);
    }
}
