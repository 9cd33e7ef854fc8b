//! Live connections to MCP servers and their supervision.
//!
//! One `Upstream` per configured server: it starts the server, speaks with it, keeps its
//! inventory, notices its end. What its names mean to clients is not known here.

pub mod answer;
pub mod confine;
pub mod connection;
pub mod context;
pub mod error;
pub mod fetch;
pub mod guard;
pub mod inventories;
pub mod launch;
pub mod limits;
pub mod post;
pub mod printed;
pub mod python;
pub mod relay;
pub mod remote;
pub mod supervisor;
pub mod template;
pub mod veil;

mod conversation;
mod hearing;
mod inheritance;
mod meeting;
mod processes;
mod sse;
mod stderr;
mod streamable;
mod web;
