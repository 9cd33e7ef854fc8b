//! Every bound on waits, queues and sizes of this room.

use std::time::Duration;

/// One message from a client.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long answers under way are waited for after a stdio client has closed its end.
pub const STDIN_DRAIN_MAX: Duration = Duration::from_millis(400);
/// The same after a signal.
pub const STOP_DRAIN_MAX: Duration = Duration::from_millis(50);
/// How long the writing of the last answers may take.
pub const WRITE_DRAIN_MAX: Duration = Duration::from_millis(100);
/// Requests of one stdio client that are not answered yet; more wait to be read.
pub const REQUESTS_MAX: usize = 2_048;
/// How long a door that can't serve goes on telling its client why.
pub const REFUSAL_MAX: Duration = Duration::from_secs(10);
/// A client that takes nothing of an answer for this long is given up.
pub const WRITE_STALL_MAX: Duration = Duration::from_mins(5);

/// Connections at the same time, where there are files enough for them.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Connections that wait to be accepted.
pub const CONNECTIONS_WAITING_MAX: u32 = 1_024;
/// Open files that are left for everything but connections.
pub const FILES_RESERVED: usize = 128;
/// Sessions at the same time; the one idle longest gives way.
pub const SESSIONS_MAX: usize = 1_000;
/// Events of one session that are kept for readers who come back.
pub const EVENTS_KEPT: usize = 256;
/// Their bytes; an answer that is larger can't be read again.
pub const EVENT_BYTES_KEPT: usize = 1024 * 1024;
/// Streamed answers of one session at the same time; further ones are not streamed.
pub const STREAMS_MAX: usize = 8;
/// Streams of one session that GET has opened; of more, the oldest one ends.
pub const STANDING_STREAMS_MAX: usize = 8;
/// After this a client that lost a stream may come back for the rest.
pub const RETRY: Duration = Duration::from_secs(1);
/// A session id that is longer is none of ours.
pub const SESSION_ID_BYTES_MAX: usize = 128;
/// A session that was not used for this long is forgotten.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(24);
/// How often sessions that are too old are looked for, in ticks.
pub const SESSION_SWEEP_TICKS: u64 = 30;
/// How often connections are looked at: what a tick is.
pub const TICK: Duration = Duration::from_secs(1);
/// Ticks for the first request's head, or for a later one since the end of the request before.
pub const HEAD_TICKS: u64 = 10;
/// Time for agreeing on TLS.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence in the middle of a request's body.
pub const BODY_IDLE_MAX: Duration = Duration::from_secs(15);
/// Time after which a body must keep to the least rate.
pub const BODY_GRACE: Duration = Duration::from_secs(10);
/// Bytes of a body a second, at least.
pub const BODY_RATE_MIN: usize = 1024;
/// Bytes of all bodies that are kept at the same time.
pub const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Lines of a request's head.
pub const HEADERS_MAX: usize = 64;
/// Requests of one HTTP/2 connection at the same time.
pub const H2_STREAMS_MAX: u32 = 100;
/// Bytes of one HTTP/2 request that may come unasked.
pub const H2_STREAM_WINDOW: u32 = 64 * 1024;
/// The same for all requests of a connection.
pub const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;
/// HTTP/2 requests that were taken back before they were looked at.
pub const H2_PENDING_RESETS_MAX: usize = 20;
/// Bytes of an HTTP/2 answer that wait for the client.
pub const H2_SEND_BUFFER: usize = 64 * 1024;
/// Pause between questions whether an HTTP/2 client is still there.
pub const H2_PING_EVERY: Duration = Duration::from_secs(20);
/// How long its answer may take.
pub const H2_PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Ticks after which an HTTP/2 connection without a request is closed.
pub const IDLE_TICKS: u64 = 120;
/// An HTTP client that takes nothing of an answer for this long is given up.
pub const ANSWER_STALL_MAX: Duration = Duration::from_mins(1);
/// The same, where it is counted in ticks.
pub const ANSWER_STALL_TICKS: u64 = ANSWER_STALL_MAX.as_secs() / TICK.as_secs();
/// Results that are larger are not copied into their frame.
pub const COPIED_MAX: usize = 16 * 1024;
/// Bytes of an answer that are handed over at a time.
pub const PIECE_BYTES: usize = 128 * 1024;
/// How long what a client still sends is thrown away, so that it gets to read our answer.
pub const LINGER_MAX: Duration = Duration::from_secs(1);
/// Silence on a stream after which a comment is sent.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Pause after a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Pause between complaints that connections can't be accepted.
pub const ACCEPT_COMPLAINT_EVERY: Duration = Duration::from_secs(1);
/// How long the last bytes of answers may take at the end.
pub const CLOSE_MAX: Duration = Duration::from_millis(200);
/// How long requests under way are waited for at the end.
pub const DRAIN_MAX: Duration = Duration::from_secs(30);
