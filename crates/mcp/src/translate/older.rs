//! Results for clients of revisions that do not know all of their content.
//!
//! Old client libraries reject the whole result for one block of a kind that they do not know. Such a block becomes
//! text, and structured content that is no object is left out. What a revision knows stays byte for byte.

use std::sync::LazyLock;

use memchr::memmem;
use memchr::memmem::Finder;

use crate::json;
use crate::rpc::Raw;
use crate::version::Revision;

/// Made once: every result is searched.
static STRUCTURE: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new(b"\"structuredContent\""));

/// A result as a client of this revision can read it.
pub fn downgraded(method: &str, result: Raw, revision: Revision) -> Raw {
    let edited = match method {
        "tools/call" | "tasks/result" => without_odd_structure(&result, revision).map_or_else(
            || with_known_blocks(&result, revision),
            |raw| Some(with_known_blocks(&raw, revision).unwrap_or(raw)),
        ),
        "prompts/get" => with_known_messages(&result, revision),
        _ => None,
    };
    edited.unwrap_or(result)
}

/// Whether a result may hold blocks that the revision does not know; false for most at the price of a search.
fn may_have_unknown_blocks(result: &[u8], revision: Revision) -> bool {
    let has = |kind: &[u8]| memmem::find(result, kind).is_some();
    revision < Revision::V2025_06_18 && has(b"\"resource_link\"")
        || revision < Revision::V2025_03_26 && has(b"\"audio\"")
}

/// The same result without structured content that is no object; `None` if there is none such.
fn without_odd_structure(result: &Raw, revision: Revision) -> Option<Raw> {
    let bytes = result.as_bytes();
    if revision >= Revision::V2026_07_28 || !has_odd_structure(bytes) {
        return None;
    }
    let members = json::entries(std::str::from_utf8(bytes).ok()?).ok()?;
    let structure = members.iter().find(|(name, _)| name == "structuredContent")?.1;
    if structure.starts_with('{') {
        return None;
    }
    let kept = members.iter().filter(|(name, value)| {
        name != "structuredContent" && (name != "content" || !is_empty(value))
    });
    let mut kept: Vec<_> =
        kept.map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    if members.iter().all(|(name, value)| name != "content" || is_empty(value)) {
        // Nothing else would reach the client.
        kept.push(format!(r#""content":[{}]"#, text_block(structure)));
    }
    Some(Raw::trusted(format!("{{{}}}", kept.join(","))))
}

fn is_empty(array: &str) -> bool {
    json::elements(array).is_ok_and(|elements| elements.is_empty())
}

/// Whether structured content of some kind other than an object stands anywhere.
fn has_odd_structure(bytes: &[u8]) -> bool {
    let begins_object = |at: usize| {
        let after = bytes[at + STRUCTURE.needle().len()..].trim_ascii_start();
        let value = after.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.starts_with(b"{"))
    };
    STRUCTURE.find_iter(bytes).any(|at| !begins_object(at))
}

/// The result of a tool with text for blocks that the revision does not know.
fn with_known_blocks(result: &Raw, revision: Revision) -> Option<Raw> {
    if !may_have_unknown_blocks(result.as_bytes(), revision) {
        return None;
    }
    let [content] = result.members(["content"]).ok()?;
    let edits = json::elements(content?).ok()?;
    let edits = edits.into_iter().filter_map(|block| Some((block, stand_in(block, revision)?)));
    spliced(result, &edits.collect::<Vec<_>>())
}

/// The messages of a prompt with text for blocks that the revision does not know.
fn with_known_messages(result: &Raw, revision: Revision) -> Option<Raw> {
    if !may_have_unknown_blocks(result.as_bytes(), revision) {
        return None;
    }
    let [messages] = result.members(["messages"]).ok()?;
    let mut edits = Vec::new();
    for message in json::elements(messages?).ok()? {
        let [block] = json::members(message.as_bytes(), ["content"]).ok()?;
        if let Some((block, text)) =
            block.and_then(|block| Some((block, stand_in(block, revision)?)))
        {
            edits.push((block, text));
        }
    }
    spliced(result, &edits)
}

fn spliced(result: &Raw, edits: &[(&str, String)]) -> Option<Raw> {
    let bytes = result.as_bytes();
    let edits: Vec<_> =
        edits.iter().map(|(block, text)| (json::span(bytes, block), text.as_bytes())).collect();
    (!edits.is_empty()).then(|| Raw::trusted(json::splice(bytes, &edits)))
}

/// Text in place of a block; `None` if the revision knows its kind.
fn stand_in(block: &str, revision: Revision) -> Option<String> {
    let wanted = ["type", "uri", "name", "description", "mimeType"];
    let [kind, uri, name, description, mime] = json::members(block.as_bytes(), wanted).ok()?;
    let said = |text: Option<&str>| text.and_then(json::string).unwrap_or_default().into_owned();
    let mime = said(mime);
    let mime = if mime.is_empty() { mime } else { format!(" ({mime})") };
    let text = match json::string(kind?)?.as_ref() {
        "resource_link" if revision < Revision::V2025_06_18 => {
            let description = said(description);
            let description =
                if description.is_empty() { description } else { format!(": {description}") };
            format!("Resource `{}` at {}{mime}{description}", said(name), said(uri))
        }
        "audio" if revision < Revision::V2025_03_26 => {
            format!("Audio{mime}, left out: protocol revision {revision} of this client has none")
        }
        _ => return None,
    };
    Some(text_block(&text))
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, json::quote(text))
}
