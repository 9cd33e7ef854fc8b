//! What names mean in Python: constants, enums and classes, in their own file or in another.

use std::cell::Cell;
use std::collections::HashMap;

use tree_sitter::Node;

use crate::limits::{STEPS_MAX, WORK_MAX};
use crate::scopes::Declared;
use crate::source::{Parsed, children, field, nearest, unescape};

const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A node in its file.
#[derive(Clone, Copy)]
pub struct Place<'t> {
    pub file: usize,
    pub node: Node<'t>,
    steps: usize,
}

impl<'t> Place<'t> {
    pub fn new(file: usize, node: Node<'t>) -> Place<'t> {
        Place { file, node, steps: 0 }
    }

    pub fn with(self, node: Node<'t>) -> Place<'t> {
        Place { node, steps: self.steps + 1, ..self }
    }
}

/// What a file declares, each with the part of the file where its name is known.
type Names<'t> = HashMap<&'t str, Declared<'t>>;

/// All files of a survey, and what each declares.
pub struct Project<'t> {
    files: &'t [Parsed],
    names: Vec<Names<'t>>,
    /// Imported names with the name that they have at home.
    imports: Vec<HashMap<&'t str, &'t str>>,
    /// Whether a file imports the SDK or `fastmcp`.
    speaks_mcp: Vec<bool>,
    work: Cell<usize>,
}

impl<'t> Project<'t> {
    pub fn new(files: &'t [Parsed]) -> Project<'t> {
        let mut project = Project {
            files,
            names: Vec::new(),
            imports: Vec::new(),
            speaks_mcp: Vec::new(),
            work: Cell::new(WORK_MAX),
        };
        for parsed in files {
            let (mut names, mut imports, mut speaks_mcp) = (Names::new(), HashMap::new(), false);
            parsed.each(|node, above| match node.kind() {
                "assignment" => {
                    let (left, right) = (field(node, "left"), field(node, "right"));
                    if let (Some(left), Some(right)) =
                        (left.filter(|left| left.kind() == "identifier"), right)
                    {
                        declare(&mut names, parsed, left, above, right);
                    }
                }
                "class_definition" | "function_definition" => {
                    if let Some(name) = field(node, "name") {
                        declare(&mut names, parsed, name, above, node);
                    }
                }
                "import_from_statement" | "import_statement" => {
                    let from = field(node, "module_name").or_else(|| field(node, "name"));
                    let from = from.map_or("", |from| parsed.word(from));
                    let first = from.split('.').next().unwrap_or_default();
                    speaks_mcp |= matches!(first, "mcp" | "fastmcp");
                    for name in
                        children(node).into_iter().filter(|part| part.kind() == "aliased_import")
                    {
                        if let (Some(name), Some(alias)) =
                            (field(name, "name"), field(name, "alias"))
                        {
                            imports.insert(parsed.word(alias), parsed.word(name));
                        }
                    }
                }
                _ => {}
            });
            project.names.push(names);
            project.imports.push(imports);
            project.speaks_mcp.push(speaks_mcp);
        }
        project
    }

    pub fn path(&self, file: usize) -> &'t str {
        &self.files[file].path
    }

    pub fn word(&self, file: usize, node: Node) -> &'t str {
        self.files[file].word(node)
    }

    pub fn imports_mcp(&self, file: usize) -> bool {
        self.speaks_mcp[file]
    }

    pub fn may_go_on(&self, place: &Place) -> bool {
        let left = self.work.get();
        self.work.set(left.saturating_sub(1));
        left > 0 && place.steps < STEPS_MAX && !self.files[place.file].is_late()
    }

    /// The node that a name or a path of names stands for.
    pub fn resolve(&self, place: &Place<'t>) -> Place<'t> {
        if !self.may_go_on(place) {
            return *place;
        }
        let next = match place.node.kind() {
            "identifier" => self.look_up(place),
            "parenthesized_expression" => {
                children(place.node).first().map(|inner| place.with(*inner))
            }
            "attribute" => self.attribute(place),
            _ => None,
        };
        next.map_or(*place, |next| self.resolve(&next))
    }

    fn look_up(&self, place: &Place<'t>) -> Option<Place<'t>> {
        let name = self.word(place.file, place.node);
        let known = self.names[place.file].get(name);
        if let Some(value) = known.and_then(|known| known.at(place.node.start_byte())) {
            return (value.id() != place.node.id()).then(|| place.with(value));
        }
        let home = self.imports[place.file].get(name).copied().unwrap_or(name);
        self.anywhere(place, home)
    }

    /// A name that any file declares for all.
    fn anywhere(&self, place: &Place<'t>, name: &str) -> Option<Place<'t>> {
        let mut all = self.names.iter().enumerate();
        all.find_map(|(file, names)| {
            let node = names.get(name)?.everywhere?;
            Some(Place { file, node, steps: place.steps + 1 })
        })
    }

    /// `Class.MEMBER`, `Class.MEMBER.value`, `module.NAME`.
    fn attribute(&self, place: &Place<'t>) -> Option<Place<'t>> {
        let object = field(place.node, "object")?;
        let name = self.word(place.file, field(place.node, "attribute")?);
        if name == "value" {
            return Some(place.with(object));
        }
        let target = self.resolve(&place.with(object));
        if target.node.kind() == "class_definition" {
            let body = field(target.node, "body")?;
            return children(body).into_iter().find_map(|statement| {
                let set =
                    children(statement).into_iter().find(|inner| inner.kind() == "assignment")?;
                let left = field(set, "left")?;
                let is_it = self.word(target.file, left) == name;
                if is_it { field(set, "right").map(|right| target.with(right)) } else { None }
            });
        }
        if object.kind() == "identifier" && target.node.id() == object.id() {
            return self.anywhere(place, name);
        }
        None
    }

    /// The text that an expression is, if the sources alone tell.
    pub fn text(&self, place: &Place<'t>) -> Option<String> {
        if !self.may_go_on(place) {
            return None;
        }
        let place = self.resolve(place);
        let text = match place.node.kind() {
            "string" => self.literal(&place),
            "concatenated_string" => {
                let parts: Option<Vec<String>> = children(place.node)
                    .into_iter()
                    .map(|part| self.literal(&place.with(part)))
                    .collect();
                parts.map(|parts| parts.concat())
            }
            "binary_operator" => {
                let left = self.text(&place.with(field(place.node, "left")?))?;
                Some(left + &self.text(&place.with(field(place.node, "right")?))?)
            }
            "call" => {
                let function = field(place.node, "function")?;
                let method =
                    self.word(place.file, field(function, "attribute").unwrap_or(function));
                let given = children(field(place.node, "arguments")?);
                match method {
                    "dedent" | "cleandoc" => self.text(&place.with(*given.first()?)),
                    "strip" => self.text(&place.with(field(function, "object")?)),
                    _ => None,
                }
            }
            _ => None,
        };
        text.filter(|text| text.len() <= TEXT_BYTES_MAX)
    }

    /// A literal, with what it interpolates where that is known.
    fn literal(&self, place: &Place<'t>) -> Option<String> {
        let mut text = String::new();
        let mut is_raw = false;
        for part in children(place.node) {
            let word = self.word(place.file, part);
            match part.kind() {
                "string_start" => is_raw = word.contains(['r', 'R']),
                "string_content" if is_raw => text += word,
                "string_content" => text += &unescape(word),
                "interpolation" => text += &self.text(&place.with(field(part, "expression")?))?,
                _ => {}
            }
        }
        Some(text)
    }
}

fn declare<'t>(
    names: &mut Names<'t>,
    parsed: &'t Parsed,
    name: Node<'t>,
    above: &[Node<'t>],
    value: Node<'t>,
) {
    let scopes = ["function_definition", "class_definition", "lambda"];
    let scope = nearest(above).find(|outer| scopes.contains(&outer.kind()));
    let part = scope.map(|scope| scope.byte_range());
    names.entry(parsed.word(name)).or_default().add(part, value);
}

/// The value of a keyword argument.
pub fn keyword<'t>(
    project: &Project<'t>,
    file: usize,
    arguments: Node<'t>,
    key: &str,
) -> Option<Node<'t>> {
    children(arguments).into_iter().find_map(|argument| {
        let name = field(argument, "name").filter(|_| argument.kind() == "keyword_argument")?;
        if project.word(file, name) == key { field(argument, "value") } else { None }
    })
}
