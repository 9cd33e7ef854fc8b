//! `task_based_tool_selection`: which tools a task needs, by words in its description.

use mcp::text::shorten;

use crate::fault::Faults;
use crate::reader::Value;

/// What the words of a task add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPattern {
    pub name: String,
    pub keywords: Vec<String>,
    /// By server, in the order of the file.
    pub tools: Vec<(String, Vec<String>)>,
}

pub(crate) fn read(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<TaskPattern> {
    let Some(mut section) = value.section("in `task_based_tool_selection`", faults) else {
        return Vec::new();
    };
    let patterns = section.get("patterns");
    _ = section.get("description").and_then(|value| value.string(faults));
    section.close(&[], faults);
    let entries = patterns.and_then(|value| value.entries(faults)).unwrap_or_default();
    entries.into_iter().filter_map(|(name, value)| pattern(name, &value, faults)).collect()
}

fn pattern(name: &str, value: &Value<'_>, faults: &mut Faults<'_>) -> Option<TaskPattern> {
    let mut section = value.section("in a pattern of tasks", faults)?;
    let keywords = section.get("keywords").map(|value| value.strings("keyword", faults));
    let Some(keywords) = keywords else {
        value.report(&format!("has no `keywords`; add the words of `{}`", shorten(name)), faults);
        return None;
    };
    let mut tools = Vec::new();
    if let Some(value) = section.get("additional_tools") {
        for (server, value) in value.entries(faults).unwrap_or_default() {
            let names = value.strings("tool", faults).into_iter();
            tools.push((server.to_owned(), names.map(|(_, name)| name.to_owned()).collect()));
        }
    }
    _ = section.get("description").and_then(|value| value.string(faults));
    section.close(&[], faults);
    let keywords = keywords.into_iter().map(|(_, word)| word.to_lowercase()).collect();
    Some(TaskPattern { name: name.to_owned(), keywords, tools })
}
