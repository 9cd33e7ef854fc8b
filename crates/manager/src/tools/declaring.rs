//! Declaring secrets: only those that the `tooldock.yaml` of a namespace names reach its tools. TD-47, TD-60

use std::sync::Arc;

use config::dock::Manifest;
use gateway::own_tools::Tool;
use mcp::text::shorten;
use secrets::names::Key;
use serde_json::{Value, json};

use super::files::advice;
use super::{Described, Effect, text};
use crate::desk::Desk;
use crate::error::Error;

pub const FILE: &str = "tooldock.yaml";

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![declare_secret(desk)]
}

fn declare_secret(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "declare_secret",
        title: "Declare that a namespace needs a secret",
        description: "Name a secret in the tooldock.yaml of a namespace, so that its tools find the value in \
            os.environ: a tool sees no other. Takes a name, never a value. Returns declared and secrets (all \
            that are); if \"pending\" is true, tell the user the command in \"next\". Next: check_secrets.",
        effect: Effect::Writes,
        input: json!({
            "namespace": {"type": "string"},
            "key": {"type": "string", "description": "Such as \"GITHUB_TOKEN\""},
        }),
        required: &["namespace", "key"],
        output: ("declared", "boolean"),
    }
    .does(desk, |desk, arguments| async move { declare(&desk, &arguments) })
}

fn declare(desk: &Desk, arguments: &Value) -> Result<Value, Error> {
    let namespace = desk.namespace(text(arguments, "namespace"))?;
    let (namespace, key) = (namespace.as_str(), text(arguments, "key"));
    let wrong = |error| Error::Secret(format!("`{}` {error}", shorten(key)));
    let name: Key = key.parse().map_err(wrong)?;
    let by_hand = |problem: &str| {
        let path = desk.tools.shown(&format!("{namespace}/{FILE}"));
        Error::Secret(format!(
            "{problem}; ask the user to add `{key}` under `secrets:` in `{path}`"
        ))
    };
    let mut declared = Vec::new();
    let add = |before: &str| {
        let known = Manifest::parse(before).map_err(|problems| by_hand(&problems.join("; ")))?;
        declared = known.secrets;
        if declared.iter().any(|known| known == key) {
            return Ok(None);
        }
        declared.push(key.to_owned());
        let after = with_secret(before, name.as_str());
        // The text was edited by its lines: what it means must be what was meant.
        match Manifest::parse(&after) {
            Ok(manifest) if manifest.secrets == declared => Ok(Some(after)),
            _ => Err(by_hand("the file can't be edited by itself")),
        }
    };
    desk.shelf().edit(namespace, FILE, desk.approval, add)?;
    // It may have been declared before, and still wait.
    let is_waiting = desk.shelf().waiting(namespace, FILE)?.is_some();
    let next = advice(desk, namespace, FILE).filter(|_| is_waiting);
    let mut answer =
        json!({"declared": true, "key": key, "namespace": namespace, "secrets": declared});
    answer["pending"] = next.is_some().into();
    answer["next"] = next.unwrap_or_else(|| "call check_secrets".to_owned()).into();
    Ok(answer)
}

/// The text of a `tooldock.yaml` with one more secret at the end of its list.
fn with_secret(text: &str, key: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = lines.iter().position(|line| line.starts_with("secrets:")) else {
        lines.extend(["secrets:".to_owned(), format!("  - {key}")]);
        return lines.join("\n") + "\n";
    };
    if let Some(end) = lines[at].find(']') {
        let is_empty = lines[at][..end].trim_end().ends_with('[');
        lines[at].insert_str(end, &if is_empty { key.to_owned() } else { format!(", {key}") });
        return lines.join("\n") + "\n";
    }
    let entries = lines[at + 1..].iter().take_while(|line| line.trim_start().starts_with("- "));
    let last = at + entries.count();
    let indent = match lines.get(at + 1) {
        Some(line) if last > at => line.len() - line.trim_start().len(),
        _ => 2,
    };
    lines.insert(last + 1, format!("{:indent$}- {key}", ""));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::with_secret;

    #[test]
    fn secret_is_added_at_the_end_of_the_list_however_it_is_written() {
        let check = |before: &str, after: &str| assert_eq!(with_secret(before, "B"), after);
        check("", "secrets:\n  - B\n");
        check("version: \"1\"\n", "version: \"1\"\nsecrets:\n  - B\n");
        check("secrets: [A] # two\nenv: {}\n", "secrets: [A, B] # two\nenv: {}\n");
        check("secrets: []\n", "secrets: [B]\n");
        check("secrets:\n- A\nenv: {}\n", "secrets:\n- A\n- B\nenv: {}\n");
        check("secrets:\n    - A\n", "secrets:\n    - A\n    - B\n");
    }
}
