//! What a client chooses as it connects: the tools of some toolsets, or single ones.
//!
//! For clients that list once and never again. Where a client switches things on and off, the choice is what it
//! begins with; elsewhere it sees nothing else.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::toolset::{ToolsetPlace, Toolsets};

/// A choice; two of the same names are the same.
#[derive(Clone, Debug)]
pub struct Narrowing {
    toolsets: BTreeSet<ToolsetPlace>,
    tools: BTreeSet<Box<str>>,
    /// The tools that are named by themselves.
    singles: Patterns,
    /// All that is chosen.
    patterns: Patterns,
}

impl Narrowing {
    /// The choice of these toolsets and tools, in any spelling or as patterns. Toolsets that are not
    /// there are left out; `None` where a name can't be read, or there are too many.
    pub fn of<'n>(
        known: &Toolsets,
        toolsets: impl Iterator<Item = &'n str>,
        tools: impl Iterator<Item = &'n str>,
    ) -> Option<Narrowing> {
        let toolsets: BTreeSet<_> = known.places(toolsets).into_iter().collect();
        let tools: BTreeSet<Box<str>> = tools.take(TOOLS_MAX + 1).map(Into::into).collect();
        if tools.len() > TOOLS_MAX {
            return None;
        }
        let names: Vec<_> = tools.iter().collect();
        let singles = Patterns::parse(&names).ok()?;
        let mut patterns = singles.clone();
        for (_, toolset) in known.iter().filter(|(place, _)| toolsets.contains(place)) {
            patterns = patterns.or(&toolset.patterns);
        }
        Some(Narrowing { toolsets, tools, singles, patterns })
    }

    /// Whether no toolset that is there, and no tool, was chosen.
    pub fn is_empty(&self) -> bool {
        self.toolsets.is_empty() && self.tools.is_empty()
    }

    pub fn holds(&self, item: &Subject<'_>) -> bool {
        self.patterns.matches(item.server, item.names())
    }

    /// Whether an item is named by itself, not by a toolset.
    pub fn names(&self, item: &Subject<'_>) -> bool {
        self.singles.matches(item.server, item.names())
    }

    /// The toolsets that are chosen, in the order of the configuration.
    pub fn toolsets(&self) -> impl Iterator<Item = ToolsetPlace> {
        self.toolsets.iter().copied()
    }

    /// The choice in words, the same for the same one.
    pub fn described(&self, known: &Toolsets) -> String {
        let toolsets = self.toolsets().filter_map(|place| Some(&*known.get(place)?.name));
        let toolsets: Vec<_> = toolsets.collect();
        let tools: Vec<_> = self.tools.iter().map(|tool| &**tool).collect();
        format!("toolsets={}&tools={}", toolsets.join(","), tools.join(","))
    }

    /// Everything that is chosen, as patterns.
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// The tools that are named by themselves, as patterns.
    pub fn singles(&self) -> &Patterns {
        &self.singles
    }
}

/// Tools that can be named at once.
const TOOLS_MAX: usize = 200;

impl PartialEq for Narrowing {
    fn eq(&self, other: &Narrowing) -> bool {
        self.toolsets == other.toolsets && self.tools == other.tools
    }
}

impl Eq for Narrowing {}

impl Hash for Narrowing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.toolsets.hash(state);
        self.tools.hash(state);
    }
}
