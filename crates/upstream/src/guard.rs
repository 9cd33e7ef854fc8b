//! The guard: a tiny mode of our own binary that stands above each server process.
//!
//! It is a subreaper, so every descendant of the server ends up as its child when it is orphaned,
//! also one that left the process group and session. When the server ends, when it is told to
//! stop, or when the gateway is gone (even by SIGKILL), it kills them all and ends.
//!
//! Two stages, because nothing can run between fork and exec without `unsafe`: the guard starts
//! this binary once more, which opens a session of its own and becomes the server by exec.

mod census;
mod group;
mod stock;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid,
    kill_process, kill_process_group, pidfd_open, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, wait, waitpid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::confine::{self, Confinement};
use crate::inheritance;
use crate::limits::TERM_GRACE;
use crate::processes::{family, kill_children};

use group::Group;
use stock::Stock;

pub use census::Bounds;
pub use group::can_be_made as has_groups;

/// How the modes are called. Not after the binary, so that who kills that by name spares them.
const GUARD: &str = "mcp-guard";
const STAGE: &str = "mcp-stage";
/// The exit code of a server that was killed.
const KILLED: u8 = 137;
/// How far up it is looked for guards.
const ANCESTORS_MAX: usize = 256;
/// Held by the thread that has the last word.
static ENDING: Mutex<()> = Mutex::new(());

/// What a server is held to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// What it gives up before it is started.
    pub confinement: Option<&'a Confinement>,
    /// What it may become, with all processes below it.
    pub bounds: Option<Bounds>,
    /// Where its files are that are bounded, too.
    pub scratch: Option<&'a Path>,
}

/// A command that runs `program` under a guard; `guard` is our own binary.
pub fn command(guard: &OsStr, terms: Terms<'_>, program: &OsStr, args: &[OsString]) -> Command {
    let mut command = Command::new(guard);
    command.arg0(GUARD).arg(std::process::id().to_string());
    command.arg(terms.bounds.map(|bounds| bounds.written()).unwrap_or_default());
    command.arg(terms.scratch.unwrap_or(Path::new("")));
    command.arg(terms.confinement.map(Confinement::written).unwrap_or_default());
    command.arg(program).args(args);
    // Ctrl-C at the terminal is for the gateway, which then ends its guards in order.
    command.process_group(0);
    command
}

/// Runs the mode that this process was started in; `None` when it is an ordinary start.
pub fn run() -> Option<ExitCode> {
    let mut args = std::env::args_os();
    match args.next()?.to_str()? {
        GUARD => {
            inheritance::close();
            Some(guard(args))
        }
        STAGE => Some(stage(args)),
        _ => None,
    }
}

/// How many guards stand above this process: as many gateways, each of which was started by a server of another.
pub fn count_above() -> usize {
    let mut count = 0;
    let mut next = getppid();
    for _ in 0..ANCESTORS_MAX {
        let Some(pid) = next else { break };
        let file = |name: &str| std::fs::read(format!("/proc/{}/{name}", pid.as_raw_nonzero()));
        let command_line = file("cmdline").unwrap_or_default();
        count +=
            usize::from(command_line.split(|byte| *byte == 0).next() == Some(GUARD.as_bytes()));
        let stat = file("stat").ok().and_then(|stat| String::from_utf8(stat).ok());
        // The name stands in brackets and may hold anything; the state and the parent follow.
        let parent = stat.as_deref().and_then(|stat| stat.rsplit_once(')')?.1.split(' ').nth(2));
        next = parent.and_then(|parent| parent.parse().ok()).and_then(Pid::from_raw);
    }
    count
}

/// Becomes the server, in a session and process group of its own.
fn stage(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(confinement), Some(program)) = (args.next(), args.next()) else {
        return ExitCode::FAILURE;
    };
    _ = setsid();
    // If the guard itself is killed, the server goes at once; the gateway sweeps up the rest.
    _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard lets us go on when it holds no copies of the server's pipes any more.
    _ = kill_process(getpid(), Signal::STOP);
    match confine::enter(&confinement.to_string_lossy()) {
        Ok(None) => {}
        Ok(Some(reached)) => say(&format!("{}{reached}", confine::SANDBOX_SAID)),
        Err(problem) => {
            say(&format!("toolman: {problem}"));
            return ExitCode::from(125);
        }
    }
    let error = Command::new(&program).args(args).exec();
    let closed = "; a worker of root needs a file, and folders above it, that are open to root as they are to others";
    let is_closed = error.kind() == io::ErrorKind::PermissionDenied && !confinement.is_empty();
    let remedy = if is_closed { closed } else { "" };
    say(&format!("toolman: can't run `{}`: {error}{remedy}", program.display()));
    ExitCode::from(127)
}

fn guard(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    // Its environment is that of its server, with the secrets of that: for no other process of this user.
    _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let parent = args.next().and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    match (parent, args.next(), args.next(), args.next(), args.next()) {
        (Some(parent), Some(bounds), Some(scratch), Some(confinement), Some(program)) => {
            let bounds = bounds.to_str().and_then(Bounds::read);
            let bounds = bounds.map(|bounds| (bounds, Stock::new(scratch.into(), bounds)));
            watch_over((parent, bounds), &confinement, &program, args).unwrap_or_else(|e| {
                say(&format!("toolman: can't guard `{}`: {e}", program.display()));
                ExitCode::from(126)
            })
        }
        _ => ExitCode::FAILURE,
    }
}

fn watch_over(
    (parent, bounded): (Pid, Option<(Bounds, Stock)>),
    confinement: &OsStr,
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
) -> io::Result<ExitCode> {
    set_child_subreaper(Some(getpid()))?;
    let gateway = pidfd_open(parent, PidfdFlags::empty())?;
    if getppid() != Some(parent) {
        return Ok(ExitCode::FAILURE); // It ended before we looked.
    }
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    #[expect(clippy::disallowed_methods, reason = "the guard is what the ban is for")]
    let server = Command::new("/proc/self/exe")
        .arg0(STAGE)
        .arg(confinement)
        .arg(program)
        .args(args)
        .spawn()?;
    let server = Pid::from_child(&server);
    if let Some(code) = ended_before_it_stopped(server) {
        return Ok(ExitCode::from(code));
    }
    let bounds = bounded.as_ref().map(|(bounds, _)| *bounds);
    let group = bounds.and_then(Group::make).filter(|group| group.take(server).is_ok());
    let all = Arc::new(All { group, stock: bounded.map(|(_, stock)| Mutex::new(stock)) });
    // Ours are copies: the gateway must see it when the server closes its own ends.
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        _ = rustix::stdio::dup2_stdin(&null);
        _ = rustix::stdio::dup2_stdout(&null);
    }
    _ = kill_process(server, Signal::CONT);
    let below = Arc::clone(&all);
    std::thread::spawn(move || {
        let mut fds = [PollFd::new(&gateway, PollFlags::IN)];
        while poll(&mut fds, None).is_err() {}
        below.end();
        std::process::exit(1);
    });
    let below = Arc::clone(&all);
    std::thread::spawn(move || {
        signals.forever().next();
        terminate(server);
        below.end();
        std::process::exit(143);
    });
    if let Some(bounds) = bounds {
        let below = Arc::clone(&all);
        std::thread::spawn(move || below.keep_within(bounds, server));
    }
    // The first thread reaps, and stays to the end: the server's death signal hangs on it.
    let code = reap_until(server);
    let _last = ENDING.lock();
    all.end();
    Ok(ExitCode::from(code))
}

/// All that is below us, and what it keeps.
struct All {
    group: Option<Group>,
    stock: Option<Mutex<Stock>>,
}

impl All {
    /// Counts it for as long as it is within its bounds; then it is ended, and so are we.
    fn keep_within(&self, bounds: Bounds, server: Pid) {
        let Some(stock) = &self.stock else { return };
        let kept = || stock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(remark) = kept().open(server) {
            say(&format!("toolman: {remark}"));
        }
        let excess = census::watch(bounds, server, stock, self.group.as_ref());
        let _last = ENDING.lock();
        if excess.is_of_files {
            // What it has made since it was looked at has to go, too.
            _ = kill_process(server, Signal::STOP);
            // Calls of the kernel that are under way come to their end first.
            std::thread::sleep(Duration::from_millis(5));
            kept().note_open(&family());
        }
        self.end();
        if excess.is_of_files {
            kept().shrink();
        }
        // Now, as what they print may have left no room for a word of ours.
        say(&format!("toolman: {}", excess.said));
        std::process::exit(KILLED.into());
    }

    /// Ends all of it.
    fn end(&self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        kill_children(|_| false);
        if let Some(group) = &self.group {
            group.remove();
        }
        if let Some(stock) = &self.stock {
            stock.lock().unwrap_or_else(PoisonError::into_inner).release();
        }
    }
}

/// Asks the server to end, and waits a little.
fn terminate(server: Pid) {
    _ = kill_process_group(server, Signal::TERM);
    let deadline = Instant::now() + TERM_GRACE;
    // The other thread reaps the server and then ends this process.
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the stage has stopped itself; its exit code if it has ended instead.
fn ended_before_it_stopped(stage: Pid) -> Option<u8> {
    loop {
        match waitpid(Some(stage), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => return None,
            Ok(Some((_, status))) => return Some(exit_code(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Some(255),
        }
    }
}

/// An exit code as a shell gives it.
fn exit_code(status: WaitStatus) -> u8 {
    let killed = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(killed);
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

/// Reaps whatever ends, until it is the server; its exit code.
fn reap_until(server: Pid) -> u8 {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == server => return exit_code(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Another thread has ended and reaped them all.
            Err(_) => return KILLED,
        }
    }
}

/// A line to the server's own stderr, which the gateway keeps.
fn say(line: &str) {
    use io::Write as _;
    _ = writeln!(io::stderr(), "{line}");
}
