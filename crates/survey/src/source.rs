//! One source file, parsed: its tree, and looking into it.
//!
//! What a language means by its nodes is left to `tools`.

use std::ops::ControlFlow;
use std::time::Instant;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

use crate::limits::{ABOVE_MAX, PARSE_TIME_MAX};

/// A file that was parsed.
pub struct Parsed {
    /// Relative to the folder, with slashes.
    pub path: String,
    pub text: String,
    pub tree: Tree,
    /// When the survey must be over.
    until: Instant,
}

/// The grammars that are carried in the binary. JavaScript is read as TypeScript, which holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    Go,
    Python,
    TypeScript,
}

impl Grammar {
    /// By the end of a file's name.
    pub fn of(path: &str) -> Option<Grammar> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension {
            "go" => Some(Grammar::Go),
            "py" | "pyi" => Some(Grammar::Python),
            "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => {
                Some(Grammar::TypeScript)
            }
            _ => None,
        }
    }

    /// By what the text says, where its name says nothing: all of it must make sense.
    pub fn by_content(path: &str, text: &str, until: Instant) -> Option<Grammar> {
        let starts = |words: &[&str]| {
            text.lines().take(400).any(|line| words.iter().any(|word| line.starts_with(word)))
        };
        let ways = [
            (Grammar::Go, starts(&["package "])),
            (Grammar::Python, starts(&["import ", "from ", "def ", "class ", "async def "])),
            (Grammar::TypeScript, starts(&["import ", "const ", "export ", "function ", "let "])),
        ];
        let mut likely = ways.into_iter().filter(|(_, is_likely)| *is_likely);
        let is_it = |grammar: Grammar| {
            let parsed = grammar.parse(path, text.to_owned(), until);
            parsed.is_some_and(|parsed| !parsed.root().has_error())
        };
        likely.find_map(|(grammar, _)| is_it(grammar).then_some(grammar))
    }

    /// By the language that a first line names.
    pub fn by_name(language: &str) -> Option<Grammar> {
        match language {
            "python" => Some(Grammar::Python),
            "javascript" | "typescript" => Some(Grammar::TypeScript),
            "go" => Some(Grammar::Go),
            _ => None,
        }
    }

    /// As it is told of.
    pub fn name(self) -> &'static str {
        match self {
            Grammar::Go => "go",
            Grammar::Python => "python",
            Grammar::TypeScript => "typescript",
        }
    }

    fn language(self) -> Language {
        match self {
            Grammar::Go => tree_sitter_go::LANGUAGE.into(),
            Grammar::Python => tree_sitter_python::LANGUAGE.into(),
            Grammar::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        }
    }

    /// Parses a text, which may be looked into `until` then; `None` if parsing takes too long.
    pub fn parse(self, path: &str, text: String, until: Instant) -> Option<Parsed> {
        let mut parser = Parser::new();
        parser.set_language(&self.language()).ok()?;
        let end = until.min(Instant::now() + PARSE_TIME_MAX);
        let mut is_slow = |_: &tree_sitter::ParseState| {
            if Instant::now() > end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut is_slow);
        let bytes = text.as_bytes();
        let mut input = |at: usize, _| bytes.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut input, None, Some(options))?;
        Some(Parsed { path: path.to_owned(), text, tree, until })
    }
}

impl Parsed {
    pub fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    pub fn word(&self, node: Node) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Whether most of it makes no sense in the language that it was taken for.
    pub fn is_mostly_wrong(&self) -> bool {
        if !self.root().has_error() {
            return false;
        }
        let (mut wrong, mut covered) = (0, 0);
        self.each(|node, _| {
            if node.is_error() && node.start_byte() >= covered {
                wrong += node.byte_range().len();
                covered = node.end_byte();
            }
        });
        wrong * 2 > self.text.len()
    }

    /// Whether there is no time left to look into it.
    pub fn is_late(&self) -> bool {
        Instant::now() > self.until
    }

    /// Visits all nodes, parents first, each with those above it, the nearest last. Without recursion: foreign code may
    /// be nested as it likes. Ends early when there is no time left.
    pub fn each<'t>(&'t self, mut visit: impl FnMut(Node<'t>, &[Node<'t>])) {
        let mut cursor = self.root().walk();
        let mut above = Vec::new();
        let mut seen = 0_u32;
        loop {
            seen = seen.wrapping_add(1);
            if seen.is_multiple_of(1024) && self.is_late() {
                return;
            }
            let node = cursor.node();
            visit(node, &above);
            if cursor.goto_first_child() {
                above.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                above.pop();
            }
        }
    }
}

/// The line of a node, counted from 1.
pub fn line(node: Node) -> usize {
    node.start_position().row + 1
}

/// The children that say something.
pub fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

pub fn field<'t>(node: Node<'t>, name: &str) -> Option<Node<'t>> {
    node.child_by_field_name(name)
}

/// The nodes below `root` of one of these kinds that are not within a node of the `barriers`.
pub fn below<'t>(root: Node<'t>, kinds: &[&str], barriers: &[&str]) -> Vec<Node<'t>> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if kinds.contains(&node.kind()) {
            found.push(node);
        }
        if node.id() == root.id() || !barriers.contains(&node.kind()) {
            open.extend(children(node).into_iter().rev());
        }
    }
    found
}

/// The nodes above a node, nearest first, as far as anybody nests code.
pub fn nearest<'t>(above: &[Node<'t>]) -> impl Iterator<Item = Node<'t>> {
    above.iter().rev().take(ABOVE_MAX).copied()
}

/// A text as sources write it, with its escapes carried out.
pub fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut letters = raw.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\n') | None => {}
            Some(code @ ('x' | 'u')) => text.extend(code_point(code, &mut letters)),
            Some(other) => text.push(other),
        }
    }
    text
}

/// The letter that `\xHH`, `\uHHHH` or `\u{H…}` means.
fn code_point(code: char, letters: &mut std::str::Chars) -> Option<char> {
    let digits: String = if letters.as_str().starts_with('{') {
        letters.next();
        letters.by_ref().take_while(|letter| *letter != '}').collect()
    } else {
        letters.by_ref().take(if code == 'x' { 2 } else { 4 }).collect()
    };
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}
