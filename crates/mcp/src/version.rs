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

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn known_revision_is_echoed_and_an_unknown_one_answered_with_the_newest() {
        assert_eq!(Revision::negotiate("2024-11-05"), Revision::V2024_11_05);
        assert_eq!(Revision::negotiate("2026-07-28"), Revision::NEWEST);
        assert_eq!(Revision::negotiate("garbage"), Revision::NEWEST);
    }
}
