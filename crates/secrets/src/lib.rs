//! The safe: values that are encrypted on the disk, and plain metadata beside them.
//!
//! Who asks, and why, is not known here. In the data directory there are
//!
//! - `secrets.enc`, the [`vault`]: values, each sealed with its place,
//! - `secrets.meta.yaml`, the [`ledger`]: which secrets there are or ought to be, never a value,
//! - `secrets.lock`, held by whoever writes,
//! - `secrets.key`, the master key, unless it is kept elsewhere ([`master`]).

pub mod error;
pub mod ledger;
pub mod limits;
pub mod master;
pub mod names;
pub mod redact;
pub mod store;
pub mod value;
pub mod vault;

mod envelope;
mod fernet;
mod files;
mod key_command;
mod lock;
mod patience;
mod seal;
mod witness;

#[cfg(test)]
mod tests;
