//! Counting instead of timing: instructions and system calls of one call, the same on every run.
//!
//! A path is walked twice, a short way and a long one; the difference has no start and no end in
//! it. One client asks one question after the other.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::callgrind::Profile;
use crate::contestant::{self, Running, Scene, Upstream};
use crate::limits::{COUNT_LONG, COUNT_SHORT};
use crate::load::request::{Dialect, Template, Verdict};
use crate::load::{self, Door, Question, Until};
use crate::process::Process;

/// A way through the gateway whose cost is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Route {
    /// `tools/list` over HTTP, of 100 tools.
    List,
    /// `tools/call` over HTTP, to an upstream over HTTP.
    Call,
    /// The same in the modern era.
    CallModern,
    /// `tools/call` over HTTP, to an upstream over pipes.
    CallStdio,
    /// `tools/call` over pipes on both sides.
    Pipes,
}

impl Route {
    pub const ALL: [Route; 5] =
        [Route::List, Route::Call, Route::CallModern, Route::CallStdio, Route::Pipes];

    pub fn name(self) -> &'static str {
        match self {
            Route::List => "list",
            Route::Call => "call",
            Route::CallModern => "call-modern",
            Route::CallStdio => "call-stdio",
            Route::Pipes => "pipes",
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
            return Ok((Scene { upstreams, dialect }, None));
        }
        let (process, port) = contestant::start_upstream(TOOLS)?;
        let upstreams = vec![Upstream::Http { port }];
        Ok((Scene { upstreams, dialect }, Some((process, port))))
    }

    /// Walks the route so many times, with the gateway below another program.
    fn walk(self, toolman: &Path, above: &[String], times: u64) -> anyhow::Result<()> {
        let (scene, _upstream) = self.scene()?;
        if self == Route::Pipes {
            let running = contestant::start_toolman_on_pipes(toolman, &scene, above)?;
            return walk_on_pipes(running, &self.question(), times);
        }
        let running = contestant::start_toolman(toolman, &scene, above)?;
        let report = load::run(&running.door, &self.question(), 1, Until::Asked(times))?;
        let complaint = report.complaint.unwrap_or_default();
        ensure!(report.answers == times, "an answer on the route `{}`: {complaint}", self.name());
        running.process.stop()
    }
}

/// Tools of the upstream of every route.
const TOOLS: usize = 100;

/// The profile of one call, by the difference of two runs under callgrind.
pub fn instructions(toolman: &Path, route: Route) -> anyhow::Result<Profile> {
    let folder = TempDir::new()?;
    let profile = |times: u64| -> anyhow::Result<Profile> {
        let file = folder.path().join(format!("callgrind.{times}"));
        let above = ["valgrind", "--quiet", "--tool=callgrind"].map(str::to_owned);
        let out = format!("--callgrind-out-file={}", file.display());
        route.walk(toolman, &[&above[..], &[out]].concat(), times)?;
        let text = fs::read_to_string(&file).context("callgrind wrote nothing")?;
        Profile::parse(&text)
    };
    let calls = load::number(COUNT_LONG - COUNT_SHORT);
    Ok(profile(COUNT_LONG)?.beyond(&profile(COUNT_SHORT)?, calls))
}

/// Asks over pipes, one question after the other.
fn walk_on_pipes(mut running: Running, question: &Question, times: u64) -> anyhow::Result<()> {
    let (mut stdin, stdout) = running.process.pipes()?;
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    for message in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        writeln!(stdin, "{message}")?;
    }
    lines.read_until(b'\n', &mut line)?;
    let door: &Door = &running.door;
    let mut template = Template::line(door, question);
    for _ in 0..times {
        stdin.write_all(template.next())?;
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        ensure!(template.judge(200, &line) == Verdict::Right, "a wrong answer: {text}");
    }
    drop(stdin);
    running.process.wait()
}
