//! The load: clients that ask one question after the other and check every answer.
//!
//! It is lean, on one thread and without an HTTP library, so that it leaves the machine to those
//! who are measured. `request` makes the questions, `wire` carries them.

pub mod request;
pub mod wire;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::LocalSet;

use crate::figures::percentile;
use request::{Template, Verdict};
use wire::Wire;

pub use request::{Door, Question};

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so many questions of all clients together.
    Asked(u64),
    Elapsed(Duration),
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    pub answers: u64,
    /// Answers that are no answer to any question: errors, other ids, texts that were cut.
    pub wrong: u64,
    /// Answers that belong to another question.
    pub swapped: u64,
    /// Questions without an answer.
    pub lost: u64,
    pub seconds: f64,
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The first thing that went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

/// What all clients share.
struct Tally {
    left: u64,
    deadline: Option<Instant>,
    nanos: Vec<u64>,
    report: Report,
}

impl Tally {
    /// Whether one more question may be asked; it counts as asked then.
    fn takes_one(&mut self) -> bool {
        let is_time = self.deadline.is_none_or(|deadline| Instant::now() < deadline);
        let takes = self.left > 0 && is_time;
        self.left = self.left.saturating_sub(u64::from(takes));
        takes
    }

    fn complain(&mut self, complaint: String) {
        self.report.complaint.get_or_insert(complaint);
    }
}

/// Asks the question with so many clients at once, each with a connection of its own.
pub fn run(
    door: &Door,
    question: &Question,
    clients: usize,
    until: Until,
) -> anyhow::Result<Report> {
    run_at(Pace::Steady, door, question, clients, until)
}

/// The same, but every question is the first one of a new client: its handshake is timed too.
pub fn run_fresh(
    door: &Door,
    question: &Question,
    clients: usize,
    until: Until,
) -> anyhow::Result<Report> {
    run_at(Pace::Fresh, door, question, clients, until)
}

fn run_at(
    pace: Pace,
    door: &Door,
    question: &Question,
    clients: usize,
    until: Until,
) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, ask_all(door, question, clients, until, pace))
}

/// Whether a client asks on, or leaves after its first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Steady,
    Fresh,
}

/// What lies at a path.
pub fn get(address: SocketAddr, path: &str) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut wire = Wire::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let head = wire.exchange(request.as_bytes()).await?;
        ensure!(head.status == 200, "{path} was refused with status {}", head.status);
        Ok(wire.body().to_vec())
    })
}

async fn ask_all(
    door: &Door,
    question: &Question,
    clients: usize,
    until: Until,
    pace: Pace,
) -> anyhow::Result<Report> {
    let left = if let Until::Asked(requests) = until { requests } else { u64::MAX };
    let tally = Tally { left, deadline: None, nanos: Vec::new(), report: Report::default() };
    let tally = Rc::new(RefCell::new(tally));
    // Nobody is timed before everybody is there.
    let start = Rc::new(Barrier::new(clients + 1));
    let mut asking = Vec::new();
    for number in 0..clients {
        let (door, question) = (door.clone(), question.clone());
        let (tally, start) = (tally.clone(), start.clone());
        asking.push(tokio::task::spawn_local(async move {
            let met = Client::meet(&door, &question, number).await;
            start.wait().await;
            met?.ask(&tally, pace).await
        }));
    }
    start.wait().await;
    let started = Instant::now();
    if let Until::Elapsed(time) = until {
        tally.borrow_mut().deadline = Some(started + time);
    }
    for asking in asking {
        asking.await.context("a client of the load panicked")??;
    }
    let mut tally = tally.borrow_mut();
    let Tally { nanos, report, .. } = &mut *tally;
    nanos.sort_unstable();
    report.answers = nanos.len() as u64;
    report.seconds = started.elapsed().as_secs_f64();
    report.per_second = number(report.answers) / report.seconds;
    report.p50_us = number(percentile(nanos, 50)) / 1_000.0;
    report.p99_us = number(percentile(nanos, 99)) / 1_000.0;
    Ok(report.clone())
}

#[expect(clippy::cast_precision_loss, reason = "no count here comes near 2^52")]
pub fn number(count: u64) -> f64 {
    count as f64
}

/// One client, after its handshake.
struct Client<'d> {
    door: &'d Door,
    question: &'d Question,
    wire: Wire,
    template: Template,
}

impl<'d> Client<'d> {
    async fn meet(
        door: &'d Door,
        question: &'d Question,
        number: usize,
    ) -> anyhow::Result<Client<'d>> {
        let mut wire = Wire::connect(door.address).await?;
        let session = wire.introduce(door).await?;
        let template = Template::new(door, question, session.as_deref(), number);
        Ok(Client { door, question, wire, template })
    }

    async fn ask(mut self, tally: &RefCell<Tally>, pace: Pace) -> anyhow::Result<()> {
        while tally.borrow_mut().takes_one() {
            let started = Instant::now();
            if pace == Pace::Fresh {
                self = Client::meet(self.door, self.question, self.template.client()).await?;
            }
            let answer = self.wire.exchange(self.template.next()).await;
            let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let answer = match answer {
                Ok(answer) => answer,
                Err(problem) => {
                    tally.borrow_mut().report.lost += 1;
                    tally.borrow_mut().complain(format!("{problem:#}"));
                    let number = self.template.client();
                    self = Client::meet(self.door, self.question, number).await?;
                    continue;
                }
            };
            let verdict = self.template.judge(answer.status, self.wire.body());
            let mut tally = tally.borrow_mut();
            match verdict {
                Verdict::Right => tally.nanos.push(nanos),
                Verdict::Swapped => tally.report.swapped += 1,
                Verdict::Wrong => {
                    tally.report.wrong += 1;
                    let body = &self.wire.body()[..self.wire.body().len().min(300)];
                    let body = String::from_utf8_lossy(body).into_owned();
                    tally.complain(format!("status {}: {body}", answer.status));
                }
            }
        }
        Ok(())
    }
}
