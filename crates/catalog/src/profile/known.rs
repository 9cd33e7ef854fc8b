//! The profiles that are shipped: a row a client program. Data that was observed, with the program.

use super::{Lists, Naming, Profile, Reads};

/// What a program calls itself, and what it does otherwise than others.
type Row = (&'static str, &'static [&'static str], fn(&mut Profile));

const TABLE: &[Row] = &[
    ("claude-code", &["claude-code"], |profile| {
        profile.lists = Lists::Late;
        profile.reads = Reads::Structured;
        profile.description_max = Some(2_048);
        profile.naming = Naming::ENDPOINT;
    }),
    ("codex", &["codex-mcp-client"], |profile| {
        profile.lists = Lists::Once;
        profile.reads = Reads::Structured;
        profile.naming = Naming::ENDPOINT;
    }),
    ("opencode", &["opencode"], |profile| {
        profile.lists = Lists::Late;
        profile.naming = Naming::ENDPOINT;
    }),
];

/// The profile of whoever calls itself so.
pub fn find(name: &str, _version: &str) -> Profile {
    let mut profile = Profile::default();
    if let Some((shown, _, differ)) = TABLE.iter().find(|(_, names, _)| names.contains(&name)) {
        profile.name = (*shown).into();
        differ(&mut profile);
    }
    profile
}
