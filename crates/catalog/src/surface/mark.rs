//! The mark for clients that keep tools from their model until it looks for them: these are to be shown at once.
//!
//! What was switched on is wanted now; without the mark the model would have to look for it a second time.

use bytes::Bytes;
use mcp::items::Kind;
use mcp::json;

use crate::limits::MARKED_TOKENS_MAX;
use crate::tokens::estimate;
use crate::view::View;

/// As Claude Code documents it.
const MEMBER: &str = "anthropic/alwaysLoad";

/// Which of the listed tools are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    Nothing,
    ControlTools,
    /// What is on, too.
    Everything,
}

impl Marked {
    /// What is marked for a client. All that is on, unless that would fill the context that the client saves.
    pub fn of(view: &View) -> Marked {
        let scope = view.scope();
        if !scope.profile.defers_tools || scope.surface.control_names().is_empty() {
            return Marked::Nothing;
        }
        let mut room = Some(MARKED_TOKENS_MAX);
        for item in view.items(Kind::Tool).filter(|item| view.is_visible(item)) {
            room = room.and_then(|room| room.checked_sub(estimate(&item.definition)));
        }
        if room.is_some() { Marked::Everything } else { Marked::ControlTools }
    }

    pub fn control_tools(self, definitions: String) -> String {
        if self == Marked::Nothing {
            return definitions;
        }
        let list = format!("[{definitions}]");
        let tools = json::elements(&list).unwrap_or_default();
        let marked = tools.iter().map(|tool| with_mark(tool.as_bytes()));
        marked.collect::<Vec<_>>().join(",")
    }

    pub fn active(self, definition: Bytes) -> Bytes {
        if self == Marked::Everything { with_mark(&definition).into() } else { definition }
    }
}

fn with_mark(definition: &[u8]) -> String {
    let meta = json::members(definition, ["_meta"]).ok().and_then(|[meta]| meta);
    let is_marked = |meta: &str| matches!(json::members(meta.as_bytes(), [MEMBER]), Ok([Some(_)]));
    let edited = match meta {
        Some(meta) if is_marked(meta) || !meta.starts_with('{') => definition.to_vec(),
        Some(meta) => {
            let start = json::span(definition, meta).start + 1;
            let is_empty = json::entries(meta).is_ok_and(|members| members.is_empty());
            let comma = if is_empty { "" } else { "," };
            let member = format!(r#""{MEMBER}":true{comma}"#);
            json::splice(definition, &[(start..start, member.as_bytes())])
        }
        None => {
            let member = format!(r#""_meta":{{"{MEMBER}":true}},"#);
            json::splice(definition, &[(1..1, member.as_bytes())])
        }
    };
    String::from_utf8_lossy(&edited).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp::items::Kind;
    use serde_json::Value;

    use super::with_mark;
    use crate::profile::Profile;
    use crate::scope::Scope;
    use crate::selection::Selection;
    use crate::surface::Surface;
    use crate::testing::catalog;
    use crate::view::View;

    #[test]
    fn mark_goes_beside_what_is_there() {
        for (text, marked) in [
            (r#"{"name":"a"}"#, r#"{"_meta":{"anthropic/alwaysLoad":true},"name":"a"}"#),
            (r#"{"_meta":{ }}"#, r#"{"_meta":{"anthropic/alwaysLoad":true }}"#),
            (r#"{"_meta":{"x":1}}"#, r#"{"_meta":{"anthropic/alwaysLoad":true,"x":1}}"#),
        ] {
            assert_eq!(with_mark(text.as_bytes()), marked);
            assert_eq!(with_mark(marked.as_bytes()), marked);
        }
    }

    /// Which of the listed tools are marked, where so many are on.
    fn marked(surface: Surface, tools: usize) -> Vec<bool> {
        let names: Vec<_> = (0..tools).map(|at| format!("tool{at}")).collect();
        let catalog = catalog(&format!("git: {}", names.join(" ")), &["*"]);
        let profile = Arc::new(Profile { defers_tools: true, ..Profile::default() });
        let scope = Arc::new(Scope { surface, profile, ..Scope::default() });
        let view = View::new(catalog, Arc::default(), Selection::default(), scope);
        let list: Value = serde_json::from_slice(view.list(Kind::Tool)).unwrap();
        let tools = list["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["_meta"]["anthropic/alwaysLoad"] == true).collect()
    }

    #[test]
    fn what_was_chosen_is_marked_while_it_is_little() {
        assert_eq!(marked(Surface::default(), 2), [true, true, true]);
        assert_eq!(marked(Surface::Filter, 2), [false, false], "nobody has chosen these");
        let many = marked(Surface::default(), 2_000);
        assert!(many[0] && !many[1..].contains(&true));
    }
}
