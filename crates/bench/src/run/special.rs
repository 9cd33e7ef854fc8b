//! Works that are no load: sessions that stay open, the start, and switching tools on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::results::{Row, Work};
use super::works::Kind;
use super::{Settings, Stage};
use crate::contestant::{self, Contestant, Running};
use crate::figures::Middle;
use crate::limits::{ACTIVATIONS, SESSIONS_OPEN};
use crate::load::request::Dialect;
use crate::load::wire::Wire;
use crate::load::{self, Door, Question, Until};
use crate::process;

/// Clients that call while the sessions of others are open.
const CALLERS: usize = 8;

pub fn all(settings: &Settings) -> anyhow::Result<Vec<Work>> {
    let mut works = Vec::new();
    if settings.wants('d') {
        works.push(sessions(settings)?);
    }
    if settings.wants('e') {
        works.push(start(settings)?);
    }
    if settings.wants('f') {
        works.push(activation(settings)?);
    }
    Ok(works)
}

fn call() -> Question {
    Question::Call { tool: "echo".to_owned(), bytes: 0 }
}

/// Many sessions, each with a stream: what they cost in memory, and the others in time.
fn sessions(settings: &Settings) -> anyhow::Result<Work> {
    let stage = Stage::set(Kind::Http, 1, 10, Dialect::Legacy)?;
    let mut rows = Vec::new();
    for contestant in &settings.contestants {
        // There are no sessions without a gateway that keeps them.
        if matches!(contestant, Contestant::Direct | Contestant::Limit) {
            continue;
        }
        let row = Row { name: contestant.name().to_owned(), ..Row::default() };
        let Ok(Some(running)) = contestant.start(&stage.scene, &[]) else { continue };
        if running.door.dialect == Dialect::Rest {
            continue;
        }
        rows.push(
            crowd(settings, &running, row.clone())
                .unwrap_or_else(|problem| Row { complaint: Some(format!("{problem:#}")), ..row }),
        );
        _ = running.stop();
    }
    let title = format!("{SESSIONS_OPEN} sessions, all but {CALLERS} with a stream; those call");
    Ok(Work { letter: 'd', title, rows })
}

fn crowd(settings: &Settings, running: &Running, mut row: Row) -> anyhow::Result<Row> {
    let pid = running.pid().context("a gateway has a process")?;
    load::run(&running.door, &call(), CALLERS, Until::Asked(800))?;
    let before = process::memory_kib(pid)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _streams = runtime.block_on(open_streams(&running.door))?;
    row.memory_kib = Some((before, process::memory_kib(pid)?));
    let mut reports = Vec::new();
    for _ in 0..settings.rounds {
        let report = load::run(&running.door, &call(), CALLERS, Until::Elapsed(settings.round))?;
        row.add(&report);
        reports.push(report);
    }
    row.per_second = Middle::of(reports.iter().map(|report| report.per_second));
    row.p50_us = Middle::of(reports.iter().map(|report| report.p50_us));
    row.p99_us = Middle::of(reports.iter().map(|report| report.p99_us));
    Ok(row)
}

async fn open_streams(door: &Door) -> anyhow::Result<Vec<Wire>> {
    let mut streams = Vec::new();
    // Those who call have sessions too; with them it is a round number.
    for _ in 0..SESSIONS_OPEN - CALLERS {
        let mut wire = Wire::connect(door.address).await?;
        let session = wire.introduce(door).await?;
        let head = wire.open_stream(&door.stream(session.as_deref())).await?;
        ensure!(head.status == 200, "a stream was refused with status {}", head.status);
        streams.push(wire);
    }
    Ok(streams)
}

/// From the start of a gateway to its first list of ten servers, which it has to start first.
fn start(settings: &Settings) -> anyhow::Result<Work> {
    let stage = Stage::set(Kind::Stdio, 10, 10, Dialect::Legacy)?;
    let list = Question::List { tools: 100 };
    let mut rows: Vec<(Row, Vec<f64>)> = Vec::new();
    for contestant in &settings.contestants {
        rows.push((Row { name: contestant.name().to_owned(), ..Row::default() }, Vec::new()));
    }
    for _ in 0..settings.rounds {
        for (contestant, (row, times)) in settings.contestants.iter().zip(&mut rows) {
            let started = Instant::now();
            match contestant.start(&stage.scene, &[]) {
                Ok(Some(running)) => {
                    let report = load::run(&running.door, &list, 1, Until::Asked(1))?;
                    if report.answers == 1 {
                        times.push(micros(started.elapsed()));
                    }
                    row.add(&report);
                    _ = running.stop();
                }
                Ok(None) => {}
                Err(problem) => {
                    row.complaint.get_or_insert(format!("{problem:#}"));
                }
            }
        }
    }
    let rows = rows.into_iter().filter(|(row, times)| row.complaint.is_some() || !times.is_empty());
    let rows = rows.map(|(row, times)| Row { p50_us: Middle::of(times), ..row }).collect();
    let title = "start to first list, 10 stdio upstreams".to_owned();
    Ok(Work { letter: 'e', title, rows })
}

/// Switching a tool on and off among very many; only Toolman has that.
fn activation(settings: &Settings) -> anyhow::Result<Work> {
    let title = "toolman_activate, 10000 tools".to_owned();
    let mut work = Work { letter: 'f', title, rows: Vec::new() };
    let stage = Stage::set(Kind::Http, 1, 10_000, Dialect::Legacy)?;
    for contestant in &settings.contestants {
        let Contestant::Toolman(binary) = contestant else { continue };
        let running = contestant::start_toolman(binary, &stage.scene, "activate", &[])?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut row = Row { name: contestant.name().to_owned(), ..Row::default() };
        let mut middles = Vec::new();
        for _ in 0..settings.rounds {
            let times = runtime.block_on(switch(&running.door, &mut row))?;
            middles.push(Middle::of(times).context("no time was taken")?);
        }
        row.p50_us = Middle::of(middles.iter().map(|middle| middle.median));
        row.per_second = Middle::of(middles.iter().map(|middle| 1_000_000.0 / middle.median));
        row.p99_us = Middle::of(middles.iter().map(|middle| middle.most));
        work.rows.push(row);
        running.stop()?;
    }
    Ok(work)
}

async fn switch(door: &Door, row: &mut Row) -> anyhow::Result<Vec<f64>> {
    let mut wire = Wire::connect(door.address).await?;
    let session = wire.introduce(door).await?;
    let mut times = Vec::new();
    for number in 0..ACTIVATIONS {
        let tool = r#""s0_tool_5000""#;
        let (on, off) = if number % 2 == 0 { (tool, "") } else { ("", tool) };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"toolman_activate","arguments":{{"tools_on":[{on}],"tools_off":[{off}],"resources_on":[],"resources_off":[]}}}}}}"#
        );
        let request = door.post(&body, session.as_deref());
        let started = Instant::now();
        let head = wire.exchange(&request).await?;
        times.push(micros(started.elapsed()));
        let is_error = memchr::memmem::find(wire.body(), b"\"isError\":true").is_some();
        let is_named = memchr::memmem::find(wire.body(), b"s0_tool_5000").is_some();
        if head.status != 200 || is_error || !is_named {
            row.wrong += 1;
            let body = &wire.body()[..wire.body().len().min(300)];
            row.complaint.get_or_insert(String::from_utf8_lossy(body).into_owned());
        }
    }
    Ok(times)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000_000.0
}
