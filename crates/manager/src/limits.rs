//! Every bound of the manager.

use std::time::Duration;

/// A file that is read whole: a source, or the text of requirements.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Names in one folder that are looked at.
pub const ENTRIES_MAX: usize = 10_000;
/// How deep folders that are removed may be nested.
pub const DEPTH_MAX: usize = 64;
/// How long a call of one of our tools may take: packages may have to be installed.
pub const CALL_TIME_MAX: Duration = Duration::from_mins(11);
/// Versions of one file that are kept.
pub const VERSIONS_MAX: usize = 100;
/// Packages that are asked for in one call.
pub const PACKAGES_MAX: usize = 50;
/// Characters of a file's name.
pub const NAME_CHARS_MAX: usize = 100;
