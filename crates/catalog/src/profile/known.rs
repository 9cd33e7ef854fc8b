//! The profiles that are shipped: a row a client program. Data that was observed, with the program.

use mcp::names::UriStyle;

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
    // The Python SDK 1.x, whoever builds on it, refuses a whole list for one URI that is none; 2.x takes both.
    ("python-sdk", &["mcp"], |profile| profile.naming.uri_style = UriStyle::Rfc),
    ("fastmcp", &["fastmcp"], |profile| profile.naming.uri_style = UriStyle::Rfc),
    ("mcp-use", &["mcp-use"], |profile| profile.naming.uri_style = UriStyle::Rfc),
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
