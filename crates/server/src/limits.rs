//! Every bound on waits, queues and sizes of this room.

use std::time::Duration;

/// One message from a client.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long answers under way are waited for after a stdio client has closed its end.
pub const STDIN_DRAIN_MAX: Duration = Duration::from_millis(400);
/// How long the writing of the last answers may take.
pub const WRITE_DRAIN_MAX: Duration = Duration::from_millis(100);
/// Requests of one stdio client that are not answered yet; more wait to be read.
pub const REQUESTS_MAX: usize = 2_048;
/// A client that takes nothing of an answer for this long is given up.
pub const WRITE_STALL_MAX: Duration = Duration::from_mins(5);

/// Connections at the same time.
pub const CONNECTIONS_MAX: usize = 512;
/// Sessions at the same time; the one idle longest gives way.
pub const SESSIONS_MAX: usize = 1_000;
/// Events of one session that are kept for readers who come back.
pub const EVENTS_KEPT: usize = 256;
/// Their bytes; an answer that is larger can't be read again.
pub const EVENT_BYTES_KEPT: usize = 1024 * 1024;
/// Streamed answers of one session at the same time; further ones are not streamed.
pub const STREAMS_MAX: usize = 8;
/// After this a client that lost a stream may come back for the rest.
pub const RETRY: Duration = Duration::from_secs(1);
/// A session id that is longer is none of ours.
pub const SESSION_ID_BYTES_MAX: usize = 128;
/// A session that was not used for this long is forgotten.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(24);
/// Time for a request's head, from the first byte or the end of the request before.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a request's body.
pub const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Lines of a request's head.
pub const HEADERS_MAX: usize = 64;
/// Silence on a stream after which a comment is sent.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pause after a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How long the last bytes of answers may take at the end.
pub const CLOSE_MAX: Duration = Duration::from_millis(200);
/// How long requests under way are waited for at the end.
pub const DRAIN_MAX: Duration = Duration::from_secs(30);
