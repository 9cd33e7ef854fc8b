//! `toolman check FILE…`: judges files of Python tools without running them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp::rpc::Raw;
use mcp::text::tame;
use serde_json::{Value, json};
use upstream::python::environment::Interpreter;
use upstream::python::runtime;
use upstream::python::scan::{self, Findings, Remark, Source};

use crate::cli::{Check, Cli, Misuse};
use crate::dock::PYTHON;
use crate::{data_dir, host, terminal};

/// Files that a reader may be given at once, and how large each may be.
const FILES_MAX: usize = 1_000;
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Ends with 1 if a file has a fault; what could be better is told, too.
pub async fn run(cli: &Cli, check: &Check) -> anyhow::Result<i32> {
    let sources = read(&check.files)?;
    let dock = host::configuration(cli)?.and_then(|config| config.dock).unwrap_or_default();
    let dock = host::dock_of(dock)?;
    let spawner = host::spawner(None).await;
    let program = PathBuf::from(dock.python.as_deref().unwrap_or(PYTHON));
    let interpreter = Interpreter::probe(&spawner, &program).await;
    let interpreter =
        interpreter.map_err(|problem| anyhow::anyhow!("there is no Python: {problem}"))?;
    let runtime = runtime::install(&data_dir::folder(cli)?.join("runtime"))?;
    let lines = scan::scan(&Arc::clone(&spawner), &interpreter.path, &runtime, &sources).await?;
    let found: Vec<_> = lines.iter().map(|line| scan::parse(line).unwrap_or_default()).collect();
    let pairs: Vec<_> = sources.iter().zip(&found).collect();
    terminal::print(&if check.json { as_json(&pairs) } else { as_text(&pairs) })?;
    Ok(i32::from(found.iter().any(|findings| !findings.faults.is_empty())))
}

fn read(files: &[PathBuf]) -> Result<Vec<Source>, Misuse> {
    let mut sources = Vec::new();
    for file in files {
        if file.is_dir() {
            let among = tool_files(file).map_err(|error| unreadable(file, &error))?;
            for file in among {
                sources.push(source(&file)?);
            }
        } else {
            sources.push(source(file)?);
        }
    }
    if sources.is_empty() || sources.len() > FILES_MAX {
        let count = sources.len();
        return Err(Misuse(format!(
            "there are {count} tool files to check; name at least one, and {FILES_MAX} at most"
        )));
    }
    Ok(sources)
}

/// The tool files of a folder, in their order. TD-39
fn tool_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_python = path.extension().is_some_and(|extension| extension == "py");
        if is_python && !name.starts_with(['_', '.']) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn source(path: &Path) -> Result<Source, Misuse> {
    let known = path.metadata().map_err(|error| unreadable(path, &error))?;
    if !known.is_file() || known.len() > FILE_BYTES_MAX {
        let shown = path.display();
        return Err(Misuse(format!("`{shown}` is no file of up to {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    Ok(Source { file: path.display().to_string(), text })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Misuse {
    Misuse(format!("can't read `{}`: {error}", path.display()))
}

fn as_text(pairs: &[(&Source, &Findings)]) -> String {
    let mut text = String::new();
    let (mut faults, mut warnings) = (0, 0);
    for (Source { file, .. }, found) in pairs {
        let mut tell = |remarks: &[Remark], kind: &str| {
            for remark in remarks {
                let message = format!("{kind}: {}", remark.message);
                let line = Remark { message, ..remark.clone() }.at(file);
                _ = writeln!(text, "{}", tame(&line));
            }
        };
        tell(&found.faults, "error");
        tell(&found.warnings, "warning");
        faults += found.faults.len();
        warnings += found.warnings.len();
        let names = names(&found.tools).join(", ");
        let names = if names.is_empty() { "no tools" } else { &names };
        let more = if found.is_whole { "" } else { ", and what only running it tells" };
        _ = writeln!(text, "{}: {}{more}", tame(file), tame(names));
    }
    let tools: usize = pairs.iter().map(|(_, found)| found.tools.len()).sum();
    _ = writeln!(text, "tools: {tools}, errors: {faults}, warnings: {warnings}; nothing was run");
    text
}

fn as_json(pairs: &[(&Source, &Findings)]) -> String {
    let remarks = |all: &[Remark]| -> Vec<Value> {
        let one = |Remark { line, column, message }: &Remark| json!({"line": line, "column": column, "message": message});
        all.iter().map(one).collect()
    };
    let file = |(source, found): &(&Source, &Findings)| {
        json!({
            "file": source.file,
            "tools": names(&found.tools),
            "complete": found.is_whole,
            "errors": remarks(&found.faults),
            "warnings": remarks(&found.warnings),
        })
    };
    let files: Vec<_> = pairs.iter().map(file).collect();
    format!("{:#}\n", json!({"files": files}))
}

fn names(tools: &[Raw]) -> Vec<String> {
    let name = |tool: &Raw| {
        let [name] = tool.members(["name"]).ok()?;
        Some(mcp::json::string(name?)?.into_owned())
    };
    tools.iter().filter_map(name).collect()
}
