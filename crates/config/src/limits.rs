//! Every bound on what a file may hold and on what is said about it.

use std::time::Duration;

/// A larger file is refused unread.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Toolsets of one file.
pub const TOOLSETS_MAX: usize = 1_000;
/// Levels of a JSON file.
pub const JSON_DEPTH_MAX: usize = 32;
/// Faults that are reported; of more only the number is told.
pub const FAULTS_MAX: usize = 100;
/// Patterns in one list: each takes its time to be compiled.
pub const PATTERNS_MAX: usize = 10_000;
/// Shorter tokens can be guessed.
pub const TOKEN_CHARS_MIN: usize = 16;
/// A session that was not used for this long is forgotten, unless another time is written.
pub const SESSION_TTL: Duration = Duration::from_hours(24);
/// The same, as long as it can be: thirty days.
pub const SESSION_TTL_HOURS_MAX: f64 = 720.0;
/// Entries of `[clients]`.
pub const CLIENTS_MAX: usize = 1_000;
/// Longest wait of a control tool's reply for a client that is to list again.
pub const REPLY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest wait that can be configured.
pub const DURATION_MAX: Duration = Duration::from_hours(24);
/// How long the audit trail is kept, unless another time is written.
pub const RETENTION_DAYS: u32 = 30;
/// The longest time that can be written: ten years.
pub const RETENTION_DAYS_MAX: u32 = 3_650;
/// A file of saved toolsets; each holds the definitions of its tools.
pub const LIBRARY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// An archive with a persona, packed.
pub const ARCHIVE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The same, unpacked in memory.
pub const UNPACKED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Files and folders of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 1_000;
/// Files of a persona that are read.
pub const PERSONA_BYTES_MAX: u64 = 1024 * 1024;

/// Files of one folder of Python tools, and bytes of all of them.
pub const DOCK_FILES_MAX: usize = 2_000;
pub const DOCK_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Calls of one namespace at once, and calls that wait for their turn.
pub const DOCK_CALLS_MAX: u32 = 10_000;
/// Memory of a worker: with less no Python starts.
pub const DOCK_MEMORY_MB_MIN: u32 = 64;
/// One file of Python tools.
pub const TOOL_FILE_BYTES_MAX: usize = 1024 * 1024;
/// Characters of the description of `toolman_activate`, between these.
pub const DESCRIPTION_CHARS_MIN: u64 = 1_000;
pub const DESCRIPTION_CHARS_MAX: u64 = 1_000_000;
