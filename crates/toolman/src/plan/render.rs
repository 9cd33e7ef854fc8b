//! A plan as a file: Toolman's JSON, `tools.toml`, or a `ConfigMap` with the JSON in it.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::rules::{Need, Task};

/// The least that a task needs: servers as they are written, and their tools.
pub struct Plan {
    pub task: Task,
    /// Each with its definition, as the keys of JSON have it.
    pub servers: Vec<(String, Map<String, Value>)>,
    pub needs: Vec<Need>,
    /// Sections that are taken over as they are.
    pub security: Option<Value>,
}

impl Plan {
    fn tools_of(&self, server: &str) -> impl Iterator<Item = &Need> {
        self.needs.iter().filter(move |need| need.server == server)
    }

    /// Toolman's JSON. TF-41
    pub fn json(&self) -> Value {
        let servers: Map<_, _> =
            self.servers.iter().map(|(name, server)| (name.clone(), json!(server))).collect();
        let mut exposed = Map::new();
        let mut why = Map::new();
        for (server, _) in &self.servers {
            let tools: Vec<_> = self.tools_of(server).map(|need| &need.tool).collect();
            exposed.insert(server.clone(), json!(tools));
            let reasons: Map<_, _> =
                self.tools_of(server).map(|need| (need.tool.clone(), json!(need.why))).collect();
            why.insert(server.clone(), json!(reasons));
        }
        let task = json!({"service": self.task.service, "task": self.task.description, "why": why});
        let mut plan = json!({"metadata": task, "servers": servers, "exposed_tools": exposed,
            "default_policy": {"allow_unknown_tools": false, "allow_unknown_servers": false}});
        if let Some(security) = &self.security {
            plan["security_settings"] = security.clone();
        }
        plan
    }

    /// The same as `tools.toml`, with the reasons as comments.
    pub fn toml(&self) -> String {
        let mut text = format!(
            "# Service: {}\n# Task: {}\nsurface = \"filter\"\n",
            on_one_line(&self.task.service),
            on_one_line(&self.task.description)
        );
        text += "\n[exposed_tools]\n";
        for (server, _) in &self.servers {
            _ = writeln!(text, "{} = [", quote(server));
            for need in self.tools_of(server) {
                _ = writeln!(text, "  {}, # {}", quote(&need.tool), on_one_line(&need.why));
            }
            text += "]\n";
        }
        text += "\n[default_policy]\nallow_unknown_tools = false\nallow_unknown_servers = false\n";
        if let Some(Value::Object(security)) = &self.security {
            text += "\n[security_settings]\n";
            for (key, value) in security {
                _ = writeln!(text, "{key} = {}", inline(value));
            }
        }
        for (name, server) in &self.servers {
            _ = write!(text, "\n[[servers]]\nname = {0}\nnamespace = {0}\n", quote(name));
            for (key, value) in server {
                let key = if key == "workingDirectory" { "cwd" } else { key };
                if !matches!(key, "name" | "namespace") {
                    _ = writeln!(text, "{key} = {}", inline(value));
                }
            }
        }
        text
    }

    /// A `ConfigMap` of Kubernetes. TF-43
    pub fn config_map(&self, name: &str) -> String {
        let mut text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  toolman.json: |\n"
        );
        for line in format!("{:#}", self.json()).lines() {
            _ = writeln!(text, "    {line}");
        }
        text
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A string of TOML; what JSON escapes, TOML escapes alike.
fn quote(text: &str) -> String {
    json!(text).to_string()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(inline).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{} = {}", quote(key), inline(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        other => other.to_string(),
    }
}
