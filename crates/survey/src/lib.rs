//! Foreign sources: unpacked, read and told of; never run.
//!
//! Knows no network, no processes and no other room. What it is told to read may have been written to deceive it, so
//! everything is bounded (`limits`), no link is followed (`folder`) and no archive is unpacked but by `archive`.

pub mod archive;
mod error;
pub mod folder;
mod hosts;
mod languages;
pub mod limits;
mod manifests;
mod path;
mod report;
mod scopes;
mod source;
pub mod tools;
mod variables;

pub use error::{Error, Problem};
pub use languages::Share;
pub use report::{Report, survey};
