//! What names mean: followed through constants, enums, imports, loops and returns, as far as the sources alone tell.

mod lists;
mod module;

use std::cell::Cell;
use std::rc::Rc;

use tree_sitter::Node;

use super::returns;
use crate::limits::{STEPS_MAX, WORK_MAX};
use crate::source::{Parsed, children, field, unescape};
use module::Module;

pub const FUNCTIONS: [&str; 6] = [
    "arrow_function",
    "function_expression",
    "function_declaration",
    "generator_function",
    "generator_function_declaration",
    "method_definition",
];

/// A longer text is no name and no description.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A node in its file, with what the loops and calls around it bind.
#[derive(Clone)]
pub struct Place<'t> {
    pub file: usize,
    pub node: Node<'t>,
    bound: Option<Rc<Bound<'t>>>,
    /// How far it is from where the search began.
    steps: usize,
}

struct Bound<'t> {
    name: String,
    value: Item<'t>,
    next: Option<Rc<Bound<'t>>>,
}

/// One turn of a loop.
#[derive(Clone)]
enum Item<'t> {
    Place(Place<'t>),
    Text(String),
    /// A key with its value.
    Pair(String, Place<'t>),
}

impl<'t> Place<'t> {
    pub fn new(file: usize, node: Node<'t>) -> Place<'t> {
        Place { file, node, bound: None, steps: 0 }
    }

    /// Another node of the same surroundings.
    pub fn with(&self, node: Node<'t>) -> Place<'t> {
        Place { node, steps: self.steps + 1, ..self.clone() }
    }

    fn elsewhere(&self, file: usize, node: Node<'t>) -> Place<'t> {
        let bound = if file == self.file { self.bound.clone() } else { None };
        Place { file, node, bound, steps: self.steps + 1 }
    }

    fn bind(&self, name: &str, value: Item<'t>) -> Place<'t> {
        let next = self.bound.clone();
        let bound = Some(Rc::new(Bound { name: name.to_owned(), value, next }));
        Place { bound, ..self.clone() }
    }
}

/// All files of a survey, and what each declares.
pub struct Project<'t> {
    files: &'t [Parsed],
    modules: Vec<Module<'t>>,
    work: Cell<usize>,
}

impl<'t> Project<'t> {
    pub fn new(files: &'t [Parsed]) -> Project<'t> {
        let modules = files.iter().map(Module::new).collect();
        Project { files, modules, work: Cell::new(WORK_MAX) }
    }

    pub fn path(&self, place: &Place) -> &'t str {
        &self.files[place.file].path
    }

    pub fn word(&self, place: &Place, node: Node) -> &'t str {
        self.files[place.file].word(node)
    }

    /// Whether the search may go on from here.
    pub fn may_go_on(&self, place: &Place) -> bool {
        let left = self.work.get();
        self.work.set(left.saturating_sub(1));
        left > 0 && place.steps < STEPS_MAX && !self.files[place.file].is_late()
    }

    /// The node that a name or a path of names stands for; the place itself if that is not known.
    pub fn resolve(&self, place: &Place<'t>) -> Place<'t> {
        if !self.may_go_on(place) {
            return place.clone();
        }
        let next = match place.node.kind() {
            "identifier" | "shorthand_property_identifier" => self.look_up(place),
            "as_expression"
            | "satisfies_expression"
            | "non_null_expression"
            | "await_expression"
            | "parenthesized_expression" => {
                children(place.node).first().map(|inner| place.with(*inner))
            }
            "member_expression" | "subscript_expression" => self.member(place),
            _ => None,
        };
        next.map_or_else(|| place.clone(), |next| self.resolve(&next))
    }

    /// What an identifier was set to.
    fn look_up(&self, place: &Place<'t>) -> Option<Place<'t>> {
        let name = self.word(place, place.node);
        if let Some(Item::Place(value)) = Self::bound(place, name) {
            return Some(Place { steps: place.steps + 1, ..value });
        }
        let module = &self.modules[place.file];
        if let Some(value) = module.declared(name, place.node) {
            return (value.id() != place.node.id()).then(|| place.with(value));
        }
        let import = module.imports.get(name)?;
        let exported = if import.name == "*" { return None } else { import.name };
        self.exported(place.file, import.from, exported)
            .map(|(file, node)| place.elsewhere(file, node))
    }

    fn bound(place: &Place<'t>, name: &str) -> Option<Item<'t>> {
        let mut bound = place.bound.as_ref();
        while let Some(binding) = bound {
            if binding.name == name {
                return Some(binding.value.clone());
            }
            bound = binding.next.as_ref();
        }
        None
    }

    /// What the module that `specifier` means calls `name`.
    fn exported(&self, from: usize, specifier: &str, name: &str) -> Option<(usize, Node<'t>)> {
        let mut open = vec![module::find(self.files, &self.files[from].path, specifier)];
        let mut steps = 0;
        while let Some(target) = open.pop() {
            steps += 1;
            let Some(file) = target.filter(|_| steps < STEPS_MAX) else { continue };
            let module = &self.modules[file];
            if let Some(value) = module.top_level(name) {
                return Some((file, value));
            }
            if let Some(import) = module.imports.get(name) {
                let found = module::find(self.files, &self.files[file].path, import.from);
                let value =
                    found.and_then(|file| Some((file, self.modules[file].top_level(import.name)?)));
                if value.is_some() {
                    return value;
                }
            }
            open.extend(
                module
                    .stars
                    .iter()
                    .map(|star| module::find(self.files, &self.files[file].path, star)),
            );
        }
        // An import by an alias of the build: any file that says what it is.
        let mut all = self.modules.iter().enumerate();
        all.find_map(|(file, module)| Some((file, module.top_level(name)?)))
    }

    /// `object.property` or `object["property"]`.
    fn member(&self, place: &Place<'t>) -> Option<Place<'t>> {
        let object = field(place.node, "object")?;
        let key = match field(place.node, "property") {
            Some(property) => self.word(place, property).to_owned(),
            None => self.text(&place.with(field(place.node, "index")?))?,
        };
        let name = self.word(place, object);
        let module = &self.modules[place.file];
        if let Some(import) = module.imports.get(name) {
            if import.name == "*" {
                return self
                    .exported(place.file, import.from, &key)
                    .map(|(file, node)| place.elsewhere(file, node));
            }
            let target = module::find(self.files, &self.files[place.file].path, import.from);
            let assigned = target.and_then(|file| {
                let value = self.modules[file].members.get(&(import.name, key.as_str().into()))?;
                Some(place.elsewhere(file, *value))
            });
            if assigned.is_some() {
                return assigned;
            }
        }
        if let Some(value) = module.members.get(&(name, key.as_str().into())) {
            return Some(place.with(*value));
        }
        let inner = place.with(object);
        self.property(&inner, &key).or_else(|| (key == "shape").then_some(inner))
    }

    /// What an object, an enum, a class or a call holds under a key.
    pub fn property(&self, place: &Place<'t>, key: &str) -> Option<Place<'t>> {
        if !self.may_go_on(place) {
            return None;
        }
        let place = self.resolve(place);
        match place.node.kind() {
            "object" => self.pair(&place, key),
            "enum_declaration" => self.variant(&place, key),
            "call_expression" | "new_expression" => {
                let returned = self.called(&place);
                let given = field(place.node, "arguments").map(children).unwrap_or_default();
                let given = given.into_iter().map(|argument| place.with(argument));
                returned.into_iter().chain(given).find_map(|value| {
                    let value = self.resolve(&value);
                    (value.node.kind() == "object").then(|| self.pair(&value, key)).flatten()
                })
            }
            _ => None,
        }
    }

    fn pair(&self, place: &Place<'t>, key: &str) -> Option<Place<'t>> {
        for pair in children(place.node).into_iter().rev() {
            match pair.kind() {
                "pair" if self.key(place, pair).as_deref() == Some(key) => {
                    return field(pair, "value").map(|value| place.with(value));
                }
                "shorthand_property_identifier" if self.word(place, pair) == key => {
                    return Some(place.with(pair));
                }
                "spread_element" => {
                    let inner = children(pair).first().map(|inner| place.with(*inner));
                    let found = inner.and_then(|inner| self.property(&inner, key));
                    if found.is_some() {
                        return found;
                    }
                }
                "method_definition" if self.key(place, pair).as_deref() == Some(key) => {
                    return Some(place.with(pair));
                }
                _ => {}
            }
        }
        None
    }

    /// The key of a pair, computed ones too.
    pub fn key(&self, place: &Place<'t>, pair: Node<'t>) -> Option<String> {
        let key = field(pair, "key").or_else(|| field(pair, "name"))?;
        match key.kind() {
            "string" => self.text(&place.with(key)),
            "computed_property_name" => self.text(&place.with(*children(key).first()?)),
            _ => Some(self.word(place, key).to_owned()),
        }
    }

    fn variant(&self, place: &Place<'t>, key: &str) -> Option<Place<'t>> {
        let body = field(place.node, "body")?;
        children(body).into_iter().find_map(|variant| {
            let name = field(variant, "name")?;
            let is_it = self.word(place, name).trim_matches(['"', '\'']) == key;
            if is_it { field(variant, "value").map(|value| place.with(value)) } else { None }
        })
    }

    /// What a call of one of our functions may return.
    fn called(&self, place: &Place<'t>) -> Vec<Place<'t>> {
        let Some(function) = field(place.node, "function") else { return Vec::new() };
        let target = self.resolve(&place.with(function));
        if target.node.id() == function.id() { Vec::new() } else { self.returned(&target) }
    }

    /// What a function may return; for one that is wrapped, what the wrapped one does.
    pub fn returned(&self, place: &Place<'t>) -> Vec<Place<'t>> {
        if !self.may_go_on(place) {
            return Vec::new();
        }
        let place = self.resolve(place);
        if FUNCTIONS.contains(&place.node.kind()) {
            return returns(place.node).into_iter().map(|value| place.with(value)).collect();
        }
        if place.node.kind() != "call_expression" {
            return Vec::new();
        }
        let bound = field(place.node, "function").and_then(|function| field(function, "object"));
        let given = field(place.node, "arguments").map(children).unwrap_or_default();
        let inner = given.into_iter().chain(bound).map(|inner| place.with(inner));
        inner
            .map(|inner| self.returned(&inner))
            .find(|values| !values.is_empty())
            .unwrap_or_default()
    }

    /// The text that an expression is, if the sources alone tell.
    pub fn text(&self, place: &Place<'t>) -> Option<String> {
        if !self.may_go_on(place) {
            return None;
        }
        if place.node.kind() == "identifier"
            && let Some(Item::Text(text)) = Self::bound(place, self.word(place, place.node))
        {
            return Some(text);
        }
        let place = self.resolve(place);
        let text = match place.node.kind() {
            "string" => Some(unescape(inside(self.word(&place, place.node)))),
            "template_string" => self.template(&place),
            "binary_expression" => self.sum(&place),
            "call_expression" => self.text_of_call(&place),
            _ => None,
        };
        text.filter(|text| text.len() <= TEXT_BYTES_MAX)
    }

    fn template(&self, place: &Place<'t>) -> Option<String> {
        let mut text = String::new();
        for part in children(place.node) {
            match part.kind() {
                "template_substitution" => {
                    text += &self.text(&place.with(*children(part).first()?))?;
                }
                _ => text += &unescape(self.word(place, part)),
            }
            if text.len() > TEXT_BYTES_MAX {
                return None;
            }
        }
        Some(text)
    }

    /// A sum of texts, however many.
    fn sum(&self, place: &Place<'t>) -> Option<String> {
        let mut rest = vec![place.node];
        let mut parts = Vec::new();
        while let Some(node) = rest.pop() {
            let operator = field(node, "operator").map(|operator| self.word(place, operator));
            match (node.kind(), operator) {
                ("binary_expression", Some("+")) => {
                    rest.push(field(node, "left")?);
                    rest.push(field(node, "right")?);
                }
                ("binary_expression", _) => return None,
                _ => parts.push(self.text(&place.with(node))?),
            }
        }
        parts.reverse();
        Some(parts.concat())
    }

    /// `[…].join(…)`, `"…".trim()`, or a tagged template.
    fn text_of_call(&self, place: &Place<'t>) -> Option<String> {
        let function = field(place.node, "function")?;
        let arguments = field(place.node, "arguments")?;
        if arguments.kind() == "template_string" {
            return self.template(&place.with(arguments));
        }
        let method = field(function, "property").map(|method| self.word(place, method))?;
        let object = place.with(field(function, "object")?);
        match method {
            "join" => {
                let between =
                    children(arguments).first().and_then(|node| self.text(&place.with(*node)));
                let parts: Option<Vec<String>> =
                    self.elements(&object).iter().map(|part| self.text(part)).collect();
                Some(parts?.join(&between.unwrap_or_else(|| ",".to_owned())))
            }
            "trim" => self.text(&object).map(|text| text.trim().to_owned()),
            _ => None,
        }
    }
}

/// A literal without its quotes.
fn inside(literal: &str) -> &str {
    literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default()
}
