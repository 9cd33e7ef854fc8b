//! What there is (the snapshot), what is visible (the view), how it is shown (the surface).
//!
//! Pure: no I/O, no async, no connections.

pub mod ceiling;
pub mod error;
pub mod expansion;
pub mod exposure;
pub mod limits;
pub mod naming;
pub mod narrowing;
pub mod patterns;
pub mod policy;
pub mod profile;
pub mod ref_id;
pub mod schema;
pub mod scope;
pub mod selection;
pub mod session_context;
pub mod snapshot;
pub mod suggest;
pub mod surface;
#[cfg(test)]
mod testing;
pub mod tokens;
pub mod toolset;
pub mod view;
