//! The audit trail of this process: a thread that writes down what the gateway has recorded.

mod describe;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, SystemTime};

use audit::entry::{Event, Hidden};
use audit::error::Error;
use audit::writer::{Hide, Settings, Writer};
use config::audit::Audit;
use config::variables::Variables;
use gateway::Gateway;
use gateway::audit::{Batch, Find, Trail as Records};
use upstream::veil::Veil;

use crate::cli::{Cli, Misuse};
use crate::data_dir;
use crate::trail::describe::Describer;

/// How long the end of the program waits for the last records.
const FINISH_MAX: Duration = Duration::from_secs(2);
/// Characters that tell the sessions of one process from those of others.
const RUN_CHARS: usize = 6;

/// What a file says of the trail, by itself or by its policies.
pub fn audit_said(audit: Option<Audit>, audits_all: Option<bool>) -> Option<Audit> {
    audit.or_else(|| audits_all.map(|enabled| Audit { enabled, ..Audit::default() }))
}

/// How the trail is kept, unless it is not.
pub fn audit_of(audit: Option<Audit>, variables: &Variables) -> Option<Audit> {
    let audit = audit.filter(|audit| audit.enabled)?;
    let retention_days = variables.retention_days.unwrap_or(audit.retention_days);
    Some(Audit { retention_days, ..audit })
}

pub struct Trail {
    records: Arc<Records>,
    /// Closed when all is written.
    done: Receiver<()>,
}

impl Trail {
    /// Begins to record what a gateway does. Without a place for it, the gateway serves on.
    pub fn start(cli: &Cli, audit: &Audit, gateway: &Gateway, veil: &Arc<Veil>) -> Option<Trail> {
        let folder = match folder(cli, audit) {
            Ok(folder) => folder,
            Err(error) => {
                tracing::warn!("there will be no audit trail: {error}");
                return None;
            }
        };
        let records = Arc::<Records>::default();
        gateway.keep_trail(Arc::clone(&records));
        let run: String = gateway::auth::unguessable().chars().take(RUN_CHARS).collect();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let greeting = Event::Started { run: run.clone(), version };
        let hide = hidden_by(Arc::clone(veil));
        let settings = Settings { folder, retention_days: audit.retention_days, hide };
        let mut writing = Writing {
            writer: Writer::new(settings, greeting),
            describer: Describer::new(run.clone(), audit.values, gateway),
            run,
            records: Arc::clone(&records),
            lost_before: 0,
            is_failing: false,
        };
        let (finished, done) = sync_channel::<()>(0);
        std::thread::spawn(move || {
            writing.go_on();
            drop(finished);
        });
        Some(Trail { records, done })
    }

    /// Writes what waits, if that does not take too long.
    pub fn finish(self) {
        self.records.close();
        // It is never sent to: it ends with the thread.
        _ = self.done.recv_timeout(FINISH_MAX);
    }
}

/// Where the trail is kept.
pub fn folder(cli: &Cli, audit: &Audit) -> Result<PathBuf, Misuse> {
    match &audit.folder {
        Some(folder) => Ok(folder.clone()),
        None => Ok(data_dir::folder(cli)?.join("logs/audit")),
    }
}

/// Takes the values of secrets out of what is written: a client may have sent one, or an upstream before it was known.
fn hidden_by(veil: Arc<Veil>) -> Hide {
    Arc::new(move |event| match veil.over_json(event) {
        Some(Cow::Borrowed(_)) => None,
        Some(Cow::Owned(hidden)) => Some(hidden),
        // It can't be said, but that it is not said can.
        None => Some(br#"{"event":"lost","count":1}"#.to_vec()),
    })
}

fn hidden(run: &str, find: &Find) -> Hidden {
    Hidden {
        secret: find.secret.key.to_string(),
        scope: find.secret.scope.to_string(),
        upstream: find.upstream.to_string(),
        method: find.method.to_string(),
        item: find.subject.as_deref().map(str::to_owned),
        session: find.client.map(|client| format!("{run}-{client}")),
    }
}

struct Writing {
    writer: Writer,
    describer: Describer,
    run: String,
    records: Arc<Records>,
    /// What was lost up to the last line, which says so.
    lost_before: u64,
    is_failing: bool,
}

impl Writing {
    fn go_on(&mut self) {
        let mut batch = Batch::default();
        while let Some(next) = self.records.take(batch) {
            batch = next;
            self.write(&batch);
        }
        self.writer.sync();
    }

    fn write(&mut self, Batch { records, finds }: &Batch) {
        let (now, count) = (SystemTime::now(), (records.len() + finds.len()) as u64);
        let lost = self.records.lost.load(Ordering::Relaxed);
        let missing = lost - self.lost_before;
        let gap = (missing > 0).then_some((now, Event::Lost { count: missing }));
        let hidden = finds.iter().map(|find| (now, Event::Hidden(hidden(&self.run, find))));
        let calls = records.iter().map(|record| {
            let call = self.describer.describe(record);
            (record.at(now), Event::Call(Box::new(call)))
        });
        match self.writer.write(now, gap.into_iter().chain(calls).chain(hidden)) {
            Ok(()) => {
                self.records.written.fetch_add(count, Ordering::Relaxed);
                self.lost_before = lost;
                if std::mem::take(&mut self.is_failing) {
                    tracing::warn!("the audit trail is written again; {missing} calls are missing");
                }
            }
            Err(error) => {
                self.records.lost.fetch_add(count, Ordering::Relaxed);
                // Once, and not for each of them.
                if !matches!(error, Error::TooSoon)
                    && !std::mem::replace(&mut self.is_failing, true)
                {
                    tracing::warn!(
                        "the audit trail can't be written, calls are served without: {error}"
                    );
                }
            }
        }
    }
}
