//! What a name means in which part of a file.

use std::collections::BTreeMap;
use std::ops::Range;

use tree_sitter::Node;

use crate::limits::SCOPES_MAX;

/// What one name is set to: in the whole file, and within parts of it. What is said first counts.
#[derive(Default)]
pub struct Declared<'t> {
    pub everywhere: Option<Node<'t>>,
    /// By where the part begins: where it ends, and the value.
    within: BTreeMap<usize, (usize, Node<'t>)>,
}

impl<'t> Declared<'t> {
    /// Notes a value; `None` stands for the whole file.
    pub fn add(&mut self, part: Option<Range<usize>>, value: Node<'t>) {
        match part {
            Some(part) => drop(self.within.entry(part.start).or_insert((part.end, value))),
            None => drop(self.everywhere.get_or_insert(value)),
        }
    }

    /// The value as it is known at a place: the innermost counts.
    pub fn at(&self, place: usize) -> Option<Node<'t>> {
        // Parts lie beside or within each other, so the last one to begin that has not ended is the innermost.
        let mut begun = self.within.range(..=place).rev().take(SCOPES_MAX);
        let inner = begun.find(|(_, (end, _))| place < *end).map(|(_, (_, value))| *value);
        inner.or(self.everywhere)
    }
}
