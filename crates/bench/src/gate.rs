//! The gate of `cargo xtask test`: what a call costs may not grow unnoticed.
//!
//! Only what is the same on every run is held to a bound: counts, not times, but for the quickest of several starts of a worker. `baseline` keeps what
//! was counted last; `TOOLMAN_BLESS=1` writes it anew.

pub mod baseline;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, bail, ensure};

use crate::contestant::{self, Contestant, Scene, Upstream};
use crate::count::{self, ONE_WORKER, Route};
use crate::limits::{
    CALLS_COUNTED, CLIENTS_COUNTED, IDLE_TOOLS, POLICED_MOST, SYSTEM_CALLS_MAX, WORKER_KIB_MAX,
    WORKER_READY_MAX, WORKER_STARTS,
};
use crate::load::request::Dialect;
use crate::load::{self, Question, Until};
use crate::process;
use crate::run::python;
use baseline::{Baseline, Count};

/// Counts everything, shows it, and fails when something has grown.
pub fn run(toolman: &Path, file: &Path) -> anyhow::Result<()> {
    let found = Baseline { routes: count_routes(toolman)?, idle_kib: idle_memory(toolman)? };
    let contestant = Contestant::Toolman(toolman.to_owned());
    let mut problems = Vec::new();
    for route in [Route::Call, Route::CallModern, Route::CallStdio] {
        let made = count::system_calls(&contestant, route, CLIENTS_COUNTED)?;
        println!("{:<12} {made:>9.2} system calls", route.name());
        if made > SYSTEM_CALLS_MAX {
            problems.push(format!(
                "`{}` makes {made:.2} system calls; the most is {SYSTEM_CALLS_MAX}: see `strace -f -c`",
                route.name()
            ));
        }
    }
    let of = |route| found.routes.get(&route).map_or(0.0, |count: &Count| count.instructions);
    let (policed, plain) = (of(Route::CallPoliced), of(Route::Call));
    if policed > plain * POLICED_MOST {
        problems.push(format!(
            "a policed call takes {policed:.0} instructions, a plain one {plain:.0}"
        ));
    }
    problems.extend(check_requests(toolman)?);
    problems.extend(check_children(toolman)?);
    problems.extend(check_worker(toolman)?);
    if std::env::var_os("TOOLMAN_BLESS").is_some() {
        fs::write(file, found.text()?)
            .with_context(|| format!("can't write {}", file.display()))?;
        println!("wrote {}", file.display());
    } else {
        let text = fs::read_to_string(file).with_context(|| {
            format!("can't read {}; write it with `TOOLMAN_BLESS=1`", file.display())
        })?;
        let verdict = found.against(&Baseline::parse(&text)?);
        print!("{}", verdict.notes);
        problems.extend(verdict.problems);
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\nif it must be so, write the new counts with `TOOLMAN_BLESS=1 cargo xtask gate`",
        problems.join("\n")
    )
}

/// The instructions of every route, side by side, each on a processor of its own.
fn count_routes(toolman: &Path) -> anyhow::Result<BTreeMap<Route, Count>> {
    let routes = Mutex::new(Route::ALL.to_vec());
    let next = || routes.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let (counts, next) = (Mutex::new(BTreeMap::new()), &next);
    let outcomes: Vec<anyhow::Result<()>> = thread::scope(|scope| {
        let mut counting = Vec::new();
        for processor in processors()? {
            let counts = &counts;
            counting.push(scope.spawn(move || {
                while let Some(route) = next() {
                    let first = count_on(processor, toolman, route)?;
                    let second = count_on(processor, toolman, route)?;
                    // What disturbs a count makes it larger.
                    let is_less = second.instructions < first.instructions;
                    let count = if is_less { second } else { first };
                    let Count { instructions, trail, .. } = &count;
                    println!(
                        "{:<12} {instructions:>9.0} instructions, {trail:>6.0} for the trail",
                        route.name()
                    );
                    counts.lock().unwrap_or_else(PoisonError::into_inner).insert(route, count);
                }
                anyhow::Ok(())
            }));
        }
        let joined =
            counting.into_iter().map(|one| one.join().unwrap_or_else(|_| bail!("a panic")));
        anyhow::Ok(joined.collect())
    })?;
    outcomes.into_iter().collect::<anyhow::Result<()>>()?;
    Ok(counts.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Counts in a process of its own: with both sides on one processor, threads always take turns in
/// the same order.
fn count_on(processor: usize, toolman: &Path, route: Route) -> anyhow::Result<Count> {
    let output = Command::new("taskset")
        .args(["--cpu-list", &processor.to_string()])
        .arg(contestant::own_binary()?)
        .args(["count", "--json", "--toolman"])
        .arg(toolman)
        .arg(route.name())
        .env(ONE_WORKER.0, ONE_WORKER.1)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("can't run `taskset`; install `util-linux`")?;
    if !output.status.success() {
        bail!("counting `{}` failed; see above", route.name());
    }
    serde_json::from_slice(&output.stdout).context("what was counted can't be read")
}

/// The processors that we may use.
fn processors() -> anyhow::Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let found = list.map(|list| baseline::numbers(list.trim())).unwrap_or_default();
    ensure!(!found.is_empty(), "/proc names no processors");
    Ok(found)
}

/// The memory of a gateway with many tools and no clients.
fn idle_memory(toolman: &Path) -> anyhow::Result<u64> {
    let (_upstream, port) = contestant::start_upstream(IDLE_TOOLS)?;
    let scene = Scene {
        upstreams: vec![Upstream::Http { port }],
        dialect: Dialect::Legacy,
        rules: String::new(),
    };
    let running = contestant::start_toolman(toolman, &scene, "filter", &[])?;
    let memory = process::memory_kib(running.pid().unwrap_or_default())?;
    println!("idle         {memory:>9} KiB with {IDLE_TOOLS} tools");
    running.stop()?;
    Ok(memory)
}

/// A call is one request to the upstream, a list none.
fn check_requests(toolman: &Path) -> anyhow::Result<Vec<String>> {
    let (_upstream, port) = contestant::start_upstream(10)?;
    let scene = Scene {
        upstreams: vec![Upstream::Http { port }],
        dialect: Dialect::Legacy,
        rules: String::new(),
    };
    let running = contestant::start_toolman(toolman, &scene, "filter", &[])?;
    let call = Question::Call { tool: "echo".to_owned(), bytes: 0 };
    let mut problems = Vec::new();
    for (what, question, expected) in
        [("call", call, CALLS_COUNTED), ("list", Question::List { tools: 10 }, 0)]
    {
        let before = contestant::requests_of(port)?;
        load::run(&running.door, &question, 1, Until::Asked(CALLS_COUNTED))?;
        let made = contestant::requests_of(port)? - before;
        let each = load::number(made) / load::number(CALLS_COUNTED);
        println!("{what:<12} {each:>9.2} requests to the upstream");
        if made != expected {
            problems.push(format!(
                "{CALLS_COUNTED} times `tools/{what}` were {made} requests to the upstream, not {expected}"
            ));
        }
    }
    running.stop()?;
    Ok(problems)
}

/// A worker of Python tools is small, and soon there.
fn check_worker(toolman: &Path) -> anyhow::Result<Vec<String>> {
    let starts: Vec<_> =
        (0..WORKER_STARTS).map(|_| python::first_call(toolman)).collect::<anyhow::Result<_>>()?;
    let memory = starts.iter().map(|start| start.worker_kib).max().unwrap_or_default();
    let mut times: Vec<_> = starts.iter().map(|start| start.took).collect();
    times.sort();
    // What disturbs a start makes it longer.
    let (quickest, middle) = (times[0], times[times.len() / 2]);
    println!(
        "worker       {memory:>9} KiB; first call after {quickest:.1?} at best, {middle:.1?} as a rule"
    );
    let mut problems = Vec::new();
    if memory > WORKER_KIB_MAX {
        problems.push(format!("an idle worker has {memory} KiB; the most is {WORKER_KIB_MAX}"));
    }
    if quickest > WORKER_READY_MAX {
        problems.push(format!(
            "the first call of a Python tool takes {quickest:.1?}; the most is {WORKER_READY_MAX:?}"
        ));
    }
    Ok(problems)
}

/// However many clients call, a server is one process.
fn check_children(toolman: &Path) -> anyhow::Result<Vec<String>> {
    let upstreams = vec![contestant::stdio_upstream(10)?];
    let scene = Scene { upstreams, dialect: Dialect::Legacy, rules: String::new() };
    let running = contestant::start_toolman(toolman, &scene, "filter", &[])?;
    let call = Question::Call { tool: "echo".to_owned(), bytes: 0 };
    load::run(&running.door, &call, CLIENTS_COUNTED, Until::Asked(CALLS_COUNTED))?;
    let children =
        process::below(running.pid().unwrap_or_default(), &contestant::own_binary()?).len();
    println!("children     {children:>9} of a stdio upstream");
    running.stop()?;
    let problem = format!("{children} processes of one stdio upstream run; one is shared by all");
    Ok(if children == 1 { Vec::new() } else { vec![problem] })
}
