//! The MCP tools that sources define: found by parsing, never by running.
//!
//! Each language has a file of its own; here is what they find, and that none is counted twice.

mod go;
mod javascript;
pub mod openapi;
mod python;
pub mod rust;
#[cfg(test)]
pub mod testing;

use std::collections::HashSet;

use serde::Serialize;

use crate::limits::{PARAMETERS_MAX, TOLD_BYTES_MAX, TOOLS_MAX};
use crate::source::{Grammar, Parsed};

/// A tool that somebody's code offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tool {
    pub name: String,
    pub file: String,
    pub line: usize,
    pub description: String,
    pub parameters: Vec<Parameter>,
}

/// What a tool wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    pub name: String,
    /// As the source says it, or as JSON Schema does.
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
    pub required: bool,
}

/// Tools that were found, as far as there is room for them.
#[derive(Default)]
pub struct Kept {
    tools: Vec<Tool>,
    bytes: usize,
}

impl Kept {
    pub fn push(&mut self, mut tool: Tool) {
        tool.parameters.truncate(PARAMETERS_MAX);
        let parameters = tool.parameters.iter();
        let wanted: usize =
            parameters.map(|one| one.name.len() + one.kind.len() + one.description.len()).sum();
        self.bytes += tool.name.len() + tool.description.len() + wanted;
        // What was compiled tells the same again.
        if self.bytes <= 2 * TOLD_BYTES_MAX && self.tools.len() < 2 * TOOLS_MAX {
            self.tools.push(tool);
        }
    }

    pub fn extend(&mut self, tools: impl IntoIterator<Item = Tool>) {
        tools.into_iter().for_each(|tool| self.push(tool));
    }
}

/// Sources by their language.
#[derive(Default)]
pub struct Sources {
    pub go: Vec<Parsed>,
    pub python: Vec<Parsed>,
    pub javascript: Vec<Parsed>,
    /// Rust is read by its own tokens, file by file.
    pub rust: rust::Found,
}

impl Sources {
    pub fn add(&mut self, grammar: Grammar, parsed: Parsed) {
        match grammar {
            Grammar::Go => self.go.push(parsed),
            Grammar::Python => self.python.push(parsed),
            Grammar::TypeScript => self.javascript.push(parsed),
        }
    }

    /// Every tool, once; `package_of` says which package a file belongs to.
    pub fn tools<'a>(&self, package_of: impl Fn(&str) -> &'a str) -> Vec<Tool> {
        let mut kept = Kept::default();
        javascript::tools(&self.javascript, &mut kept);
        python::tools(&self.python, &mut kept);
        go::tools(&self.go, &mut kept);
        self.rust.tools(&mut kept);
        let mut all = kept.tools;
        // What was compiled tells the same again; what was written tells more.
        all.sort_by_key(|tool| is_compiled(&tool.file));
        let mut seen = HashSet::new();
        all.retain(|tool| {
            is_name(&tool.name) && seen.insert((package_of(&tool.file), tool.name.clone()))
        });
        all.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        all.truncate(TOOLS_MAX);
        all
    }
}

/// Whether a text can be the name of a tool at all.
fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-./:".contains(letter);
    (1..=128).contains(&name.len()) && name.chars().all(allowed)
}

/// Whether a file is likely the result of a build.
pub fn is_compiled(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "dist" | "build" | "out" | "lib" | ".smithery"))
}

/// Whether a file tests the sources rather than being one.
pub fn is_test(path: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    let folders =
        ["__tests__", "__mocks__", "test", "tests", "testdata", "e2e", "fixtures", "spec"];
    let is_test_name = name.starts_with("test_")
        || name == "conftest.py"
        || [".test.", ".spec.", "_test.", ".config.", ".stories."]
            .iter()
            .any(|part| name.contains(part));
    is_test_name || parts.iter().any(|part| folders.contains(part))
}

/// A description without the indentation that its place in the source gave it.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    lines.join("\n")
}
