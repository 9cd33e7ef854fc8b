//! The core, as the manager knows it: it reads folders again, and calls their tools.
//!
//! It is the gateway in this process, or one elsewhere that is reached over HTTP; the binary has both.

use std::pin::Pin;

use serde_json::Value;

/// What will be answered.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unreached>> + Send + 'a>>;

/// Why the core could not be asked: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreached(pub String);

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Called {
    /// The result of `tools/call`, whole.
    Result(Value),
    Failed {
        error: String,
        traceback: Option<String>,
    },
}

/// What a core serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    pub namespaces: usize,
    pub tools: usize,
}

/// A core.
pub trait Core: Send + Sync {
    /// Reads all folders again; what was done. TD-115
    fn reload(&self) -> Answer<'_, Value>;

    /// Calls a tool by its bare name, with all that its namespace has.
    fn call<'a>(
        &'a self,
        namespace: &'a str,
        tool: &'a str,
        arguments: &'a Value,
    ) -> Answer<'a, Called>;

    fn served(&self) -> Answer<'_, Served>;
}
