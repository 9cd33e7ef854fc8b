//! Asking the core: to read folders again, and to try a tool. TD-123, TD-138

use std::sync::Arc;

use gateway::own_tools::Tool;
use serde_json::{Value, json};

use super::files::advice;
use super::{Described, Effect, text};
use crate::core::Called;
use crate::desk::Desk;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![reload_core(desk), test_tool(desk)]
}

fn reload_core(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "reload_core",
        title: "Reload the core",
        description: "Let the core serve what has changed. Call it after any change of namespaces, tools, \
            packages or secrets. Installs packages and restarts only the workers that need it. Returns reloaded, \
            namespaces, workers_restarted, namespaces_removed, deps_synced, problems (of single folders or \
            files). Next: test_tool.",
        effect: Effect::Reloads,
        input: json!({}),
        required: &[],
        output: ("reloaded", "boolean"),
    }
    .does(desk, |desk, _| async move {
        let done = desk.core.reload().await?;
        // A core of another version may say more than we have promised.
        let keys = ["reloaded", "namespaces", "workers_restarted", "namespaces_removed", "deps_synced", "problems"];
        let known = keys.iter().filter_map(|key| Some((*key, done.get(key)?.clone())));
        Ok(known.map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

fn test_tool(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "test_tool",
        title: "Try a tool",
        description: "Call a tool through the core, with the secrets and packages of its namespace. It really \
            runs: use harmless input. Call reload_core before. On failure read error and traceback, correct the \
            file, begin again. Returns success, result, or error and traceback; \"pending\" names files that \
            wait for a person: what ran is the version before.",
        effect: Effect::Runs,
        input: json!({
            "namespace": {"type": "string"},
            "tool_name": {"type": "string"},
            "input": {"type": "object", "description": "Its arguments"},
        }),
        required: &["namespace", "tool_name", "input"],
        output: ("success", "boolean"),
    }
    .does(desk, |desk, arguments| async move {
        let namespace = desk.namespace(text(&arguments, "namespace"))?;
        let tool = text(&arguments, "tool_name");
        let called = desk.core.call(namespace.as_str(), tool, &arguments["input"]).await?;
        let mut answer = worded(called);
        let waiting = desk.shelf().all_waiting_in(namespace.as_str())?;
        if let [first, ..] = &waiting[..] {
            let files: Vec<_> = waiting.iter().map(|waiting| waiting.file.as_str()).collect();
            answer["pending"] = files.into();
            answer["next"] = advice(&desk, namespace.as_str(), &first.file).into();
        }
        Ok(answer)
    })
}

fn worded(called: Called) -> Value {
    match called {
        Called::Failed { error, traceback } => {
            json!({"success": false, "error": error, "traceback": traceback})
        }
        Called::Result(result) if result["isError"] == true => {
            json!({"success": false, "error": texts(&result), "traceback": null})
        }
        Called::Result(result) => json!({"success": true, "result": given(&result)}),
    }
}

/// What a tool gave: its structured content, else its only text, else all its blocks.
fn given(result: &Value) -> Value {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (result.get("structuredContent"), blocks) {
        (Some(structured), _) => structured.clone(),
        (None, [block]) if block["type"] == "text" => block["text"].clone(),
        (None, blocks) => json!(blocks),
    }
}

fn texts(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::worded;
    use crate::core::Called;

    #[test]
    fn results_are_told_by_their_content() {
        let said = |result| worded(Called::Result(result));
        let text = json!([{"type": "text", "text": "no"}]);
        assert_eq!(said(json!({"content": text})), json!({"success": true, "result": "no"}));
        let both = json!({"content": text, "structuredContent": {"a": 1}});
        assert_eq!(said(both), json!({"success": true, "result": {"a": 1}}));
        let wrong = json!({"content": text, "isError": true});
        assert_eq!(said(wrong), json!({"success": false, "error": "no", "traceback": null}));
    }
}
