//! What an agent has really used, and the least policy that would have allowed it.

use std::collections::{BTreeMap, BTreeSet};

use mcp::json::quote;
use serde_json::{Value, json};

use crate::entry::{Call, Status};

/// What one agent has used with success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Names at their upstream, by upstream.
    used: BTreeMap<String, BTreeSet<String>>,
}

impl Usage {
    pub fn add(&mut self, call: &Call<'_>) {
        let was_good = call.is_allowed() && call.status == Status::Ok;
        if let (true, Some(upstream), Some(item)) = (was_good, &call.upstream, &call.item) {
            let used = self.used.entry(upstream.to_string()).or_default();
            used.insert(item.to_string());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// The policy for `[agents.NAME]` of a `tools.toml`.
    pub fn toml(&self, agent: &str) -> String {
        let list = |names: &mut dyn Iterator<Item = &String>| {
            let names: Vec<_> = names.map(|name| toml_string(name)).collect();
            format!("[{}]", names.join(", "))
        };
        let key = toml_key(agent);
        let servers = list(&mut self.used.keys());
        let mut text = format!("[agents.{key}]\nallowed_servers = {servers}\n");
        text += &format!("\n[agents.{key}.tool_overrides]\n");
        for (upstream, items) in &self.used {
            text += &format!("{} = {}\n", toml_key(upstream), list(&mut items.iter()));
        }
        text
    }

    /// The same as Toolman's JSON format has it.
    pub fn json(&self, agent: &str) -> Value {
        let servers: Vec<_> = self.used.keys().collect();
        let policy = json!({"allowed_servers": servers, "tool_overrides": self.used});
        json!({"agent_policies": {agent: policy}})
    }
}

fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let can_be_bare = !name.is_empty() && name.chars().all(is_bare);
    if can_be_bare { name.to_owned() } else { toml_string(name) }
}

/// A string in TOML is one in JSON, but for a control character that only JSON leaves as it is.
fn toml_string(text: &str) -> String {
    quote(text).replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::Usage;
    use crate::entry::{Call, Decision, Status};

    fn usage() -> Usage {
        let mut usage = Usage::default();
        for (upstream, item, decision, status) in [
            ("git", "log", Decision::Allowed, Status::Ok),
            ("git", "diff", Decision::Allowed, Status::Ok),
            ("git", "log", Decision::Allowed, Status::Ok),
            ("git", "push", Decision::Allowed, Status::ToolError),
            ("git", "reset", Decision::Inactive, Status::Refused),
            ("my.files", "file:///{\"path\"}", Decision::Allowed, Status::Ok),
        ] {
            let (upstream, item) = (Some(upstream.into()), Some(item.into()));
            usage.add(&Call { upstream, item, decision, status, ..Call::default() });
        }
        usage
    }

    #[test]
    fn least_policy_names_what_was_used_with_success() {
        assert_eq!(
            usage().toml("dev 1"),
            "[agents.\"dev 1\"]\nallowed_servers = [\"git\", \"my.files\"]\n\n\
             [agents.\"dev 1\".tool_overrides]\ngit = [\"diff\", \"log\"]\n\
             \"my.files\" = [\"file:///{\\\"path\\\"}\"]\n"
        );
        let policy = &usage().json("dev")["agent_policies"]["dev"];
        assert_eq!(policy["allowed_servers"].to_string(), r#"["git","my.files"]"#);
        assert_eq!(policy["tool_overrides"]["git"].to_string(), r#"["diff","log"]"#);
        assert!(Usage::default().is_empty());
    }
}
