//! Every bound on waits, queues and sizes of the benchmark.

use std::time::Duration;

/// The largest result that an upstream makes.
pub const BIG_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Messages that wait to be written to the child of an anchor.
pub const OUTGOING_MAX: usize = 256;
/// The longest answer that the load takes.
pub const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// An answer that takes longer is lost.
pub const ANSWER_TIME_MAX: Duration = Duration::from_mins(1);
/// How long a contestant may take until it serves; Python takes its time, valgrind even more.
pub const START_TIME_MAX: Duration = Duration::from_mins(2);
/// How long a contestant may take to end when it is asked to.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(20);
/// Pause between looks at something that nobody tells us of.
pub const LOOK_PAUSE: Duration = Duration::from_millis(20);
/// How often a route is walked while instructions are counted: the difference is what counts.
pub const COUNT_SHORT: u64 = 100;
pub const COUNT_LONG: u64 = 2_100;
/// How much a route may grow, or shrink unsaid.
pub const INSTRUCTIONS_ROOM_PERCENT: f64 = 3.0;
/// The same for a whole route of which a part depends on what else the machine does.
pub const UNSTEADY_ROOM_PERCENT: f64 = 10.0;
/// How much the memory of an idle gateway may grow.
pub const MEMORY_ROOM_PERCENT: u64 = 10;
/// Tools of an idle gateway.
pub const IDLE_TOOLS: usize = 1_000;
/// System calls for one call, when several clients ask: two reads, two writes, a share of waiting.
pub const SYSTEM_CALLS_MAX: f64 = 5.0;
/// Clients that ask at once while system calls are counted.
pub const CLIENTS_COUNTED: usize = 16;
/// Calls while requests to upstreams and their processes are counted.
pub const CALLS_COUNTED: u64 = 200;
/// Sessions that are open at the same time, each with a stream.
pub const SESSIONS_OPEN: usize = 1_000;
/// How often a tool is switched on or off in a round.
pub const ACTIVATIONS: usize = 40;
/// Clients that ask at once while the system calls of a crowd are counted.
pub const CROWD: usize = 64;
/// A contestant whose rounds take longer than this has one round only.
pub const SLOW_ROUND: Duration = Duration::from_secs(10);
/// What a policed call may take, in plain ones.
pub const POLICED_MOST: f64 = 1.05;
/// How often a worker is started, what it may keep in memory, and how long the quickest first call may take.
pub const WORKER_STARTS: usize = 9;
pub const WORKER_KIB_MAX: u64 = 25 * 1024;
pub const WORKER_READY_MAX: Duration = Duration::from_millis(150);
