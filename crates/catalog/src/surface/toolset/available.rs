//! `list-available-tools`: what toolsets can be built of, in pages that a model can afford. HT-32

use std::collections::BTreeSet;

use mcp::items::Kind;
use mcp::text::shorten;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{cost, namespaced, tokens};
use crate::error::quoted;
use crate::snapshot::Item;
use crate::view::View;

/// Tools of one page, unless the model says otherwise; and at most.
const TOOLS_USUAL: usize = 50;
const TOOLS_MAX: usize = 500;
/// Characters of a description, unless all is wanted.
const DESCRIPTION_CHARS: usize = 80;

/// Which tools a model wants to see.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wanted {
    /// Words that the name or the description has.
    pub query: Option<String>,
    pub server: Option<String>,
    pub limit: Option<usize>,
    /// The last tool of the page before.
    pub cursor: Option<String>,
    /// Whether everything is told of each.
    pub full: Option<bool>,
}

/// Tools within the ceiling by server, with both ids and what they cost.
pub fn available(view: &View, wanted: &Wanted) -> Result<Value, String> {
    let all: Vec<&Item> = view.items(Kind::Tool).collect();
    let total: usize = all.iter().map(|item| tokens(item)).sum();
    let servers: BTreeSet<&str> = all.iter().map(|item| server(item)).collect();
    let of_server = wanted.server.as_deref().map(|asked| named(asked, &all)).transpose()?;
    let words: Vec<String> =
        wanted.query.iter().flat_map(|q| q.split_whitespace()).map(str::to_lowercase).collect();
    let mut found: Vec<&Item> = all
        .iter()
        .copied()
        .filter(|item| of_server.is_none_or(|wanted| server(item) == wanted))
        .filter(|item| words.iter().all(|word| mentions(item, word)))
        .collect();
    found.sort_by(|a, b| server(a).cmp(server(b)));
    let begin = match &wanted.cursor {
        None => 0,
        Some(cursor) => {
            let at = found.iter().position(|item| namespaced(item) == *cursor);
            let gone = || {
                let cursor = shorten(cursor);
                format!("`{cursor}` is not on this list any more; begin again without `cursor`")
            };
            at.ok_or_else(gone)? + 1
        }
    };
    let limit = wanted.limit.unwrap_or(TOOLS_USUAL).clamp(1, TOOLS_MAX);
    let page: Vec<&Item> = found[begin..].iter().copied().take(limit).collect();
    let is_full = wanted.full.unwrap_or(false);
    let by_server: Vec<Value> = page
        .chunk_by(|a, b| server(a) == server(b))
        .map(|items| {
            let tools: Vec<_> = items.iter().map(|item| about(item, is_full, total)).collect();
            let of_server = || all.iter().filter(|item| server(item) == server(items[0]));
            let own: usize = of_server().map(|item| tokens(item)).sum();
            json!({"serverName": server(items[0]), "toolCount": of_server().count(), "tools": tools,
                "context": cost(own, total)})
        })
        .collect();
    let mut answer = json!({
        "summary": {"totalTools": all.len(), "totalServers": servers.len()},
        "toolsByServer": by_server, "context": {"tokens": total}});
    if page.len() < all.len() {
        answer["summary"]["matchingTools"] = json!(found.len());
        answer["summary"]["shownTools"] = json!(page.len());
    }
    if begin + page.len() < found.len()
        && let Some(last) = page.last()
    {
        answer["nextCursor"] = json!(namespaced(last));
    }
    Ok(answer)
}

/// What is told of one tool.
fn about(item: &Item, is_full: bool, total: usize) -> Value {
    let mut told = Map::new();
    told.insert("name".to_owned(), json!(item.origin.name));
    told.insert("namespacedName".to_owned(), json!(namespaced(item)));
    told.insert("refId".to_owned(), json!(item.ref_id().as_str()));
    if !is_full {
        let short: String = item.summary.chars().take(DESCRIPTION_CHARS).collect();
        told.insert("description".to_owned(), json!(short.trim_end()));
        told.insert("tokens".to_owned(), json!(tokens(item)));
        return Value::Object(told);
    }
    told.insert("exposedName".to_owned(), json!(item.name.as_str()));
    told.insert("serverName".to_owned(), json!(server(item)));
    told.insert("description".to_owned(), json!(item.summary));
    told.insert("context".to_owned(), cost(tokens(item), total));
    Value::Object(told)
}

/// The server that is meant by its name or its namespace.
fn named<'a>(asked: &str, all: &[&'a Item]) -> Result<&'a str, String> {
    let is_it = |item: &&&Item| server(item) == asked || item.origin.namespace.as_str() == asked;
    all.iter().find(is_it).map(|item| server(item)).ok_or_else(|| {
        let known: BTreeSet<&str> = all.iter().map(|item| server(item)).collect();
        let known: Vec<_> = known.into_iter().collect();
        let known = if known.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", quoted(&known))
        };
        format!("no server is named `{}`; {known}", shorten(asked))
    })
}

fn server(item: &Item) -> &str {
    item.origin.upstream.as_str()
}

fn mentions(item: &Item, word: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(word);
    has(&namespaced(item)) || has(item.name.as_str()) || has(&item.summary)
}
