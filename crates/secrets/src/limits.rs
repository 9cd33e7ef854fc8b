//! The bounds of the safe.

use std::time::Duration;

/// Bytes of a value: a key, a certificate, the credentials of a service.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the name of a secret.
pub const KEY_BYTES_MAX: usize = 128;
/// Bytes of the name of a scope.
pub const SCOPE_BYTES_MAX: usize = 64;
/// Bytes of a file of the safe.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of a master key.
pub const MASTER_BYTES_MAX: u64 = 4096;
/// Characters that a master key needs.
pub const MASTER_CHARS_MIN: usize = 16;
/// A shorter master key must not begin with a word that everybody tries first.
pub const WORDY_CHARS_MAX: usize = 32;
/// How long a program may take to tell the master key: a person may have to open a keyring first.
pub const KEY_COMMAND_MAX: Duration = Duration::from_mins(1);
/// How long a pipe that has the master key may stay open: it was written into before we were started.
pub const KEY_PIPE_MAX: Duration = Duration::from_secs(10);
/// Secrets that are wanted and not set: more are refused, as anybody who may ask could fill the file.
pub const WANTED_MAX: usize = 1_000;
/// How long another process may hold the lock.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long to wait before the lock is tried again.
pub const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Rounds of PBKDF2 for new stores.
pub const ROUNDS: u32 = 600_000;
/// Rounds that a file may ask for: fewer are too weak, more would take minutes.
pub const ROUNDS_MAX: u32 = 10_000_000;
/// Bytes that a value needs to be looked for in texts: shorter ones are found by chance.
pub const REDACTED_BYTES_MIN: usize = 6;
/// Bytes of a value that are looked for: those that come first.
pub const REDACTED_BYTES_MAX: usize = 4 * 1024;
/// Bytes that a line of a value needs to be looked for by itself.
pub const LINE_BYTES_MIN: usize = 32;
/// Bytes of one part of a spelling; longer ones are looked for in several.
pub const SPELLING_BYTES_MAX: usize = 256;
/// Bytes of all spellings; of what comes then only the likeliest are looked for.
pub const SPELLED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of all spellings up to which speed counts for more than memory.
pub const DFA_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a number that are held back of a stream.
pub const SCALAR_BYTES_MAX: usize = 1024;
