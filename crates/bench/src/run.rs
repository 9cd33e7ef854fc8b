//! The benchmark: the same work for all contestants in the same run, in rounds that take turns.
//!
//! `works` says what is asked, `special` measures what is no load, `python` calls Python tools, `still` counts;
//! `results` are shown by `table` and `plot`.

pub mod plot;
pub mod python;
pub mod results;
pub mod special;
pub mod still;
pub mod table;
pub mod works;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::contestant::{self, Contestant, Running, Scene, Upstream};
use crate::figures::Middle;
use crate::limits::SLOW_ROUND;
use crate::load::request::Dialect;
use crate::load::{self, Question, Report, Until};
use crate::process::{self, Process};
use results::{Results, Row, Work};
use works::{Kind, Plan};

/// How a run is to be made.
pub struct Settings {
    pub contestants: Vec<Contestant>,
    pub rounds: usize,
    pub round: Duration,
    /// The letters of the works to do; all if there are none.
    pub only: Vec<char>,
    pub out: PathBuf,
}

impl Settings {
    pub fn wants(&self, letter: char) -> bool {
        self.only.is_empty() || self.only.contains(&letter)
    }
}

/// Does all works, prints the table and writes JSON, table and plot.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    fs::create_dir_all(&settings.out)?;
    let mut results = Results {
        machine: machine(),
        rounds: settings.rounds,
        seconds: settings.round.as_secs_f64(),
        ..Results::default()
    };
    let wanted = works::all().into_iter().filter(|plan| settings.wants(plan.letter));
    for plan in wanted {
        let work = measure(settings, &plan).with_context(|| format!("work `{}`", plan.title))?;
        print!("{}", table::work(&work));
        results.works.push(work);
        // What was measured is not lost when a later work fails.
        save(settings, &results)?;
    }
    for work in special::all(settings)? {
        print!("{}", table::work(&work));
        results.works.push(work);
        save(settings, &results)?;
    }
    if settings.wants('g') {
        for work in python::all(settings)? {
            print!("{}", table::work(&work));
            results.works.push(work);
            save(settings, &results)?;
        }
    }
    if settings.wants('s') {
        results.still = still::count(settings)?;
        print!("{}", table::still(&results.still));
    }
    save(settings, &results)?;
    println!("\nsaved in {}: results.json, results.md, results.svg", settings.out.display());
    Ok(())
}

fn save(settings: &Settings, results: &Results) -> anyhow::Result<()> {
    let write = |name: &str, text: String| {
        let file = settings.out.join(name);
        fs::write(&file, text).with_context(|| format!("can't write {}", file.display()))
    };
    write("results.json", serde_json::to_string_pretty(results)? + "\n")?;
    write("results.md", table::all(results))?;
    write("results.svg", plot::draw(results))
}

/// The machine, in a line.
fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    format!("{count} x {}", model.unwrap_or("a processor"))
}

/// What lies behind the contestants, alive as long as this value.
pub struct Stage {
    pub scene: Scene,
    processes: Vec<Process>,
}

impl Stage {
    pub fn set(
        kind: Kind,
        upstreams: usize,
        tools: usize,
        dialect: Dialect,
    ) -> anyhow::Result<Stage> {
        let mut processes = Vec::new();
        let mut reached = Vec::new();
        for _ in 0..upstreams {
            if kind == Kind::Stdio {
                reached.push(contestant::stdio_upstream(tools)?);
                continue;
            }
            let (process, port) = contestant::start_upstream(tools)?;
            processes.push(process);
            reached.push(Upstream::Http { port });
        }
        Ok(Stage { scene: Scene { upstreams: reached, dialect, rules: String::new() }, processes })
    }

    /// Requests that all upstreams over HTTP have had.
    fn requests(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for upstream in &self.scene.upstreams {
            if let Upstream::Http { port } = upstream {
                sum += contestant::requests_of(*port)?;
            }
        }
        Ok(sum)
    }

    fn counts(&self) -> bool {
        !self.processes.is_empty()
    }
}

/// One contestant during a work.
struct Turn {
    running: Running,
    /// Whether one round is all that there is time for.
    is_slow: bool,
    row: Row,
    reports: Vec<Report>,
    cpu_us: Vec<f64>,
}

/// One work, done by all who can.
fn measure(settings: &Settings, plan: &Plan) -> anyhow::Result<Work> {
    let stage = Stage::set(plan.kind, plan.upstreams, plan.tools, plan.dialect)?;
    let is_list = matches!(plan.question, Question::List { .. });
    let mut rows = Vec::new();
    let mut turns = Vec::new();
    for contestant in &settings.contestants {
        let row = Row { name: contestant.name().to_owned(), ..Row::default() };
        match contestant.start(&stage.scene, &[]) {
            // Over plain HTTP there is no list of tools to ask for.
            Ok(Some(running)) if is_list && running.door.dialect == Dialect::Rest => {}
            Ok(Some(running)) => {
                turns.push(Turn {
                    running,
                    is_slow: false,
                    row,
                    reports: Vec::new(),
                    cpu_us: Vec::new(),
                });
            }
            Ok(None) => {}
            Err(problem) => rows.push(Row { complaint: Some(format!("{problem:#}")), ..row }),
        }
    }
    // The first round warms up, and is forgotten.
    for round in 0..=settings.rounds {
        for turn in turns.iter_mut().filter(|turn| round < 2 || !turn.is_slow) {
            let started = Instant::now();
            turn.take(&stage, plan, settings.round, round > 0);
            turn.is_slow |= started.elapsed() > SLOW_ROUND;
        }
    }
    rows.splice(0..0, turns.into_iter().map(Turn::end));
    Ok(Work { letter: plan.letter, title: plan.title.clone(), rows })
}

impl Turn {
    fn take(&mut self, stage: &Stage, plan: &Plan, time: Duration, counts: bool) {
        let time = if counts { time } else { time / 4 };
        let cpu = |turn: &Turn| turn.running.pid().and_then(|pid| process::cpu_micros(pid).ok());
        let (cpu_before, requests_before) = (cpu(self), stage.requests().unwrap_or_default());
        let (door, question) = (&self.running.door, &plan.question);
        let asked = if plan.is_fresh {
            load::run_fresh(door, question, plan.clients, Until::Elapsed(time))
        } else {
            load::run(door, question, plan.clients, Until::Elapsed(time))
        };
        let report = match asked {
            Ok(report) => report,
            Err(problem) => {
                self.row.lost += 1;
                self.row.complaint.get_or_insert(format!("{problem:#}"));
                return;
            }
        };
        if !counts {
            return;
        }
        let answers = load::number(report.answers.max(1));
        if let (Some(before), Some(after)) = (cpu_before, cpu(self)) {
            self.cpu_us.push(load::number(after - before) / answers);
        }
        if stage.counts() {
            let made = stage.requests().unwrap_or_default().saturating_sub(requests_before);
            self.row.upstream_requests = Some(load::number(made) / answers);
        }
        self.row.add(&report);
        self.reports.push(report);
        if let (Some(pid), false) = (self.running.pid(), stage.counts())
            && let Ok(program) = contestant::own_binary()
        {
            let children = process::below(pid, &program).len() as u64;
            let each = load::number(children) / load::number(stage.scene.upstreams.len() as u64);
            self.row.children = Some(each);
        }
    }

    fn end(self) -> Row {
        let middle = |figure: fn(&Report) -> f64| {
            // A round without an answer has no times.
            Middle::of(self.reports.iter().filter(|report| report.answers > 0).map(figure))
        };
        let row = Row {
            per_second: middle(|report| report.per_second),
            p50_us: middle(|report| report.p50_us),
            p99_us: middle(|report| report.p99_us),
            cpu_us: Middle::of(self.cpu_us),
            ..self.row
        };
        // It was asked to end; how it does is no part of the measurement.
        _ = self.running.stop();
        row
    }
}

impl Row {
    /// Adds what went wrong in a round.
    pub fn add(&mut self, report: &Report) {
        self.wrong += report.wrong;
        self.swapped += report.swapped;
        self.lost += report.lost;
        if let Some(complaint) = &report.complaint {
            self.complaint.get_or_insert_with(|| complaint.clone());
        }
    }
}
