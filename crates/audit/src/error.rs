//! Why the trail can't be written or read.

use std::io;
use std::path::{Path, PathBuf};

use crate::limits::SLOTS_MAX;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("can't use `{}`: {error}", .path.display())]
    Path { path: PathBuf, error: io::Error },

    #[error("{SLOTS_MAX} processes write below `{}` already; end some of them", .0.display())]
    Crowded(PathBuf),

    /// Writing has failed a moment ago and is not tried yet.
    #[error("the trail could not be written a moment ago")]
    TooSoon,

    #[error(
        "there is no audit trail in `{}`; `toolman serve` and `toolman up` keep one, and whatever \
         runs with `[audit]` in its `tools.toml`",
        .0.display()
    )]
    Missing(PathBuf),
}

impl Error {
    /// What went wrong with a path.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Error {
        let path = path.to_owned();
        move |error| Error::Path { path: path.clone(), error }
    }
}
