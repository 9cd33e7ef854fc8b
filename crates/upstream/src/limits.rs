//! Every bound on waits, queues and sizes of this room.

use std::time::Duration;

/// One line from an upstream; a longer one is dropped and its call fails.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Of an answer over HTTP, how much is held before the rest is passed on as it comes.
pub const HELD_BYTES_MAX: usize = 64 * 1024;
/// How much of a server's stderr is kept.
pub const STDERR_BYTES_KEPT: usize = 64 * 1024;
/// How much of it is shown in an error.
pub const STDERR_BYTES_SHOWN: usize = 1024;
/// How much of what tools print is kept in a file, of which there are two; and how much may wait to be written.
pub const PRINTED_BYTES_MAX: u64 = 1024 * 1024;
pub const PRINTED_WAITING_MAX: usize = 256 * 1024;
/// Pages read of one list.
pub const PAGES_MAX: usize = 1_000;
/// Items kept of one list.
pub const ITEMS_MAX: usize = 10_000;
/// Time for all pages of one list.
pub const LIST_TIME_MAX: Duration = Duration::from_secs(20);
/// Bytes kept of one list.
pub const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Messages waiting to be written to an upstream.
pub const OUTGOING_MAX: usize = 256;
/// Calls under way at one upstream.
pub const CALLS_MAX: usize = 4_096;
/// Requests of one upstream that wait for a client's answer.
pub const ASKS_MAX: usize = 64;

/// For how long a client counts after its last call: until then a server may still ask or log because of it.
pub const AFTERMATH: Duration = Duration::from_mins(10);

/// Silence after which a call is given up, unless configured.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// What sets it for a single server, and for all where nothing else does.
pub const TIMEOUT_SETTING: &str = "timeout";
/// However much progress is reported, a call ends after this.
pub const CALL_TOTAL_MAX: Duration = Duration::from_hours(6);
/// How long a client may take to answer a request of an upstream: a person may be asked.
pub const ASK_TIMEOUT: Duration = Duration::from_mins(10);
/// After this a server that has not answered counts as late, unless configured.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// A lazy server that nobody has needed for this long is ended, unless configured.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// After this a late server is given up, unless configured.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(10);
/// Bytes of an inventory that is kept for the next start, and how many are kept.
pub const INVENTORY_BYTES_MAX: usize = 16 * 1024 * 1024;
pub const INVENTORIES_MAX: usize = 1_000;
/// How long the end of a server's supervision waits until its inventory is kept.
pub const KEEPING_MAX: Duration = Duration::from_millis(500);
/// A list that could not be read is asked for again after such a pause, doubled each time, and so often.
pub const LIST_RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);
pub const LIST_RETRY_PAUSE_MAX: Duration = Duration::from_mins(1);
pub const LIST_RETRIES_MAX: u32 = 10;
/// How much of an error is shown with which a server has answered a question of ours.
pub const ANSWERED_ERROR_CHARS_MAX: usize = 2_000;

/// How long a server may take to end by itself once its stdin is closed.
pub const STDIN_CLOSE_GRACE: Duration = Duration::from_millis(200);
/// How long it may take after SIGTERM, before SIGKILL.
pub const TERM_GRACE: Duration = Duration::from_millis(200);
/// How long the guard may take for all of it.
pub const GUARD_EXIT_MAX: Duration = Duration::from_millis(700);
/// How often a guard looks whether many processes were born, and how many are many; and how often it counts its
/// own in any case.
pub const CENSUS_PAUSE: Duration = Duration::from_millis(50);
pub const CENSUS_BIRTHS: u32 = 16;
pub const CENSUS_EVERY: Duration = Duration::from_secs(1);
/// Threads of a worker, for each process that it may be, and those that every worker may have: libraries start one for
/// each processor.
pub const THREADS_OF_A_PROCESS: u64 = 16;
pub const THREADS_MAX_LEAST: u64 = 256;
/// The files of a worker are looked at again after so many times the time that it took, and earlier when such a part
/// of what is allowed was written; and so much counts each of them at least.
pub const STOCK_SHARE: u32 = 50;
pub const STOCK_PART: u64 = 16;
pub const STOCK_FILE_BYTES_MIN: u64 = 4 * 1024;
/// How long the exit code of a server that has closed a pipe is waited for: as a rule it has ended.
pub const EXIT_CODE_MAX: Duration = Duration::from_secs(1);
/// How long the last output of an ended server is read.
pub const DRAIN_MAX: Duration = Duration::from_millis(250);

/// How long the reading of Python sources may take, and how much may come of it.
pub const SCAN_TIME_MAX: Duration = Duration::from_secs(20);
pub const SCAN_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long an environment may take to be built, all steps together, unless configured.
pub const ENVIRONMENT_TIME_MAX: Duration = Duration::from_mins(2);
/// An environment that could not be built is not tried again within this time, unless something else is asked for.
pub const ENVIRONMENT_RETRY_AFTER: Duration = Duration::from_mins(1);
/// If `uv` could not be installed, it is not tried again within this time.
pub const UV_RETRY_AFTER: Duration = Duration::from_mins(10);
/// How long an interpreter may take to say what it is.
pub const PROBE_TIME_MAX: Duration = Duration::from_secs(20);
/// How long a call waits for a server that has ended and is being started again.
pub const RETURN_MAX: Duration = Duration::from_secs(2);
/// How much longer than the tool's own time the gateway waits for a worker to say that it is over.
pub const WORKER_SILENCE: Duration = Duration::from_millis(500);

/// First pause before a restart; doubled each time.
pub const RESTART_DELAY_MIN: Duration = Duration::from_millis(100);
/// How long a retired upstream is left to those who have just looked it up, and how often it is looked at.
pub const RETIRE_GRACE: Duration = Duration::from_millis(250);
/// Longest pause before a restart, unless configured.
pub const RESTART_DELAY_MAX: Duration = Duration::from_secs(30);
/// Ends in a row, with nothing of use between, after which a server is parked.
pub const CRASHES_MAX: u32 = 5;
/// A server that lived this long has been of use.
pub const HEALTHY_AFTER: Duration = Duration::from_mins(1);

/// How long a connection to a remote server may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses between attempts while no connection can be made.
pub const CONNECT_PAUSES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(700)];
/// Unused connections kept to one remote server.
pub const IDLE_CONNECTIONS_MAX: usize = 256;
/// For how long they are kept. Widespread servers close theirs after 5 s, and a request that
/// crosses the closing is lost.
pub const IDLE_CONNECTION_TIME: Duration = Duration::from_secs(4);
/// How long the end of an answer may take once nothing more is wanted of it, how much may come
/// until then, and for how many answers at a time it is waited. Otherwise they are broken off.
pub const LINGER_MAX: Duration = Duration::from_millis(500);
pub const LINGER_BYTES_MAX: usize = 16 * 1024;
pub const LINGERING_MAX: usize = 16;
/// Bytes and fields of the head of an answer.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
pub const HEAD_FIELDS_MAX: usize = 100;
/// Bytes of the line before a chunk, and of all lines after the last one.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;
pub const TRAILER_BYTES_MAX: usize = 16 * 1024;
/// Room for what is read at a time, at first and at most.
pub const READ_BYTES_MIN: usize = 4 * 1024;
pub const READ_BYTES_MAX: usize = 128 * 1024;
/// The body of a request that is larger is not copied to its head.
pub const COPIED_BYTES_MAX: usize = 16 * 1024;
/// A connection on which nothing comes for this long is probed, again after each pause, and given
/// up when so many probes are not answered: a peer that has vanished says nothing.
pub const PROBE_AFTER: Duration = Duration::from_secs(30);
pub const PROBE_PAUSE: Duration = Duration::from_secs(10);
pub const PROBES_MAX: u32 = 3;
/// How long the rest of a refusal may take.
pub const REFUSAL_TIME_MAX: Duration = Duration::from_secs(2);
/// How much of a refusal is read, and how much of it is shown.
pub const REFUSAL_BYTES_MAX: usize = 16 * 1024;
pub const REFUSAL_CHARS_SHOWN: usize = 200;
/// Messages other than requests that are on their way to one remote server at a time.
pub const POSTS_MAX: usize = 8;
/// How long a remote server may take to accept one of them.
pub const POST_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last of them may take once the conversation is over.
pub const LAST_POSTS_MAX: Duration = Duration::from_secs(1);
/// How long a remote server may take to say whether it is of the modern era.
pub const DISCOVER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server of the oldest transport may take to say where to post to.
pub const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the farewell to a remote server may take.
pub const FAREWELL_MAX: Duration = Duration::from_millis(300);
/// Attempts in a row, without any event between, to resume the answer to one call.
pub const RESUMES_MAX: u32 = 5;
/// Least pause before the rest of an answer is fetched, whatever the server says.
pub const RESUME_DELAY_MIN: Duration = Duration::from_millis(100);
/// First pause before a stream is opened again, unless the server says; doubled each time.
pub const REOPEN_DELAY_MIN: Duration = Duration::from_secs(1);
/// Longest pause before a stream is opened again or a server is tried again.
pub const REOPEN_DELAY_MAX: Duration = Duration::from_secs(30);
/// How long a stream of changes goes on beside the one that replaces it.
pub const LISTEN_OVERLAP: Duration = Duration::from_secs(2);
/// How long a call waits for a new session when its own was lost.
pub const NEW_SESSION_MAX: Duration = Duration::from_secs(20);
/// Sessions in a row, with nothing of use in any, that are opened anew at once.
pub const RENEWALS_MAX: u32 = 3;
/// How often the safe is looked at for a secret that has changed or is missing.
pub const SECRETS_PAUSE: Duration = Duration::from_secs(1);
/// How long the start waits for the safe to be opened, so that nothing is heard before its values are known.
pub const SECRETS_WAIT_MAX: Duration = Duration::from_secs(3);
/// Bytes that a text may end with though a value begins so: they tell nothing, and many texts end like that.
pub const BEGINNING_SHOWN_MAX: usize = 3;
/// Values that are hidden; the oldest of more are forgotten.
pub const VEILED_MAX: usize = 10_000;
/// Conversations of single clients with one upstream.
pub const PRIVATES_MAX: usize = 64;
/// The same where nobody has asked for them: of one server that speaks to clients by itself. The idlest gives way; where
/// all are in use, further clients share.
pub const APART_MAX: usize = 16;
/// How long servers wait for the one client to say what it can be asked for, before they are told of everything.
pub const CLIENT_WAIT_MAX: Duration = Duration::from_secs(5);
/// Such a one is closed when it was not used for this long.
pub const PRIVATE_IDLE_MAX: Duration = Duration::from_mins(15);
/// How long all of them may take to end.
pub const PRIVATE_STOP_MAX: Duration = Duration::from_millis(1500);
/// A list that may change without notice is read again after this, at the earliest.
pub const LIST_AGE_MIN: Duration = Duration::from_secs(30);

/// The largest answer to a single request of our own.
pub const POST_ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long the first line of a worker is waited for, which was written before.
pub const FIRST_LINE_MAX: Duration = Duration::from_millis(500);
