//! What a file says of the audit trail.

use std::path::PathBuf;

use crate::limits::RETENTION_DAYS;

/// The section `[audit]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    pub enabled: bool,
    /// Whether the values of arguments are recorded, and not only their types.
    pub values: bool,
    pub retention_days: u32,
    /// Where it is kept, if not in the data directory.
    pub folder: Option<PathBuf>,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { enabled: true, values: false, retention_days: RETENTION_DAYS, folder: None }
    }
}
