//! The protocol revisions and their differences that matter to us.

use std::fmt;

/// A revision that begins with `initialize`, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Revision {
    pub const NEWEST: Revision = Revision::V2025_11_25;

    pub const ALL: [Revision; 4] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
        }
    }

    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Whether several messages may come in one JSON array.
    pub fn takes_batches(self) -> bool {
        self == Revision::V2025_03_26
    }

    /// Whether a client must accept an event stream as the answer to a POST.
    pub fn must_accept_streams(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// What we answer to a client that asks for `wanted`: the same if we speak it.
    pub fn negotiate(wanted: &str) -> Revision {
        Revision::parse(wanted).unwrap_or(Revision::NEWEST)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The revisions that are switched on; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken(Vec<Revision>);

impl Spoken {
    /// These, if there are any.
    pub fn new(revisions: impl IntoIterator<Item = Revision>) -> Option<Spoken> {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_unstable();
        revisions.dedup();
        (!revisions.is_empty()).then_some(Spoken(revisions))
    }

    /// The revision that a header names, if it is on.
    pub fn parse(&self, text: &str) -> Option<Revision> {
        Revision::parse(text).filter(|revision| self.0.contains(revision))
    }

    /// What we answer to a client that asks for `wanted`: the same if it is on, else the newest.
    pub fn negotiate(&self, wanted: &str) -> Revision {
        let revision = Revision::negotiate(wanted);
        if self.0.contains(&revision) { revision } else { self.newest() }
    }

    fn newest(&self) -> Revision {
        self.0.last().copied().unwrap_or(Revision::NEWEST)
    }

    /// The names of all, oldest first, for a message.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|revision| revision.as_str()).collect();
        names.join(", ")
    }
}

impl Default for Spoken {
    fn default() -> Spoken {
        Spoken(Revision::ALL.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::{Revision, Spoken};

    #[test]
    fn known_revision_is_echoed_and_an_unknown_one_answered_with_the_newest() {
        assert_eq!(Revision::negotiate("2024-11-05"), Revision::V2024_11_05);
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::NEWEST);
        assert_eq!(Revision::negotiate("garbage"), Revision::NEWEST);
    }

    #[test]
    fn revision_that_is_off_is_answered_with_the_newest_that_is_on() {
        // TD-100
        let spoken = Spoken::new([Revision::V2025_06_18, Revision::V2024_11_05]).unwrap();
        assert_eq!(spoken.negotiate("2024-11-05"), Revision::V2024_11_05);
        assert_eq!(spoken.negotiate("2025-11-25"), Revision::V2025_06_18);
        assert_eq!(spoken.parse("2025-11-25"), None);
        assert_eq!(spoken.names(), "2024-11-05, 2025-06-18");
        assert_eq!(Spoken::new([]), None);
    }
}
