//! Bounds on what a model is shown.

/// Tokens of the definitions in a reply about items that were switched on; what is beyond has a line each. Clients cut
/// results: Claude Code warns at 10,000.
pub const ACTIVATED_TOKENS_MAX: usize = 8_000;
/// The same where it is a single item, whose definition is not to be had by switching on fewer.
pub const SINGLE_TOKENS_MAX: usize = 20_000;
/// Tokens of these lines.
pub const ACTIVATED_LINES_TOKENS_MAX: usize = 2_000;
/// Tokens of the stubs of all inactive tools; where they would cost more, there are none.
pub const STUB_TOKENS_MAX: usize = 4_000;
/// Tokens of the listed tools that a client is told to show to its model at once.
pub const MARKED_TOKENS_MAX: usize = 10_000;
