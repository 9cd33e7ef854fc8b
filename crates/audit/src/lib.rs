//! The audit trail: its records, the files they are kept in, and what can be read from them.
//!
//! One line of JSON a record. Each carries the hash of the line before it, so that a line that was
//! changed, left out or put in is found. Who calls what, and when that is recorded, is not known here.

pub mod calendar;
pub mod chain;
pub mod entry;
pub mod error;
pub mod files;
pub mod limits;
pub mod reader;
pub mod shape;
pub mod stats;
pub mod usage;
pub mod verify;
pub mod writer;

mod slot;
mod tail;

#[cfg(test)]
mod tests;
