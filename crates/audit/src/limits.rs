//! Every bound on the trail.

use std::time::Duration;

/// Processes that write below one folder at a time.
pub const SLOTS_MAX: usize = 64;
/// How soon writing is tried again after it has failed.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A longer line is none of ours.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Of a text that a client or a server has chosen, this much is recorded.
pub const TEXT_CHARS_MAX: usize = 500;
/// Arguments whose values are recorded; of larger ones only the shape is.
pub const VALUES_BYTES_MAX: usize = 64 * 1024;
/// Members and elements of arguments whose types are told.
pub const SHAPE_NODES_MAX: usize = 200;
/// How deeply they are looked into.
pub const SHAPE_DEPTH_MAX: usize = 4;
/// Of a member's name, this much is told.
pub const MEMBER_CHARS_MAX: usize = 100;
/// Elements of one array that are looked at.
pub const ELEMENTS_MAX: usize = 16;
