//! The manager: built-in tools by which a model looks after folders of Python tools.
//!
//! It works on files beneath the data directory and asks a [`core::Core`] to serve them. Which way that core is
//! reached, and the values of secrets, are not known here: the binary hands both over.

pub mod beneath;
pub mod core;
pub mod desk;
pub mod error;
pub mod history;
pub mod limits;
pub mod names;
pub mod shelf;
pub mod sources;
pub mod tools;

mod inspection;
