//! One file: what it declares, assigns, imports and pushes.

use std::collections::HashMap;

use tree_sitter::Node;

use crate::scopes::Declared;
use crate::source::{Parsed, children, field, nearest};

/// What a file says, by name.
#[derive(Default)]
pub struct Module<'t> {
    /// Values, each with the part of the file where its name is known.
    names: HashMap<&'t str, Declared<'t>>,
    pub imports: HashMap<&'t str, Import<'t>>,
    /// `object.member = value`, fields of classes as members of `this`, and what compiled enums assign.
    pub members: HashMap<(&'t str, Box<str>), Node<'t>>,
    /// What is pushed onto a list, by the list's name.
    pub pushes: HashMap<&'t str, Vec<Node<'t>>>,
    /// Modules whose names are this one's too.
    pub stars: Vec<&'t str>,
}

/// A name of another module.
pub struct Import<'t> {
    pub from: &'t str,
    /// `*` for the whole module.
    pub name: &'t str,
}

impl<'t> Module<'t> {
    pub fn new(parsed: &'t Parsed) -> Module<'t> {
        let mut module = Module::default();
        parsed.each(|node, above| match node.kind() {
            "variable_declarator" => module.variable(parsed, node, above),
            "function_declaration" | "class_declaration" | "enum_declaration" => {
                if let Some(name) = field(node, "name") {
                    module.declare(parsed.word(name), above, node);
                }
            }
            "public_field_definition" | "method_definition" => {
                module.member_of_class(parsed, node, above);
            }
            "assignment_expression" => module.assignment(parsed, node),
            "import_statement" => module.import(parsed, node),
            "export_statement" => module.export(parsed, node),
            "call_expression" => module.push(parsed, node),
            _ => {}
        });
        module
    }

    fn declare(&mut self, name: &'t str, above: &[Node<'t>], value: Node<'t>) {
        let scopes = ["statement_block", "program", "class_body"];
        let scope =
            nearest(above).find(|outer| scopes.contains(&outer.kind()) && outer.id() != value.id());
        let part = scope.filter(|scope| scope.kind() != "program").map(|scope| scope.byte_range());
        self.names.entry(name).or_default().add(part, value);
    }

    fn variable(&mut self, parsed: &'t Parsed, node: Node<'t>, above: &[Node<'t>]) {
        let (Some(name), Some(value)) = (field(node, "name"), field(node, "value")) else { return };
        if let Some(from) = required(parsed, value) {
            match name.kind() {
                "object_pattern" => {
                    for part in children(name) {
                        let (key, local) = match (field(part, "key"), field(part, "value")) {
                            (Some(key), Some(local)) => (key, local),
                            _ => (part, part),
                        };
                        let import = Import { from, name: parsed.word(key) };
                        self.imports.insert(parsed.word(local), import);
                    }
                }
                _ => drop(self.imports.insert(parsed.word(name), Import { from, name: "*" })),
            }
        } else if name.kind() == "identifier" {
            self.declare(parsed.word(name), above, value);
        }
    }

    fn member_of_class(&mut self, parsed: &'t Parsed, node: Node<'t>, above: &[Node<'t>]) {
        let Some(name) = field(node, "name") else { return };
        let value =
            if node.kind() == "method_definition" { Some(node) } else { field(node, "value") };
        let Some(value) = value else { return };
        let class = nearest(above)
            .find(|outer| outer.kind().starts_with("class") && outer.kind() != "class_body");
        let Some(class) = class else { return };
        let key: Box<str> = parsed.word(name).into();
        self.members.entry(("this", key.clone())).or_insert(value);
        if let Some(class) = field(class, "name") {
            self.members.entry((parsed.word(class), key)).or_insert(value);
        }
    }

    fn assignment(&mut self, parsed: &'t Parsed, node: Node<'t>) {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else { return };
        let key = match left.kind() {
            "member_expression" => field(left, "property").map(|key| parsed.word(key)),
            "subscript_expression" => field(left, "index")
                .filter(|key| key.kind() == "string")
                .map(|key| parsed.word(key).trim_matches(['"', '\''])),
            _ => None,
        };
        let (Some(key), Some(object)) = (key, field(left, "object")) else { return };
        match parsed.word(object) {
            "exports" | "module.exports" => {
                self.names.entry(key).or_default().add(None, right);
            }
            "module" if key == "exports" => {
                self.names.entry("default").or_default().add(None, right);
            }
            object => {
                self.members.entry((object, key.into())).or_insert(right);
            }
        }
    }

    fn import(&mut self, parsed: &'t Parsed, node: Node<'t>) {
        let Some(from) = field(node, "source").map(|source| quoted(parsed, source)) else { return };
        for clause in children(node).into_iter().filter(|part| part.kind() == "import_clause") {
            for part in children(clause) {
                match part.kind() {
                    "identifier" => {
                        self.imports.insert(parsed.word(part), Import { from, name: "default" });
                    }
                    "namespace_import" => {
                        for name in children(part) {
                            self.imports.insert(parsed.word(name), Import { from, name: "*" });
                        }
                    }
                    "named_imports" => {
                        for name in children(part) {
                            self.name_from(parsed, name, from);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn name_from(&mut self, parsed: &'t Parsed, specifier: Node<'t>, from: &'t str) {
        let Some(name) = field(specifier, "name") else { return };
        let local = field(specifier, "alias").unwrap_or(name);
        self.imports.insert(parsed.word(local), Import { from, name: parsed.word(name) });
    }

    fn export(&mut self, parsed: &'t Parsed, node: Node<'t>) {
        if let Some(value) = field(node, "value") {
            self.names.entry("default").or_default().add(None, value);
        }
        let from = field(node, "source").map(|source| quoted(parsed, source));
        let clauses = children(node).into_iter().filter(|part| part.kind() == "export_clause");
        let mut is_star = from.is_some();
        for specifier in clauses.flat_map(children) {
            is_star = false;
            match (from, field(specifier, "name"), field(specifier, "alias")) {
                (Some(from), ..) => self.name_from(parsed, specifier, from),
                (None, Some(name), Some(alias)) => {
                    self.names.entry(parsed.word(alias)).or_default().add(None, name);
                }
                _ => {}
            }
        }
        if is_star {
            self.stars.extend(from);
        }
    }

    fn push(&mut self, parsed: &'t Parsed, call: Node<'t>) {
        let Some(function) = field(call, "function") else { return };
        let (Some(list), Some(method)) = (field(function, "object"), field(function, "property"))
        else {
            return;
        };
        if matches!(parsed.word(method), "push" | "unshift") {
            let given = field(call, "arguments").map(children).unwrap_or_default();
            self.pushes.entry(parsed.word(list)).or_default().extend(given);
        }
    }

    /// The value of a name as it is known at a node: the innermost counts.
    pub fn declared(&self, name: &str, at: Node) -> Option<Node<'t>> {
        self.names.get(name)?.at(at.start_byte())
    }

    /// The value of a name that others can import.
    pub fn top_level(&self, name: &str) -> Option<Node<'t>> {
        self.names.get(name)?.everywhere
    }
}

/// The file that a specifier means, seen from another file.
pub fn find(files: &[Parsed], from: &str, specifier: &str) -> Option<usize> {
    if !specifier.starts_with('.') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    let stem = [".js", ".mjs", ".cjs", ".jsx", ".ts"]
        .iter()
        .find_map(|end| path.strip_suffix(end))
        .unwrap_or(&path);
    let is_it = |candidate: &str| {
        let rest = candidate.strip_prefix(stem);
        let rest = rest.map(|rest| rest.strip_prefix("/index").unwrap_or(rest));
        candidate == path
            || rest.is_some_and(|rest| rest.starts_with('.') && !rest[1..].contains(['.', '/']))
    };
    let mut all = files.iter().enumerate();
    all.find(|(_, file)| is_it(&file.path)).map(|(index, _)| index)
}

/// The module of `require("…")`.
fn required<'t>(parsed: &'t Parsed, value: Node<'t>) -> Option<&'t str> {
    if value.kind() != "call_expression" || parsed.word(field(value, "function")?) != "require" {
        return None;
    }
    let given = children(field(value, "arguments")?);
    given.first().filter(|node| node.kind() == "string").map(|node| quoted(parsed, *node))
}

fn quoted<'t>(parsed: &'t Parsed, node: Node) -> &'t str {
    parsed.word(node).trim_matches(['"', '\''])
}
