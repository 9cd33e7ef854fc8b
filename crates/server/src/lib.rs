//! The doors: stdio and Streamable HTTP.
//!
//! They carry messages to the gateway and word its answers. They decide nothing.

mod batch;
pub mod http;
pub mod limits;
pub mod reply;
pub mod stdio;
