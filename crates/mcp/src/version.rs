//! The protocol revisions and their differences that matter to us.

use std::fmt;

/// A revision of the protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// What revisions have in common that can be bridged; between eras messages are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake opens a session: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Every request says what it needs by itself: 2026-07-28.
    Modern,
}

impl Revision {
    /// The newest that begins with a handshake.
    pub const NEWEST_LEGACY: Revision = Revision::V2025_11_25;
    pub const NEWEST_MODERN: Revision = Revision::V2026_07_28;

    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    pub fn era(self) -> Era {
        if self >= Revision::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
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

    /// Whether a stream begins with an event that says nothing, so that its reader can come back
    /// even if nothing else has come.
    pub fn primes_streams(self) -> bool {
        self == Revision::V2025_11_25
    }

    /// Whether HTTP requests name the revision in `MCP-Protocol-Version`.
    pub fn is_named_in_headers(self) -> bool {
        self >= Revision::V2025_06_18
    }

    /// What a handshake that asks for `wanted` agrees on: the same if it has handshakes at all.
    pub fn negotiate(wanted: &str) -> Revision {
        let known = Revision::parse(wanted).filter(|known| known.era() == Era::Legacy);
        known.unwrap_or(Revision::NEWEST_LEGACY)
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

    /// What a handshake that asks for `wanted` agrees on: the same if it is on, else the newest.
    pub fn negotiate(&self, wanted: &str) -> Revision {
        let revision = Revision::negotiate(wanted);
        if self.0.contains(&revision) {
            return revision;
        }
        self.of(Era::Legacy).last().unwrap_or(Revision::NEWEST_LEGACY)
    }

    /// Those of an era, oldest first.
    pub fn of(&self, era: Era) -> impl Iterator<Item = Revision> + '_ {
        self.0.iter().copied().filter(move |revision| revision.era() == era)
    }

    /// Those that a request which stands alone is told to use instead of its own.
    pub fn instead(&self) -> Vec<Revision> {
        let modern: Vec<_> = self.of(Era::Modern).collect();
        if modern.is_empty() { self.0.clone() } else { modern }
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
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::NEWEST_LEGACY);
        assert_eq!(Revision::negotiate("garbage"), Revision::NEWEST_LEGACY);
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
