//! Fakes for tests: upstreams that misbehave on demand, clients for every door, real peers.
//!
//! A dev-dependency only. It fakes the world outside, never our own rooms.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that meets them fails, and a fake may talk"
)]

pub mod binary;
pub mod client;
pub mod conformance;
pub mod fake;
pub mod forwarder;
pub mod http;
pub mod peers;
pub mod processes;
pub mod world;
