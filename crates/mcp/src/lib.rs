//! The words of the protocol: JSON-RPC messages, names, revisions, items.
//!
//! Pure: no I/O, no async. Payloads stay the bytes they came in; only the few members that
//! routing needs are looked at, and edits are splices.

pub mod abilities;
pub mod headers;
pub mod items;
pub mod json;
pub mod lines;
pub mod links;
pub mod log_level;
pub mod modern;
pub mod names;
pub mod params;
pub mod pieces;
pub mod rpc;
pub mod text;
pub mod translate;
pub mod uri_template;
pub mod verdict;
pub mod version;
