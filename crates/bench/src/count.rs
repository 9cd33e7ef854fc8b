//! Counting instead of timing: instructions and system calls of one call, the same on every run.
//!
//! A path is walked twice, a short way and a long one; the difference has no start and no end in
//! it. One client asks one question after the other.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::ChildStdin;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::callgrind::Profile;
use crate::contestant::{self, Contestant, Scene, Upstream};
use crate::limits::{COUNT_LONG, COUNT_SHORT};
use crate::load::request::{Dialect, Template, Verdict};
use crate::load::{self, Door, Question, Until};
use crate::process::{self, Process};

/// What makes two counts the same: one thread that works, and one that runs at a time.
pub const ONE_WORKER: (&str, &str) = ("TOKIO_WORKER_THREADS", "1");

/// A way through the gateway whose cost is watched.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `tools/list` over HTTP, of 100 tools.
    List,
    /// `tools/call` over HTTP, to an upstream over HTTP.
    Call,
    /// The same where there are policies, which allow it.
    CallPoliced,
    /// The same in the modern era.
    CallModern,
    /// `tools/call` over HTTP, to an upstream over pipes.
    CallStdio,
    /// `tools/call` over pipes on both sides.
    Pipes,
    /// Reading the message of a call and the parameters that matter, and nothing else.
    Envelope,
}

impl Route {
    pub const ALL: [Route; 7] = [
        Route::List,
        Route::Call,
        Route::CallPoliced,
        Route::CallModern,
        Route::CallStdio,
        Route::Pipes,
        Route::Envelope,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Route::List => "list",
            Route::Call => "call",
            Route::CallPoliced => "call-policed",
            Route::CallModern => "call-modern",
            Route::CallStdio => "call-stdio",
            Route::Pipes => "pipes",
            Route::Envelope => "envelope",
        }
    }

    fn question(self) -> Question {
        match self {
            Route::List => Question::List { tools: TOOLS },
            _ => Question::Call { tool: "echo".to_owned(), bytes: 0 },
        }
    }

    fn dialect(self) -> Dialect {
        if self == Route::CallModern { Dialect::Modern } else { Dialect::Legacy }
    }

    /// What lies behind the gateway, with the process of an upstream that is not its child.
    fn scene(self) -> anyhow::Result<(Scene, Option<(Process, u16)>)> {
        let dialect = self.dialect();
        if matches!(self, Route::CallStdio | Route::Pipes) {
            let upstreams = vec![contestant::stdio_upstream(TOOLS)?];
            return Ok((Scene { upstreams, dialect, rules: String::new() }, None));
        }
        let (process, port) = contestant::start_upstream(TOOLS)?;
        let upstreams = vec![Upstream::Http { port }];
        let rules = if self == Route::CallPoliced { rules() } else { String::new() };
        Ok((Scene { upstreams, dialect, rules }, Some((process, port))))
    }

    /// Walks the route so many times with so many clients, and hands over the gateway at the end,
    /// which runs below another program.
    fn walk<T>(
        self,
        contestant: &Contestant,
        above: &[String],
        clients: usize,
        times: u64,
        at_end: impl FnOnce(u32) -> T,
    ) -> anyhow::Result<T> {
        if self == Route::Envelope {
            let reader = contestant::own_binary()?.with_file_name("examples").join("envelopes");
            let mut command = contestant::below(above, &reader);
            let process = Process::start(command.arg(times.to_string()))?;
            let end = at_end(process.pid());
            process.wait()?;
            return Ok(end);
        }
        let (scene, _upstream) = self.scene()?;
        if let (Route::Pipes, Contestant::Toolman(toolman)) = (self, contestant) {
            let (mut process, running) =
                contestant::start_toolman_on_pipes(toolman, &scene, above)?;
            let stdin = walk_on_pipes(&mut process, &running.door, &self.question(), times)?;
            let end = at_end(process.pid());
            drop(stdin);
            process.wait()?;
            return Ok(end);
        }
        let running = contestant.start(&scene, above)?.context("it has no such route")?;
        let report = load::run(&running.door, &self.question(), clients, Until::Asked(times))?;
        let complaint = report.complaint.unwrap_or_default();
        ensure!(
            report.answers == times,
            "wrong answers on the route `{}`: {complaint}",
            self.name()
        );
        let end = at_end(running.pid().context("the upstream itself has no process here")?);
        running.stop()?;
        Ok(end)
    }
}

/// Rules for everybody, under which the one who asks falls, and a hundred agents with policies of their own.
fn rules() -> String {
    let mut rules = "\n[security_settings]\ndangerous_tools = [\"*:drop_*\"]\nrequire_confirmation = [\"*:write_*\"]\n\
        [exposed_tools]\ns0 = [\"echo\", \"tool_*\"]\n[default_policy]\nallow_unknown_tools = false\n"
        .to_owned();
    for agent in 0..AGENTS {
        rules += &format!(
            "[agents.agent-{agent}]\nallowed_servers = [\"s*\"]\ntool_overrides.s0 = [\"e*\", \"tool_*\"]\n\
             [[agents.agent-{agent}.conditions]]\ntools = [\"s0:*\"]\naddresses = [\"127.0.0.0/8\"]\n"
        );
    }
    rules
}

/// Agents that have a policy where there are any.
const AGENTS: usize = 100;
/// Tools of the upstream of every route.
const TOOLS: usize = 100;

/// What one call takes.
pub struct Cost {
    /// In the threads that it passes through.
    pub way: Profile,
    /// In the thread that writes it into the audit trail, afterwards.
    pub trail: Profile,
}

impl Cost {
    pub fn total(&self) -> f64 {
        self.way.total() + self.trail.total()
    }
}

/// What one call takes, by the difference of two runs under callgrind.
pub fn instructions(contestant: &Contestant, route: Route) -> anyhow::Result<Cost> {
    let cost = |times: u64| profiled(contestant, route, times, &[]);
    let calls = load::number(COUNT_LONG - COUNT_SHORT);
    let (long, short) = (cost(COUNT_LONG)?, cost(COUNT_SHORT)?);
    Ok(Cost {
        way: long.way.beyond(&short.way, calls),
        trail: long.trail.beyond(&short.trail, calls),
    })
}

/// The functions that a start, a few calls and an end run, by the names that the linker knows.
pub fn functions(contestant: &Contestant, route: Route) -> anyhow::Result<BTreeSet<String>> {
    let Cost { way, trail } = profiled(contestant, route, COUNT_SHORT, &["--demangle=no"])?;
    Ok(way.functions.into_keys().chain(trail.functions.into_keys()).collect())
}

/// What a start, so many calls and an end take under callgrind.
fn profiled(
    contestant: &Contestant,
    route: Route,
    times: u64,
    options: &[&str],
) -> anyhow::Result<Cost> {
    let folder = TempDir::new()?;
    let mut above = vec![
        "valgrind".to_owned(),
        "--quiet".to_owned(),
        "--tool=callgrind".to_owned(),
        // Otherwise chance decides which thread is next, and how long locks are spun on.
        "--fair-sched=yes".to_owned(),
        "--separate-threads=yes".to_owned(),
        format!("--callgrind-out-file={}", folder.path().join(PREFIX).display()),
        // It complains of system calls that it does not know.
        format!("--log-file={}", folder.path().join("log").display()),
    ];
    above.extend(options.iter().map(|option| (*option).to_owned()));
    route.walk(contestant, &above, 1, times, |_| ())?;
    read_threads(folder.path())
}

/// How the files of callgrind begin.
const PREFIX: &str = "callgrind";

/// The profiles of all threads: callgrind writes a file for each, with its number behind the prefix.
fn read_threads(folder: &Path) -> anyhow::Result<Cost> {
    let mut cost = Cost { way: Profile::default(), trail: Profile::default() };
    let mut threads = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = |name: &str| name.strip_prefix(PREFIX).is_some_and(|n| n.starts_with('-'));
        if !entry.file_name().to_str().is_some_and(is_ours) {
            continue;
        }
        let profile = Profile::parse(&fs::read_to_string(entry.path())?)?;
        let is_trail = profile.has_crate("audit");
        if is_trail { &mut cost.trail } else { &mut cost.way }.add(profile);
        threads += 1;
    }
    ensure!(threads > 0, "callgrind wrote nothing");
    Ok(cost)
}

/// The system calls of the gateway for one call, while so many clients ask at once.
pub fn system_calls(contestant: &Contestant, route: Route, clients: usize) -> anyhow::Result<f64> {
    let made = |times: u64| -> anyhow::Result<u64> {
        let folder = TempDir::new()?;
        let trace = folder.path().join("trace");
        // As a grandchild, so that the process that we start is the gateway.
        let above = ["strace", "-D", "-f", "-ff", "-qq", "-o"].map(str::to_owned);
        let above = [&above[..], &[trace.to_string_lossy().into_owned()]].concat();
        // A file for each thread; those of the servers below the gateway do not count.
        let own = route.walk(contestant, &above, clients, times, process::threads)?;
        let mut lines = 0;
        for thread in own {
            let text = fs::read(folder.path().join(format!("trace.{thread}")))
                .with_context(|| format!("strace wrote nothing of thread {thread}"))?;
            let is_call = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"---");
            lines += text.split(|byte| *byte == b'\n').filter(is_call).count() as u64;
        }
        Ok(lines)
    };
    let calls = load::number(COUNT_LONG - COUNT_SHORT);
    Ok((load::number(made(COUNT_LONG)?) - load::number(made(COUNT_SHORT)?)) / calls)
}

/// Asks over pipes, one question after the other.
fn walk_on_pipes(
    process: &mut Process,
    door: &Door,
    question: &Question,
    times: u64,
) -> anyhow::Result<ChildStdin> {
    let (mut stdin, stdout) = process.pipes()?;
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    for message in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        writeln!(stdin, "{message}")?;
    }
    lines.read_until(b'\n', &mut line)?;
    let mut template = Template::line(door, question);
    for _ in 0..times {
        stdin.write_all(template.next())?;
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        ensure!(template.judge(200, &line) == Verdict::Right, "a wrong answer: {text}");
    }
    Ok(stdin)
}
