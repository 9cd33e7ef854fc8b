//! Every bound on waits, queues and sizes of this room.

use std::time::Duration;

/// Links in results of which is remembered which server gave them: for one client, and from one result; and how long
/// their URIs may be.
pub const LINKS_PER_CLIENT_MAX: usize = 512;
pub const LINKS_PER_RESULT_MAX: usize = 128;
pub const LINK_BYTES_MAX: usize = 2048;
/// Calls that one client may have under way, at upstreams or waiting for their turn.
pub const CALLS_PER_CLIENT_MAX: usize = 2_048;
/// Of these, how many may be at upstreams at once.
pub const CALLS_AT_ONCE_MAX: usize = 256;
/// Requests to one client that wait for its answer.
pub const ASKS_PER_CLIENT_MAX: usize = 64;
/// Messages that wait to be sent to one client.
pub const OUTBOX_FRAMES_MAX: usize = 256;
/// Bytes that may wait before notices get lost and no further request is taken on.
pub const OUTBOX_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that are written to a pipe at a time, unless one message has more.
pub const BATCH_BYTES: usize = 64 * 1024;
/// Streams on which one client hears of changes; all clients of one token count as one.
pub const LISTENERS_MAX: usize = 1_024;
/// Bytes of a request that opens one.
pub const LISTEN_BYTES_MAX: usize = 128 * 1024;
/// Resources that one session, or one stream, watches.
pub const WATCHES_MAX: usize = 256;
/// Tasks whose owners are remembered.
pub const TASKS_MAX: usize = 10_000;
/// Pages that are read of an upstream's list of tasks.
pub const TASK_PAGES_MAX: usize = 10;
/// Longest name of an agent or client.
pub const NAME_BYTES_MAX: usize = 256;
/// Callers without a session whose choices are remembered; of more, those that ask nothing now are
/// forgotten.
pub const PRINCIPALS_MAX: usize = 4_096;
/// Of these, those who say something for servers of their own; of more, those that were heard of least lately
/// are forgotten.
pub const CONTEXTS_MAX: usize = 1_000;
/// Bytes of what a client says for servers of its own.
pub const CONTEXT_BYTES_MAX: usize = 16 * 1024;
/// Toolsets that one agent may save.
pub const TOOLSETS_PER_AGENT_MAX: usize = 100;
/// Callers whose selections are remembered; of more, those that were changed least lately are forgotten.
pub const SELECTIONS_MAX: usize = 4_096;
/// Bytes of the names in a selection that is kept for the next start.
pub const SELECTION_BYTES_MAX: usize = 256 * 1024;
/// How long a changed selection waits for others, so that all are written at once.
pub const SELECTIONS_GATHER: Duration = Duration::from_millis(50);
/// How long the end waits for the last ones to be written.
pub const SELECTIONS_WRITE_MAX: Duration = Duration::from_millis(500);
/// Programs whose habits are remembered.
pub const PROGRAMS_MAX: usize = 1_000;
/// A client that calls something so often without listing its tools anew, though it was told to, never does.
pub const IGNORED_NOTICES_MAX: u32 = 2;
/// Calls whose consent is remembered while they go on.
pub const CONSENTS_MAX: usize = 10_000;
/// Of the arguments of a call, how much a person is shown who is asked for consent.
pub const SHOWN_ARGUMENTS_CHARS_MAX: usize = 2_000;
/// Bytes of results that are remembered.
pub const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Scopes whose first view is kept though nobody may be in them.
pub const SCOPES_MAX: usize = 256;
/// Events of all upstreams that wait to be looked at.
pub const EVENTS_MAX: usize = 1_024;
/// Records of calls that wait to be written; more are lost.
pub const RECORDS_MAX: usize = 8_192;
/// Bytes of arguments and results that wait with them; more are recorded without.
pub const RECORDED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What is no longer is copied for its record: a part would keep the whole that it was read from.
pub const COPIED_BYTES_MAX: usize = 4 * 1024;
/// How long a record waits for others, so that all are written at once.
pub const RECORDS_GATHER: Duration = Duration::from_millis(20);
/// Of an upstream's instructions, how much is passed on.
pub const INSTRUCTIONS_CHARS_MAX: usize = 4_000;

/// Bytes on their way to and from tools of the program's own.
pub const OWN_PIPE_BYTES: usize = 64 * 1024;
/// Answers of theirs that wait to be taken.
pub const OWN_ANSWERS_MAX: usize = 64;

/// How long `initialize` waits for upstreams of which nothing is known yet: some clients give up after a second.
pub const INITIALIZE_MAX: Duration = Duration::from_millis(200);
/// How long the first list waits for them, at most.
pub const SETTLE_MAX: Duration = Duration::from_secs(10);
/// It goes on sooner when no further upstream has come for this long.
pub const SETTLE_QUIET: Duration = Duration::from_millis(1_500);
/// What comes later than this after a notice has nothing to do with it; no reply waits longer for a client to list its
/// tools again, unless the operator says so.
pub const RELISTING_MAX: Duration = Duration::from_secs(1);
/// How long a client has, once it has listed them, to take that in before the reply comes.
pub const RELISTED_GRACE: Duration = Duration::from_millis(15);
/// How long enabling a toolset waits for the upstreams that it starts.
pub const LAZY_START_MAX: Duration = Duration::from_secs(30);
/// How long a call or a list waits for a folder of Python tools that is still to be read.
pub const UNREAD_MAX: Duration = Duration::from_secs(10);
/// How long a person may think about a question, and how long consent lasts for a call that goes on
/// in several steps.
pub const CONSENT_MAX: Duration = Duration::from_mins(5);
/// How long to wait at most before looking at the clock again, where rules depend on it.
pub const EDGE_LOOK_MAX: Duration = Duration::from_secs(30);
/// A caller who says something for servers of its own and has not asked for so long is forgotten.
pub const CONTEXT_IDLE_MAX: Duration = Duration::from_hours(1);
/// How long the end of all upstreams is waited for; their guards go on alone.
pub const STOP_MAX: Duration = Duration::from_secs(3);
/// What a call is left of its time at least, when it has waited for its upstream to be made ready.
pub const CALL_REST_MIN: Duration = Duration::from_secs(1);
