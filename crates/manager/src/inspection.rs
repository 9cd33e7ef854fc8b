//! Looking at a source before it is written: whether its tools can be used by a model. HARDENING F01, F03

use config::dock::{Folder, Manifest};
use mcp::json;
use upstream::python::ALWAYS_SET;
use upstream::python::environment::Interpreter;
use upstream::python::scan::{Findings, Remark, Source};

use crate::desk::Desk;
use crate::error::Error;
use crate::names::FileName;
use crate::shelf::Waiting;

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

/// What a source defines, or why it can't be used.
pub async fn inspect(
    desk: &Desk,
    interpreter: &Interpreter,
    source: Source,
) -> Result<Result<Findings, Refusal>, Error> {
    let file = source.file.clone();
    let found = desk.read_sources(interpreter, &[source]).await?.pop().unwrap_or_default();
    Ok(match refusal(&file, &found, tools(&found).is_empty()) {
        Some(refusal) => Err(refusal),
        None => Ok(found),
    })
}

/// What should be told of a source that can be written: names that other files have, variables that nothing sets.
pub async fn remarks(
    desk: &Desk,
    interpreter: &Interpreter,
    folder: &Folder,
    (file, found): (&str, &Findings),
) -> Result<Vec<String>, Error> {
    let others: Vec<_> =
        sources(desk, folder)?.into_iter().filter(|one| one.file != file).collect();
    let read = desk.read_sources(interpreter, &others).await?;
    let mut told = Vec::new();
    for tool in tools(found) {
        let has_it = |(_, other): &(&Source, &Findings)| {
            tools(other).iter().any(|other| other.name == tool.name)
        };
        if let Some((other, _)) = others.iter().zip(&read).find(has_it) {
            let (name, keeper) = (&tool.name, file.min(other.file.as_str()));
            told.push(format!(
                "the tool `{name}` is defined in `{}`, too; `{keeper}`, the first by name, keeps it",
                other.file
            ));
        }
    }
    let unset = undeclared(&folder.manifest, std::slice::from_ref(found)).into_iter();
    told.extend(unset.map(|name| {
        format!("it reads `{name}`, which nothing sets: if it is a secret, call declare_secret")
    }));
    Ok(told)
}

/// The sources of a folder as they will be when all that waits is approved.
pub fn sources(desk: &Desk, folder: &Folder) -> Result<Vec<Source>, Error> {
    let mut all = folder.sources.clone();
    for waiting in waiting(desk, folder.name.as_str())? {
        all.retain(|source| source.file != waiting.file);
        all.push(waiting);
    }
    all.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(all)
}

/// The files of tools that wait for a person.
pub fn waiting(desk: &Desk, namespace: &str) -> Result<Vec<Source>, Error> {
    let all = desk.shelf().all_waiting_in(namespace)?.into_iter();
    let is_python = |waiting: &Waiting| FileName::parse(&waiting.file).is_ok();
    let source = |waiting: Waiting| Source { file: waiting.file, text: waiting.text };
    Ok(all.filter(is_python).map(source).collect())
}

/// The variables that sources read and that are there for no worker of this folder.
pub fn undeclared(manifest: &Manifest, found: &[Findings]) -> Vec<String> {
    let is_set = |name: &String| {
        ALWAYS_SET.contains(&name.as_str())
            || manifest.secrets.contains(name)
            || manifest.env.iter().any(|(set, _)| set == name)
    };
    let read = found.iter().flat_map(|findings| &findings.variables);
    let mut names: Vec<String> = read.filter(|name| !is_set(name)).cloned().collect();
    names.sort();
    names.dedup();
    names
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
