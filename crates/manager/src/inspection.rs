//! Looking at a source before it is written: whether its tools can be used by a model. HARDENING F01, F03

use mcp::json;
use upstream::python::environment::Interpreter;
use upstream::python::scan::{Findings, Remark, Source};

use crate::desk::Desk;
use crate::error::Error;

/// A tool as its source tells of it.
pub struct Tool {
    pub name: String,
    pub description: String,
}

/// Why a source is not written.
pub struct Refusal {
    pub error: &'static str,
    /// Every place, one a line.
    pub details: String,
}

/// The tools of what was found.
pub fn tools(findings: &Findings) -> Vec<Tool> {
    let text = |text: Option<&str>| text.and_then(json::string).unwrap_or_default().into_owned();
    let read = |definition: &mcp::rpc::Raw| {
        let [name, description] = definition.members(["name", "description"]).ok()?;
        Some(Tool { name: text(name), description: text(description) })
    };
    findings.tools.iter().filter_map(read).collect()
}

/// The names of the tools that a source defines, or why it can't be used.
pub async fn inspect(
    desk: &Desk,
    interpreter: &Interpreter,
    source: Source,
) -> Result<Result<Vec<String>, Refusal>, Error> {
    let file = source.file.clone();
    let found = desk.read_sources(interpreter, &[source]).await?.pop().unwrap_or_default();
    let names: Vec<_> = tools(&found).into_iter().map(|tool| tool.name).collect();
    Ok(match refusal(&file, &found, names.is_empty()) {
        Some(refusal) => Err(refusal),
        None => Ok(names),
    })
}

fn refusal(file: &str, found: &Findings, is_empty: bool) -> Option<Refusal> {
    let is_about = |remark: &Remark, words: &str| remark.message.contains(words);
    let error = match (found.faults.first(), found.warnings.first()) {
        (Some(fault), _) if is_about(fault, "syntax error") => "Syntax error",
        (Some(_), _) => "The tools can't be used",
        (None, Some(lack)) if is_about(lack, "type hint") => "Missing type hint",
        (None, Some(_)) => "Missing docstring",
        (None, None) if is_empty => {
            let details = format!(
                "{file}:1:1: no function is decorated with `@tool`; begin with `from fastmcp.tools import tool`, \
                 write `@tool` above each function that is a tool, and see `get_tool_template`"
            );
            return Some(Refusal { error: "No @tool decorator found", details });
        }
        (None, None) => return None,
    };
    let remarks = found.faults.iter().chain(&found.warnings);
    let lines: Vec<_> = remarks.map(|remark| remark.at(file)).collect();
    Some(Refusal { error, details: lines.join("\n") })
}
