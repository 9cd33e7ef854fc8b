//! Tools of JavaScript and TypeScript: the official SDK of both generations, and those built on it.
//!
//! `server.tool(…)`, `server.registerTool(…)` and `server.addTool({…})` wherever they are called, in loops too, and what
//! the handler of `tools/list` returns. Where a name can't be followed, every object that looks like a tool counts.

mod names;
mod schema;
#[cfg(test)]
mod tests;

use tree_sitter::Node;

use super::{Kept, Tool, tidy};
use crate::limits::ABOVE_MAX;
use crate::source::{Parsed, below, children, field, line};
use names::{FUNCTIONS, Place, Project};

/// What a tool calls the schema of its arguments.
const SCHEMA_KEYS: [&str; 5] =
    ["inputSchema", "input_schema", "parameters", "paramsSchema", "schema"];

pub fn tools(files: &[Parsed], kept: &mut Kept) {
    let project = Project::new(files);
    let mut found = Found { project: &project, tools: kept, is_whole: true };
    for (file, parsed) in files.iter().enumerate() {
        parsed.each(|node, above| {
            if node.kind() == "call_expression" {
                found.call(&Place::new(file, node), above);
            }
        });
    }
    if !found.is_whole {
        for (file, parsed) in files.iter().enumerate() {
            parsed.each(|node, _| {
                if node.kind() == "object" {
                    kept.extend(by_shape(&project, &Place::new(file, node)));
                }
            });
        }
    }
}

/// What was found so far.
struct Found<'p, 't> {
    project: &'p Project<'t>,
    tools: &'p mut Kept,
    /// Whether every registration could be followed to its names.
    is_whole: bool,
}

impl<'t> Found<'_, 't> {
    /// A call, and what is above it.
    fn call(&mut self, call: &Place<'t>, above: &[Node<'t>]) {
        let Some(function) = field(call.node, "function") else { return };
        if function.kind() != "member_expression" {
            return;
        }
        let Some(method) = field(function, "property") else { return };
        let arguments = field(call.node, "arguments").map(children).unwrap_or_default();
        let is_by_object = |node: &Node| node.kind() == "object";
        match (self.project.word(call, method), &arguments[..]) {
            ("registerTool" | "registerToolTask" | "registerAppTool", [name, _, ..]) => {
                self.register(call, above, *name, &arguments[1..]);
            }
            ("tool", [name, .., last]) if is_handler(*last) => {
                self.register(call, above, *name, &arguments[1..]);
            }
            ("addTool", [tool]) if is_by_object(tool) || tool.kind() == "identifier" => {
                self.add(&call.with(*tool), above);
            }
            ("addTools", [tools]) => self.list(&call.with(*tools)),
            ("setRequestHandler", [method, handler, ..]) => {
                let word = self.project.word(call, *method);
                if word.ends_with("ListToolsRequestSchema")
                    || word.trim_matches(['"', '\'']) == "tools/list"
                {
                    self.handler(&call.with(*handler));
                }
            }
            _ => {}
        }
    }

    /// `registerTool(name, config, handler)`, or `tool(name, description?, schema?, annotations?, handler)`.
    fn register(
        &mut self,
        call: &Place<'t>,
        above: &[Node<'t>],
        name: Node<'t>,
        rest: &[Node<'t>],
    ) {
        let mut is_named = false;
        for place in self.turns(call, above, name) {
            let Some(text) = self.project.text(&place.with(name)) else { continue };
            is_named = true;
            let mut tool = tool(self.project, &place, text);
            for argument in rest {
                self.describe(&mut tool, &place.with(*argument));
            }
            self.tools.push(tool);
        }
        self.is_whole &= is_named;
    }

    /// Reads an argument of a registration: a description, a configuration or a schema.
    fn describe(&self, tool: &mut Tool, argument: &Place<'t>) {
        if is_handler(argument.node) && argument.node.kind() != "identifier" {
            return;
        }
        if let Some(text) = self.project.text(argument) {
            if tool.description.is_empty() {
                tool.description = tidy(&text);
            }
            return;
        }
        let about = self.project.property(argument, "description");
        if let Some(text) = about.and_then(|place| self.project.text(&place)) {
            tool.description = tidy(&text);
        }
        let keyed = SCHEMA_KEYS.iter().find_map(|key| self.project.property(argument, key));
        let is_config = keyed.is_some()
            || ["description", "title", "annotations"].iter().any(|key| {
                self.project
                    .property(argument, key)
                    .is_some_and(|place| !schema::is_type(self.project, &place))
            });
        match keyed {
            Some(schema) => tool.parameters = schema::parameters(self.project, &schema),
            None if !is_config && tool.parameters.is_empty() => {
                tool.parameters = schema::parameters(self.project, argument);
            }
            None => {}
        }
    }

    /// `addTool({ name, description, parameters, execute })`, in a loop or not.
    fn add(&mut self, argument: &Place<'t>, above: &[Node<'t>]) {
        let mut is_named = false;
        for place in self.turns(argument, above, argument.node) {
            if let Some(tool) = from_object(self.project, &place) {
                is_named = true;
                self.tools.push(tool);
            }
        }
        self.is_whole &= is_named;
    }

    fn list(&mut self, tools: &Place<'t>) {
        let elements = self.project.elements(tools);
        self.is_whole &= !elements.is_empty();
        for element in elements {
            match from_object(self.project, &element) {
                Some(tool) => self.tools.push(tool),
                None => self.is_whole = false,
            }
        }
    }

    /// The handler of `tools/list`: what it returns.
    fn handler(&mut self, handler: &Place<'t>) {
        let returned = self.project.returned(handler);
        let lists: Vec<_> =
            returned.iter().filter_map(|place| self.project.property(place, "tools")).collect();
        self.is_whole &= !lists.is_empty();
        for list in lists {
            self.list(&list);
        }
    }

    /// The place as it is, or once for each turn of the loop around it, if that is what names the tools.
    fn turns(&self, place: &Place<'t>, above: &[Node<'t>], name: Node<'t>) -> Vec<Place<'t>> {
        let is_known = |place: &Place<'t>| {
            let named = place.with(name);
            self.project.text(&named).is_some() || from_object(self.project, &named).is_some()
        };
        if is_known(place) {
            return vec![place.clone()];
        }
        for (at, outer) in above.iter().enumerate().rev().take(ABOVE_MAX) {
            let kind = outer.kind();
            if kind != "for_in_statement" && !FUNCTIONS.contains(&kind) {
                continue;
            }
            let call = at.checked_sub(2).and_then(|at| above.get(at)).copied();
            let turns = self.project.turns(place, *outer, call);
            let known: Vec<_> = turns.into_iter().filter(|turn| is_known(turn)).collect();
            if !known.is_empty() {
                return known;
            }
        }
        Vec::new()
    }
}

/// Whether an argument is what runs when the tool is called.
fn is_handler(node: Node) -> bool {
    FUNCTIONS.contains(&node.kind())
        || matches!(node.kind(), "identifier" | "member_expression" | "call_expression")
}

fn tool(project: &Project, place: &Place, name: String) -> Tool {
    Tool {
        name,
        file: project.path(place).to_owned(),
        line: line(place.node),
        description: String::new(),
        parameters: Vec::new(),
    }
}

/// A tool as an object tells of it.
fn from_object(project: &Project, place: &Place) -> Option<Tool> {
    let named = project.property(place, "name")?;
    let mut tool = tool(project, &project.resolve(place), project.text(&named)?);
    let about = project.property(place, "description").and_then(|place| project.text(&place));
    tool.description = about.map(|text| tidy(&text)).unwrap_or_default();
    let schema = SCHEMA_KEYS.iter().find_map(|key| project.property(place, key));
    tool.parameters = schema.map(|schema| schema::parameters(project, &schema)).unwrap_or_default();
    Some(tool)
}

/// A literal that can be nothing but a tool: it has a name and says what it wants.
fn by_shape(project: &Project, place: &Place) -> Option<Tool> {
    let keys: Vec<&str> = children(place.node)
        .into_iter()
        .filter_map(|pair| field(pair, "key").or_else(|| field(pair, "name")))
        .map(|key| project.word(place, key).trim_matches(['"', '\'']))
        .collect();
    let has = |key: &str| keys.contains(&key);
    let runs = has("execute") || has("handler") || has("run");
    let is_tool = has("name")
        && (has("inputSchema")
            || has("input_schema")
            || (has("parameters") && runs && has("description")));
    if is_tool { from_object(project, place) } else { None }
}

/// What a function may return, as expressions.
fn returns(function: Node<'_>) -> Vec<Node<'_>> {
    let Some(body) = field(function, "body") else { return Vec::new() };
    if body.kind() != "statement_block" {
        return vec![body];
    }
    let statements = below(body, &["return_statement"], &FUNCTIONS);
    statements.into_iter().filter_map(|statement| children(statement).into_iter().next()).collect()
}
