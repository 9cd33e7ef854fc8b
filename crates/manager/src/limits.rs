//! Every bound of the manager.

use std::time::Duration;

/// A file that is read whole: a source, or the text of requirements.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// Names in one folder that are looked at.
pub const ENTRIES_MAX: usize = 10_000;
/// Deleted namespaces that are kept; the oldest go first.
pub const DELETED_MAX: usize = 20;
/// How long a call of one of our tools may take: packages may have to be installed.
pub const CALL_TIME_MAX: Duration = Duration::from_mins(11);
/// Calls of quick tools at once; more wait.
pub const CALLS_MAX: usize = 64;
/// Calls at once of a tool that waits for others, which is the same for each of them; more are refused.
pub const SLOW_CALLS_MAX: usize = 24;
/// How long another process may hold the lock of the files.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long to wait before the lock is tried again.
pub const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// How often a change is begun anew, because somebody was quicker.
pub const EDITS_MAX: usize = 5;
/// Versions of one file that are kept.
pub const VERSIONS_MAX: usize = 100;
/// Packages that are asked for in one call.
pub const PACKAGES_MAX: usize = 50;
/// Characters of a file's name.
pub const NAME_CHARS_MAX: usize = 100;

/// A file of strangers' sources that is read out.
pub const REPO_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Strangers' sources that are kept; the oldest go first.
pub const REPOS_MAX: usize = 50;
/// Files that an analysis lists.
pub const LISTED_FILES_MAX: usize = 5_000;
/// A clone, with what git keeps for itself.
pub const CLONE_BYTES_MAX: u64 = 300 << 20;
pub const CLONE_FILES_MAX: usize = 40_000;
pub const CLONE_TIME_MAX: Duration = Duration::from_mins(2);
/// What git may take for itself.
pub const CLONE_MEMORY_BYTES_MAX: u64 = 2 << 30;
pub const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(10);
/// What is kept of what git says.
pub const SAID_BYTES_MAX: usize = 16 * 1024;
pub const URL_BYTES_MAX: usize = 2048;
/// An answer of a registry.
pub const REGISTRY_BYTES_MAX: usize = 8 << 20;
pub const REGISTRY_TIME_MAX: Duration = Duration::from_secs(20);
pub const REGISTRY_PAGES_MAX: usize = 5;
/// Entries that one search tells of.
pub const SEARCH_RESULTS_MAX: usize = 100;
/// A package, packed.
pub const PACKAGE_BYTES_MAX: usize = 64 << 20;
pub const DOWNLOAD_TIME_MAX: Duration = Duration::from_mins(2);
/// Servers that wait for a person.
pub const PROPOSALS_MAX: usize = 100;
