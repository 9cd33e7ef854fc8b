//! What can be wrong with what a model asks for; each says what to do next.

use std::io;

use crate::limits::SLOW_CALLS_MAX;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    NamespaceName(String),

    #[error(
        "there is no namespace `{0}`; see `list_namespaces`, or make it with `create_namespace`"
    )]
    NoNamespace(String),

    #[error("the namespace `{name}` exists already at {path}; use `write_tool` to add tools to it")]
    NamespaceExists { name: String, path: String },

    #[error("`{name}` is no file of tools: {rule}; name it like `issues.py`")]
    FileName { name: String, rule: &'static str },

    #[error("there is no file `{name}` in `{namespace}`; see `list_tools`")]
    NoFile { namespace: String, name: String },

    #[error("`{path}` {problem}")]
    Path { path: String, problem: &'static str },

    #[error(
        "`{path}` can't be {deed}: {error}; see that the data directory is of the user who runs toolman, and has room"
    )]
    File { path: String, deed: &'static str, error: io::Error },

    #[error(
        "another process ({holder}) has changed files for a while; try again when it has ended"
    )]
    Locked { holder: String },

    #[error(
        "{SLOW_CALLS_MAX} calls of `{tool}` are under way, and wait for each other; try again when some have ended"
    )]
    Busy { tool: &'static str },

    #[error(
        "a model has written `{namespace}/{file}` anew, which waits; decide on it first: `toolman approve \
         {namespace}/{file}`, or the same with `--reject`"
    )]
    Waits { namespace: String, file: String },

    #[error("{0}")]
    Secret(String),

    #[error("{0}")]
    Package(String),

    #[error("`{url}` {why}; give one such as `https://github.com/someone/my-tools`")]
    RepoUrl { url: String, why: String },

    #[error("`{url}` was not cloned: {why}")]
    Clone { url: String, why: String },

    #[error("{0}")]
    Source(String),

    #[error(
        "Python can't be used: {0}; see that `python3` runs there, or name another with `python` of `[dock]`"
    )]
    Python(String),

    #[error("nobody waits for the answer any more")]
    Left,

    #[error("a fault of our own; see the log of the manager")]
    Fault,

    #[error(transparent)]
    Core(#[from] crate::core::Unreached),
}
