//! Tools of Python: the official SDK of both generations, its low level, and `fastmcp`.
//!
//! Decorated functions, calls of `add_tool` and `tool`, and every `Tool(name=…, inputSchema=…)`, wherever a list of them
//! is made.

mod names;
mod signature;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use tree_sitter::Node;

use super::{Kept, Tool, tidy};
use crate::source::{Parsed, children, field, line};
use names::{Place, Project};

pub fn tools(files: &[Parsed], kept: &mut Kept) {
    let project = Project::new(files);
    let prefixes = prefixes(&project, files);
    for (file, parsed) in files.iter().enumerate() {
        let finder = Finder { project: &project, prefixes: &prefixes, file };
        parsed.each(|node, above| match node.kind() {
            "decorated_definition" => kept.extend(finder.decorated(node)),
            "call" => kept.extend(finder.call(node, above.last())),
            _ => {}
        });
    }
}

struct Finder<'p, 't> {
    project: &'p Project<'t>,
    prefixes: &'p HashMap<String, String>,
    file: usize,
}

impl<'t> Finder<'_, 't> {
    /// `@mcp.tool`, `@mcp.tool(name="…")` or `@tool` above a function.
    fn decorated(&self, node: Node<'t>) -> Option<Tool> {
        let definition =
            field(node, "definition").filter(|node| node.kind() == "function_definition")?;
        let decorators = children(node).into_iter().filter(|part| part.kind() == "decorator");
        let decorator =
            decorators.filter_map(|part| children(part).into_iter().next()).find(|part| {
                let target =
                    if part.kind() == "call" { field(*part, "function") } else { Some(*part) };
                target.is_some_and(|target| self.is_tool(target))
            })?;
        let arguments = field(decorator, "arguments");
        let target =
            if decorator.kind() == "call" { field(decorator, "function")? } else { decorator };
        self.tool(Some(definition), arguments, node, target)
    }

    /// Whether an expression is the decorator of a tool.
    fn is_tool(&self, target: Node<'t>) -> bool {
        let word = |node| self.project.word(self.file, node);
        match target.kind() {
            "attribute" => field(target, "attribute").is_some_and(|name| word(name) == "tool"),
            "identifier" => word(target) == "tool" && self.project.imports_mcp(self.file),
            _ => false,
        }
    }

    fn call(&self, call: Node<'t>, parent: Option<&Node<'t>>) -> Option<Tool> {
        let function = field(call, "function")?;
        let arguments = field(call, "arguments")?;
        let name = field(function, "attribute").unwrap_or(function);
        let is_method = function.kind() == "attribute";
        let first =
            || children(arguments).into_iter().find(|node| node.kind() != "keyword_argument");
        match self.project.word(self.file, name) {
            "Tool" | "MCPTool" => self.low_level(call, arguments),
            "add_tool" if is_method => {
                self.tool(self.function(first()?), Some(arguments), call, function)
            }
            // `mcp.tool(function, name="…")`; as a decorator it is seen above its function.
            "tool" if is_method && !is_decorator(parent) => {
                self.tool(Some(self.function(first()?)?), Some(arguments), call, function)
            }
            _ => {
                // `mcp.tool("name")(function)`
                let inner = field(function, "function").filter(|inner| self.is_tool(*inner))?;
                let applied = self.function(first()?);
                self.tool(applied, field(function, "arguments"), call, inner)
            }
        }
    }

    /// `Tool(name=…, description=…, inputSchema=…)`
    fn low_level(&self, call: Node<'t>, arguments: Node<'t>) -> Option<Tool> {
        let place = |node| Place::new(self.file, node);
        let schema = ["inputSchema", "input_schema", "parameters"];
        let schema = schema.iter().find_map(|key| self.keyword(arguments, key))?;
        let name = self.project.text(&place(self.keyword(arguments, "name")?))?;
        let about = self.keyword(arguments, "description");
        Some(Tool {
            name,
            file: self.project.path(self.file).to_owned(),
            line: line(call),
            description: about
                .and_then(|node| self.project.text(&place(node)))
                .map(|text| tidy(&text))
                .unwrap_or_default(),
            parameters: signature::of_schema(self.project, &place(schema)),
        })
    }

    /// A function as a tool, by what is said beside it.
    fn tool(
        &self,
        definition: Option<Node<'t>>,
        arguments: Option<Node<'t>>,
        at: Node<'t>,
        target: Node<'t>,
    ) -> Option<Tool> {
        let text = |node: Node<'t>| self.project.text(&Place::new(self.file, node));
        let keyword = |key| arguments.and_then(|arguments| self.keyword(arguments, key));
        let given = arguments.map(children).unwrap_or_default();
        let first = given
            .first()
            .filter(|node| node.kind() != "keyword_argument")
            .and_then(|node| text(*node));
        let own = || {
            let name = definition.and_then(|definition| field(definition, "name"))?;
            Some(self.project.word(self.file, name).to_owned())
        };
        let said = keyword("name");
        let name = match said {
            Some(node) if self.project.word(self.file, node) != "None" => text(node)?,
            _ => first.or_else(own)?,
        };
        let about = keyword("description").and_then(text);
        let docstring = || {
            definition
                .and_then(|definition| signature::docstring(self.project, self.file, definition))
        };
        let server =
            field(target, "object").map(|object| self.project.word(self.file, object).to_owned());
        let prefix = server.and_then(|server| self.prefixes.get(&server));
        Some(Tool {
            name: prefix.map_or_else(|| name.clone(), |prefix| format!("{prefix}_{name}")),
            file: self.project.path(self.file).to_owned(),
            line: line(at),
            description: about.or_else(docstring).map(|text| tidy(&text)).unwrap_or_default(),
            parameters: definition
                .map(|definition| signature::parameters(self.project, self.file, definition))
                .unwrap_or_default(),
        })
    }

    /// The function of this file that a name stands for.
    fn function(&self, node: Node<'t>) -> Option<Node<'t>> {
        if node.kind() == "string" {
            return None;
        }
        let place = self.project.resolve(&Place::new(self.file, node));
        (place.file == self.file && place.node.kind() == "function_definition")
            .then_some(place.node)
    }

    fn keyword(&self, arguments: Node<'t>, key: &str) -> Option<Node<'t>> {
        names::keyword(self.project, self.file, arguments, key)
    }
}

/// Whether a call is one by what is around it.
fn is_decorator(parent: Option<&Node>) -> bool {
    parent.is_some_and(|parent| parent.kind() == "decorator" || parent.kind() == "call")
}

/// Servers that are mounted into another under a prefix, by the name of their variable.
fn prefixes<'t>(project: &Project<'t>, files: &'t [Parsed]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for (file, parsed) in files.iter().enumerate() {
        parsed.each(|node, _| {
            let function = if node.kind() == "call" { field(node, "function") } else { None };
            let method = function.and_then(|function| field(function, "attribute"));
            let is_mount =
                method.is_some_and(|name| matches!(parsed.word(name), "mount" | "import_server"));
            let Some(arguments) = field(node, "arguments").filter(|_| is_mount) else { return };
            let keywords = ["namespace", "prefix"];
            let said =
                keywords.iter().find_map(|key| names::keyword(project, file, arguments, key));
            let given = children(arguments);
            let plain: Vec<_> =
                given.into_iter().filter(|node| node.kind() != "keyword_argument").collect();
            let text = |node| project.text(&Place::new(file, node));
            let prefix = said.into_iter().chain(plain.iter().copied()).find_map(text);
            let server = plain.iter().find(|node| node.kind() == "identifier");
            if let (Some(prefix), Some(server)) = (prefix, server) {
                found.insert(parsed.word(*server).to_owned(), prefix);
            }
        });
    }
    found
}
