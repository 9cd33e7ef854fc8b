//! Calls of a Python tool: in its own process, and through Toolman and its worker.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tempfile::TempDir;

use super::Settings;
use super::results::{Row, Work};
use crate::contestant::{self, Contestant, Running};
use crate::figures::Middle;
use crate::load::{self, Question, Report, Until};
use crate::process;

/// The tool, which answers as the upstreams of the other works do.
const TOOL: &str = "from fastmcp.tools import tool\n\n\n@tool\ndef echo(text: str) -> str:\n    \
    \"\"\"Give it back.\"\"\"\n    return text + \" came back\"\n";

/// The same function, called by so many threads for so many seconds.
const IN_PROCESS: &str = r#"
import json, sys, threading, time

threads, seconds = int(sys.argv[1]), float(sys.argv[2])

def echo(text):
    return text + " came back"

def call(times, end):
    now, number = time.perf_counter_ns, 0
    while now() < end:
        began = now()
        answer = echo("n%d" % number)
        times.append(now() - began)
        assert answer == "n%d came back" % number
        number += 1

began = time.perf_counter_ns()
all_times = [[] for _ in range(threads)]
callers = [threading.Thread(target=call, args=(times, began + int(seconds * 1e9))) for times in all_times]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
times = sorted(time for times in all_times for time in times)
spent = (time.perf_counter_ns() - began) / 1e9
print(json.dumps({"per_second": len(times) / spent, "p50_us": times[len(times) // 2] / 1e3,
                  "p99_us": times[len(times) * 99 // 100] / 1e3}))
"#;

#[derive(Deserialize)]
struct Figures {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
}

/// All works with Python tools; Toolman alone has them.
pub fn all(settings: &Settings) -> anyhow::Result<Vec<Work>> {
    let mut works = Vec::new();
    for clients in [1, 16, 64] {
        works.push(calls(settings, clients)?);
    }
    works.push(start(settings)?);
    Ok(works)
}

fn calls(settings: &Settings, clients: usize) -> anyhow::Result<Work> {
    let mut rows = vec![in_process(settings, clients)?];
    for contestant in &settings.contestants {
        let Contestant::Toolman(binary) = contestant else { continue };
        let folder = folder()?;
        let running = contestant::start_toolman_in(folder, binary, &[])?;
        let mut row = through(settings, &running, clients)?;
        // Of several at once, most of the time of each is waiting for the others.
        let both = rows[0].p50_us.zip(row.p50_us).filter(|_| clients == 1);
        row.more_us = both.map(|(own, ours)| ours.median - own.median);
        rows.push(row);
        running.stop()?;
    }
    let title = format!("calls of a Python tool, {clients} at once");
    Ok(Work { letter: 'g', title, rows })
}

fn in_process(settings: &Settings, threads: usize) -> anyhow::Result<Row> {
    let mut rounds = Vec::new();
    for _ in 0..settings.rounds {
        let seconds = settings.round.as_secs_f64().to_string();
        let mut python = Command::new("python3");
        let said = python.args(["-I", "-c", IN_PROCESS, &threads.to_string(), &seconds]).output();
        let said = said.context("can't run `python3`")?;
        let text = String::from_utf8_lossy(&said.stderr);
        ensure!(said.status.success(), "`python3` failed: {text}");
        rounds.push(serde_json::from_slice::<Figures>(&said.stdout)?);
    }
    let middle = |figure: fn(&Figures) -> f64| Middle::of(rounds.iter().map(figure));
    Ok(Row {
        name: "in its own process".to_owned(),
        per_second: middle(|round| round.per_second),
        p50_us: middle(|round| round.p50_us),
        p99_us: middle(|round| round.p99_us),
        ..Row::default()
    })
}

fn through(settings: &Settings, running: &Running, clients: usize) -> anyhow::Result<Row> {
    let mut row = Row { name: "toolman".to_owned(), ..Row::default() };
    let pid = running.pid().context("a gateway has a process")?;
    // The first call starts the worker.
    load::run(&running.door, &call(), clients, Until::Elapsed(settings.round / 4))?;
    let (mut reports, mut cpu_us) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let before = process::cpu_micros(pid)?;
        let report = load::run(&running.door, &call(), clients, Until::Elapsed(settings.round))?;
        let spent = load::number(process::cpu_micros(pid)? - before);
        cpu_us.push(spent / load::number(report.answers.max(1)));
        row.add(&report);
        reports.push(report);
    }
    let middle = |figure: fn(&Report) -> f64| Middle::of(reports.iter().map(figure));
    row.per_second = middle(|report| report.per_second);
    row.p50_us = middle(|report| report.p50_us);
    row.p99_us = middle(|report| report.p99_us);
    row.cpu_us = Middle::of(cpu_us);
    Ok(row)
}

/// The first call, which starts the worker, and what the worker keeps in memory afterwards.
fn start(settings: &Settings) -> anyhow::Result<Work> {
    let mut rows = Vec::new();
    for contestant in &settings.contestants {
        let Contestant::Toolman(binary) = contestant else { continue };
        let mut row = Row { name: contestant.name().to_owned(), ..Row::default() };
        let (mut times, mut memory) = (Vec::new(), Vec::new());
        for _ in 0..settings.rounds {
            let first = first_call(binary)?;
            times.push(micros(first.took));
            memory.push(load::number(first.worker_kib));
            row.add(&first.report);
        }
        row.p50_us = Middle::of(times);
        row.worker_kib = Middle::of(memory);
        rows.push(row);
    }
    let title = "first call of a Python tool: a worker is started".to_owned();
    Ok(Work { letter: 'g', title, rows })
}

/// The first call of a Python tool.
pub struct First {
    /// From asking to the answer: the worker is spawned, gets ready, and is asked.
    pub took: Duration,
    /// What the worker keeps in memory.
    pub worker_kib: u64,
    report: Report,
}

/// Starts Toolman, and makes one call of a Python tool.
pub fn first_call(toolman: &Path) -> anyhow::Result<First> {
    let running = contestant::start_toolman_in(folder()?, toolman, &[])?;
    let pid = running.pid().context("a gateway has a process")?;
    let began = Instant::now();
    let report = load::run(&running.door, &call(), 1, Until::Asked(1))?;
    let took = began.elapsed();
    let worker = worker_below(pid).context("there is no worker below Toolman")?;
    let worker_kib = process::memory_kib(worker)?;
    running.stop()?;
    Ok(First { took, worker_kib, report })
}

fn call() -> Question {
    Question::Call { tool: "echo".to_owned(), bytes: 0 }
}

fn folder() -> anyhow::Result<TempDir> {
    let folder = TempDir::new().context("can't make a temporary folder")?;
    let tools = folder.path().join("tools/s0");
    fs::create_dir_all(&tools)?;
    fs::write(tools.join("t.py"), TOOL)?;
    let settings = "surface = \"filter\"\n[audit]\nenabled = true\n[dock]\nfolder = \"tools\"\n";
    fs::write(folder.path().join("tools.toml"), settings)?;
    Ok(folder)
}

/// The worker below a gateway.
fn worker_below(pid: u32) -> Option<u32> {
    let is_worker = |words: &[&[u8]]| {
        let script = words.iter().find(|word| word.ends_with(b"/worker.py"));
        // A guard has the command line of its worker behind its own.
        script.is_some()
            && words
                .first()
                .is_some_and(|word| Path::new(&*String::from_utf8_lossy(word)).is_absolute())
    };
    process::below_that(pid, is_worker).first().copied()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}
