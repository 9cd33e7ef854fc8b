//! The bounds of a survey.

use std::time::Duration;

/// Members of an archive, and files of a folder.
pub const FILES_MAX: usize = 20_000;
/// What an archive may hold once it is unpacked.
pub const UNPACKED_BYTES_MAX: u64 = 200 << 20;
/// How many bytes one packed byte may become.
pub const RATIO_MAX: u64 = 100;
/// Small archives may exceed that: a manifest of blanks is no bomb.
pub const RATIO_SLACK_BYTES: u64 = 1 << 20;
/// A path within an archive or a folder.
pub const PATH_BYTES_MAX: usize = 1024;
pub const PATH_PARTS_MAX: usize = 64;
/// What an archive says of one member beside its header: a long name.
pub const EXTENSION_BYTES_MAX: u64 = 64 * 1024;
/// A larger file is listed, and not looked into.
pub const SOURCE_BYTES_MAX: u64 = 4 << 20;
/// A larger file whose name says nothing is not guessed at.
pub const GUESSED_BYTES_MAX: u64 = 256 << 10;
/// All that is looked into.
pub const SOURCES_BYTES_MAX: u64 = 64 << 20;
/// A file whose parsing takes longer is left out.
pub const PARSE_TIME_MAX: Duration = Duration::from_secs(5);
/// All of a survey; what is not read by then is left out, and that is said.
pub const SURVEY_TIME_MAX: Duration = Duration::from_mins(1);
/// Tools that are told of.
pub const TOOLS_MAX: usize = 2_000;
/// How far a name is followed from one definition to the next.
pub const STEPS_MAX: usize = 48;
/// How many nodes are looked at to find out what a name means, for one file.
pub const WORK_MAX: usize = 2_000_000;
/// How far what is around a node is looked at.
pub const ABOVE_MAX: usize = 128;
/// Parts of a file that know the same name and are looked at before one is given up.
pub const SCOPES_MAX: usize = 1_000;
/// All that is told of tools, in bytes.
pub const TOLD_BYTES_MAX: usize = 4 << 20;
/// What one tool may want.
pub const PARAMETERS_MAX: usize = 500;
/// How deeply foreign data may be nested.
pub const DEPTH_MAX: usize = 96;
