//! A toolset of what was really used: `suggest`. HT-46, HT-47

use std::collections::BTreeMap;

use audit::entry::{Call, Status};
use audit::reader::each_call;
use catalog::toolset::limits;
use comfy_table::Table;
use mcp::text::tame;
use serde_json::json;

use crate::cli::{Choice, Cli};
use crate::{review, terminal};

pub fn suggest(cli: &Cli, since: Option<&str>, as_json: bool) -> anyhow::Result<i32> {
    let choice = Choice { tool: None, since: since.map(str::to_owned) };
    let (folder, filter) = (review::folder(cli)?, review::filter(cli, &choice)?);
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let count = |_: &str, call: &Call<'static>| {
        let was_good = call.is_allowed() && call.status == Status::Ok;
        if let (true, "tools/call", Some(server), Some(tool)) =
            (was_good, &*call.method, &call.upstream, &call.item)
        {
            *calls.entry(format!("{server}.{tool}")).or_default() += 1;
        }
    };
    each_call(&folder, &filter, count).map_err(review::missing)?;
    let mut used: Vec<(String, u64)> = calls.into_iter().collect();
    let whose = match &cli.agent {
        Some(agent) => format!("agent `{}`", tame(agent)),
        None => "anybody".to_owned(),
    };
    if used.is_empty() {
        anyhow::bail!("the audit trail has no successful call of a tool by {whose} in this time");
    }
    used.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let more = used.len().saturating_sub(limits::TOOLS_MAX);
    used.truncate(limits::TOOLS_MAX);
    let name = name_for(cli.agent.as_deref());
    let description = format!("what {whose} has used");
    let description: String = description.chars().take(200).collect();
    if as_json {
        let tool = |(name, calls): &(String, u64)| json!({"namespacedName": name, "calls": calls});
        let tools: Vec<_> = used.iter().map(tool).collect();
        let toolset = json!({"name": name, "description": description, "tools": tools});
        terminal::print(&format!("{:#}\n", json!({ name: toolset })))?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    for (name, calls) in &used {
        table.add_row([tame(name), format!("{calls} calls")]);
    }
    let words: Vec<String> = used.iter().map(|(name, _)| quoted(&tame(name))).collect();
    let rest =
        if more > 0 { format!("\nand {more} more that were used less") } else { String::new() };
    terminal::print(&format!(
        "{table}{rest}\n\ntoolman toolset build {name} {}\n",
        words.join(" ")
    ))?;
    Ok(0)
}

/// A name that a toolset may have, after an agent.
fn name_for(agent: Option<&str>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = agent.unwrap_or_default().chars().take(40).map(plain).collect();
    match name.trim_matches('-') {
        "" => "used-tools".to_owned(),
        name => format!("{name}-tools"),
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::{name_for, quoted};

    #[test]
    fn names_and_words_are_fit_for_use() {
        assert_eq!(name_for(None), "used-tools");
        assert_eq!(name_for(Some("Ada L.")), "ada-l-tools");
        assert_eq!(name_for(Some("é")), "used-tools");
        assert!(catalog::toolset::limits::check_name(&name_for(Some(&"x".repeat(99)))).is_ok());
        assert_eq!(quoted("git.log"), "git.log");
        assert_eq!(quoted("git.a'b"), "'git.a'\\''b'");
    }
}
