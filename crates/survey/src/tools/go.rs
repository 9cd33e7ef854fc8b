//! Tools of Go: `mcp.NewTool("name", …)` of mcp-go, and `mcp.Tool{Name: …}` of the official SDK.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use tree_sitter::Node;

use super::{Kept, Parameter, Tool, tidy};
use crate::source::{Parsed, children, field, line, nearest, unescape};

/// Constants and structs of all files, by name: a package spreads over its files.
struct Names<'t> {
    values: HashMap<&'t str, (usize, Node<'t>)>,
    structs: HashMap<&'t str, (usize, Node<'t>)>,
    functions: HashMap<&'t str, (usize, Node<'t>)>,
    files: &'t [Parsed],
}

pub fn tools(files: &[Parsed], kept: &mut Kept) {
    let names = Names::new(files);
    for (file, parsed) in files.iter().enumerate() {
        parsed.each(|node, above| match node.kind() {
            "call_expression" => kept.extend(names.new_tool(file, node)),
            "composite_literal" => kept.extend(names.literal(file, node, above)),
            _ => {}
        });
    }
}

impl<'t> Names<'t> {
    fn new(files: &'t [Parsed]) -> Names<'t> {
        let mut names = Names {
            values: HashMap::new(),
            structs: HashMap::new(),
            functions: HashMap::new(),
            files,
        };
        for (file, parsed) in files.iter().enumerate() {
            parsed.each(|node, _| match node.kind() {
                "const_spec" | "var_spec" => {
                    let value =
                        field(node, "value").and_then(|list| children(list).into_iter().next());
                    if let (Some(name), Some(value)) = (field(node, "name"), value) {
                        names.values.entry(parsed.word(name)).or_insert((file, value));
                    }
                }
                "type_spec" => {
                    let kind = field(node, "type").filter(|kind| kind.kind() == "struct_type");
                    if let (Some(name), Some(kind)) = (field(node, "name"), kind) {
                        names.structs.entry(parsed.word(name)).or_insert((file, kind));
                    }
                }
                "function_declaration" | "method_declaration" => {
                    if let Some(name) = field(node, "name") {
                        names.functions.entry(parsed.word(name)).or_insert((file, node));
                    }
                }
                _ => {}
            });
        }
        names
    }

    fn text(&self, file: usize, node: Node<'t>) -> Option<String> {
        let mut rest = vec![(file, node)];
        let mut parts = Vec::new();
        let mut steps = 0;
        while let Some((file, node)) = rest.pop() {
            steps += 1;
            if steps > 1000 {
                return None;
            }
            let word = self.files[file].word(node);
            match node.kind() {
                "interpreted_string_literal" => parts.push(unescape(word.trim_matches('"'))),
                "raw_string_literal" => parts.push(word.trim_matches('`').to_owned()),
                "binary_expression" => {
                    rest.push((file, field(node, "left")?));
                    rest.push((file, field(node, "right")?));
                }
                "parenthesized_expression" => rest.push((file, *children(node).first()?)),
                "identifier" => rest.push(*self.values.get(word)?),
                "selector_expression" => {
                    let name = self.files[file].word(field(node, "field")?);
                    rest.push(*self.values.get(name)?);
                }
                // A translation: `t("KEY", "what it says by default")`.
                "call_expression" => {
                    let given = children(field(node, "arguments")?);
                    rest.push((file, *given.last()?));
                }
                _ => return None,
            }
        }
        parts.reverse();
        Some(parts.concat())
    }

    /// `mcp.NewTool("name", mcp.WithDescription("…"), mcp.WithString("key", mcp.Required()))`
    fn new_tool(&self, file: usize, call: Node<'t>) -> Option<Tool> {
        let (name, given) = self.called(file, call)?;
        if name != "NewTool" && name != "NewToolWithRawSchema" {
            return None;
        }
        let mut tool = self.tool(file, call, self.text(file, *given.first()?)?);
        for option in &given[1..] {
            let Some((option, given)) = self.called(file, *option) else {
                if let Some(text) =
                    self.text(file, *option).filter(|_| name == "NewToolWithRawSchema")
                {
                    tool.description = tidy(&text);
                }
                continue;
            };
            if option == "WithDescription" {
                let text = given.first().and_then(|text| self.text(file, *text));
                tool.description = text.map(|text| tidy(&text)).unwrap_or_default();
                continue;
            }
            let kinds = ["String", "Number", "Boolean", "Object", "Array", "Integer", "Any"];
            let kind = option.strip_prefix("With").filter(|kind| kinds.contains(kind));
            let key = given.first().and_then(|key| self.text(file, *key));
            if let (Some(kind), Some(key)) = (kind, key) {
                tool.parameters.push(self.option(file, kind, key, &given[1..]));
            }
        }
        Some(tool)
    }

    fn option(&self, file: usize, kind: &str, name: String, given: &[Node<'t>]) -> Parameter {
        let mut found = Parameter {
            name,
            kind: kind.to_lowercase(),
            description: String::new(),
            required: false,
        };
        for option in given {
            match self.called(file, *option) {
                Some(("Required", _)) => found.required = true,
                Some(("Description", given)) => {
                    let text = given.first().and_then(|text| self.text(file, *text));
                    found.description = text.map(|text| tidy(&text)).unwrap_or_default();
                }
                _ => {}
            }
        }
        found
    }

    /// The function of a call, without its package, and its arguments.
    fn called(&self, file: usize, call: Node<'t>) -> Option<(&'t str, Vec<Node<'t>>)> {
        let function = field(call, "function").filter(|_| call.kind() == "call_expression")?;
        let name = field(function, "field").unwrap_or(function);
        Some((self.files[file].word(name), children(field(call, "arguments")?)))
    }

    /// `mcp.Tool{Name: "…", Description: "…"}`
    fn literal(&self, file: usize, node: Node<'t>, above: &[Node<'t>]) -> Option<Tool> {
        let kind = self.files[file].word(field(node, "type")?);
        if kind != "mcp.Tool" && kind != "mcpsdk.Tool" && kind != "sdk.Tool" {
            return None;
        }
        let body = field(node, "body")?;
        let name = self.text(file, self.keyed(file, body, "Name")?)?;
        let mut tool = self.tool(file, node, name);
        let about = self.keyed(file, body, "Description").and_then(|text| self.text(file, text));
        tool.description = about.map(|text| tidy(&text)).unwrap_or_default();
        tool.parameters = self.arguments_of(file, above);
        Some(tool)
    }

    fn keyed(&self, file: usize, body: Node<'t>, key: &str) -> Option<Node<'t>> {
        children(body).into_iter().filter(|pair| pair.kind() == "keyed_element").find_map(|pair| {
            let parts = children(pair);
            let is_it = self.files[file].word(*parts.first()?) == key;
            let value = *parts.get(1)?;
            let inner =
                if value.kind() == "literal_element" { *children(value).first()? } else { value };
            is_it.then_some(inner)
        })
    }

    /// `mcp.AddTool(server, &mcp.Tool{…}, handler)`: the struct that the handler takes.
    fn arguments_of(&self, file: usize, above: &[Node<'t>]) -> Vec<Parameter> {
        let call = nearest(above).find(|outer| outer.kind() == "call_expression");
        let called = call.and_then(|call| self.called(file, call));
        let Some(("AddTool", given)) = called else { return Vec::new() };
        let Some(handler) = given.last() else { return Vec::new() };
        let (file, function) = match handler.kind() {
            "identifier" => match self.functions.get(self.files[file].word(*handler)) {
                Some(found) => *found,
                None => return Vec::new(),
            },
            _ => (file, *handler),
        };
        let last = field(function, "parameters").map(children).unwrap_or_default().pop();
        let kind = last.and_then(|last| field(last, "type"));
        let name = kind.map(|kind| self.files[file].word(kind).trim_start_matches('*'));
        let found = name.and_then(|name| self.structs.get(name));
        found.map(|(file, kind)| self.fields(*file, *kind)).unwrap_or_default()
    }

    fn fields(&self, file: usize, kind: Node<'t>) -> Vec<Parameter> {
        let list = children(kind).into_iter().next().map(children).unwrap_or_default();
        let mut found = Vec::new();
        for one in list.into_iter().filter(|one| one.kind() == "field_declaration") {
            let tag = field(one, "tag").map(|tag| self.files[file].word(tag)).unwrap_or_default();
            let Some(json) = tagged(tag, "json") else { continue };
            let mut options = json.split(',');
            let name = options.next().unwrap_or_default();
            if name.is_empty() || name == "-" {
                continue;
            }
            let kind = field(one, "type").map(|kind| self.files[file].word(kind));
            let about = tagged(tag, "jsonschema").unwrap_or_default();
            found.push(Parameter {
                name: name.to_owned(),
                kind: kind.unwrap_or_default().to_owned(),
                description: about.rsplit("description=").next().unwrap_or_default().to_owned(),
                required: !options.any(|option| option.starts_with("omit")),
            });
        }
        found
    }

    fn tool(&self, file: usize, node: Node, name: String) -> Tool {
        Tool {
            name,
            file: self.files[file].path.clone(),
            line: line(node),
            description: String::new(),
            parameters: Vec::new(),
        }
    }
}

/// One value of a struct tag: `` `json:"name,omitempty" jsonschema:"…"` ``.
fn tagged<'a>(tag: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!("{key}:\""))?;
    rest.split('"').next()
}
