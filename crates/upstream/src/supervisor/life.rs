//! One life of a server: started or met, introduced, read, followed, ended.

use std::convert::Infallible;
use std::sync::Arc;

use mcp::abilities::Abilities;
use tokio::time::{Instant, sleep, timeout};

use super::equipment::{Equipped, Relief};
use super::lists::Lists;
use super::{Event, Phase, Upstream};
use crate::connection::{Connection, Heard, Listener, Loss};
use crate::conversation::{Introduction, Problem, introduce};
use crate::hearing;
use crate::launch::{Launch, Process};
use crate::limits::{DRAIN_MAX, EXIT_CODE_MAX, HEALTHY_AFTER, REOPEN_DELAY_MAX};
use crate::meeting::{Met, Stranger};
use crate::remote::Remote;
use crate::stderr::StderrTail;

impl Upstream {
    /// From start to end. Afterwards nothing of it is offered any more.
    pub(super) async fn live_once(&self, equipped: &Equipped, may_renew: bool) -> Life {
        match &equipped.launch {
            Launch::Url(remote) => match remote.fill(&self.0.settings.context) {
                Ok(remote) => Box::pin(self.live_elsewhere(&remote, equipped, may_renew)).await,
                Err(error) => {
                    let reason = Some(format!("can't be reached: a header {error}"));
                    Life { reason, was_of_use: false, is_renewed: false, remains: None }
                }
            },
            Launch::Command(_) | Launch::BuiltIn(_) | Launch::Worker(_) => {
                Box::pin(self.live_below(equipped)).await
            }
        }
    }

    /// The life of a server that is ours to start.
    async fn live_below(&self, equipped: &Equipped) -> Life {
        let began = Instant::now();
        // Whoever calls it now waits for it.
        self.0.status.send_modify(|status| status.phase = Phase::Starting);
        let started = match self.0.spawner.start(&equipped.launch, &self.0.settings.context) {
            Ok(started) => started,
            Err(error) => {
                let reason = Some(format!("can't be started: {error}"));
                return Life { reason, was_of_use: false, is_renewed: false, remains: None };
            }
        };
        let tail = StderrTail::new(self.0.spawner.veil());
        self.0.stderr.store(Arc::new(tail.clone()));
        let (connection, stderr, mut process) =
            started.connect(self.name().clone(), self.listener());
        let (name, printed) = (self.name().clone(), self.0.printed.clone());
        let follow = |stderr| tokio::spawn(tail.clone().follow(name, stderr, printed));
        let stderr = stderr.map(follow);
        let mut is_replaced = false;
        let end = tokio::select! {
            reason = ended(process.as_mut(), &connection) => Some(reason),
            problem = self.converse(self.meet(&connection), began, equipped) => Some(problem),
            relief = self.relieved(equipped) => {
                is_replaced = relief == Relief::Replaced;
                None
            }
        };
        if end.is_some() {
            _ = timeout(DRAIN_MAX, async {
                connection.drained().await;
                if let Some(stderr) = stderr {
                    _ = stderr.await;
                }
            })
            .await;
        }
        let end_is_wanted = end.is_none();
        let reason = end.map(|end| with_last_words(&end, &tail));
        let was_of_use = connection.answered() > 0
            || began.elapsed() > HEALTHY_AFTER && self.0.connection.load().is_some();
        self.withdraw(end_is_wanted);
        if is_replaced {
            self.relieve(connection, process);
            return Life { reason, was_of_use, is_renewed: false, remains: None };
        }
        connection.close(reason.clone().unwrap_or_else(|| "is being stopped".into()));
        Life { reason, was_of_use, is_renewed: false, remains: process }
    }

    /// The time that we spend with a server that runs elsewhere.
    async fn live_elsewhere(&self, remote: &Remote, equipped: &Equipped, may_renew: bool) -> Life {
        let began = Instant::now();
        let former = self.0.connection.load_full();
        let mut is_replaced = false;
        let end = tokio::select! {
            problem = self.converse(self.meet_for_all(remote), began, equipped) => Some(problem),
            relief = self.relieved(equipped) => {
                is_replaced = relief == Relief::Replaced;
                None
            }
        };
        // What an earlier life has left says nothing of this one, which then met nobody.
        let is_left_over =
            |met: &Arc<Connection>| former.as_ref().is_some_and(|former| Arc::ptr_eq(met, former));
        let connection = self.0.connection.load_full().filter(|met| !is_left_over(met));
        let was_of_use = connection.as_ref().is_some_and(|connection| {
            connection.answered() > 0 || began.elapsed() > REOPEN_DELAY_MAX
        });
        let loss = connection.as_ref().and_then(|connection| connection.loss());
        if end.is_some() && loss == Some(Loss::Session) && (may_renew || was_of_use) {
            tracing::info!(upstream = %self.name(), "has forgotten the session; opening another");
            return Life { reason: None, was_of_use, is_renewed: true, remains: None };
        }
        self.withdraw(end.is_none());
        let last_word = end.clone().unwrap_or_else(|| "is being stopped".into());
        if let (Some(connection), true) = (&connection, is_replaced) {
            self.relieve(Connection::clone(connection), None);
        } else if let Some(connection) = connection {
            connection.say_farewell().await;
            connection.close(last_word);
        } else {
            if let Some(former) = former {
                former.close(last_word);
            }
            // What was found out does not hold, or is not worth much.
            self.0.manner.store(None);
        }
        Life { reason: end, was_of_use, is_renewed: false, remains: None }
    }

    pub(super) fn listener(&self) -> Listener {
        let (events, upstream) = (self.0.events.clone(), self.name().clone());
        let (habits, session) = (Arc::clone(&self.0.habits), self.0.settings.session);
        let hear = Box::new(move |heard| {
            let upstream = upstream.clone();
            let event = match heard {
                Heard::Upcall(upcall) => Event::Unsolicited { upstream, upcall },
                Heard::Updated(params) => Event::Updated { upstream, params },
                Heard::Asked { is_known } => {
                    return habits.note_asked(&upstream, session, is_known);
                }
                Heard::Unattributed => return habits.note_unattributed(),
            };
            _ = events.try_send(event);
        });
        Listener { hear, veil: Arc::clone(self.0.spawner.veil()) }
    }

    async fn meet(&self, connection: &Connection) -> Result<(Connection, Introduction), String> {
        let wait = self.0.settings.handshake_timeout;
        if let Launch::Worker(_) = self.0.settings.launch {
            let met = async {
                tokio::select! {
                    () = connection.greeted() => {
                        let introduction = Introduction::of_worker(&connection.offers());
                        Ok((connection.clone(), introduction))
                    }
                    loss = connection.lost() => Err(worded(loss)),
                }
            };
            let late = |_| Err(format!("was not ready within {wait:?}"));
            return timeout(wait, met).await.unwrap_or_else(late);
        }
        let era = self.0.settings.era;
        let abilities = self.0.spawner.abilities().await;
        let introduction = introduce(connection, era, abilities, wait).await;
        let introduction = introduction.map_err(|problem| match problem {
            Problem::Itself => self.leave_out(),
            problem => format!("can't be used: {problem}"),
        })?;
        Ok((connection.clone(), introduction))
    }

    /// Does without a server that is this Toolman once more.
    fn leave_out(&self) -> String {
        let reason = "is left out: it starts Toolman again with the configuration that is served \
            here; remove it from the file";
        self.set_phase(Phase::LeftOut { reason: reason.to_owned() });
        reason.to_owned()
    }

    /// Meets a server for all clients.
    async fn meet_for_all(&self, remote: &Remote) -> Result<(Connection, Introduction), String> {
        self.meet_remote(remote, self.0.spawner.abilities().await).await
    }

    pub(super) async fn meet_remote(
        &self,
        remote: &Remote,
        abilities: Abilities,
    ) -> Result<(Connection, Introduction), String> {
        let stranger = Stranger {
            upstream: self.name(),
            remote,
            era: self.0.settings.era,
            abilities,
            known: self.0.manner.load().as_deref().copied(),
            listener: &|| self.listener(),
        };
        let met = stranger.meet(self.0.settings.handshake_timeout).await;
        let Met { connection, introduction, manner } = met.map_err(|problem| match problem {
            Problem::Gone(reason) => format!("{reason}; see whether it runs at {}", remote.url),
            problem => format!("can't be used: {problem}"),
        })?;
        self.0.manner.store(Some(Arc::new(manner)));
        Ok((connection, introduction))
    }

    /// Handshake, lists, and then the lists again whenever they change. Ends with a problem.
    async fn converse(
        &self,
        meeting: impl Future<Output = Result<(Connection, Introduction), String>>,
        began: Instant,
        equipped: &Equipped,
    ) -> String {
        let late = sleep(self.0.settings.startup_timeout);
        let acquaintance = Box::pin(self.get_acquainted(meeting, equipped));
        tokio::pin!(late);
        let mut acquaintance = acquaintance;
        let acquaintance = tokio::select! {
            acquaintance = &mut acquaintance => acquaintance,
            () = &mut late => {
                self.set_phase(Phase::Late);
                acquaintance.await
            }
        };
        let Acquaintance { connection, introduction, lists, flaws } = match acquaintance {
            Ok(acquaintance) => acquaintance,
            Err(problem) => return problem,
        };
        // Before anybody can call it.
        self.note_lost(&connection, &lists.inventory);
        self.offer(&introduction, &lists.inventory);
        self.0.habits.note_introduction(&introduction);
        self.keep();
        let former = self.0.connection.swap(Some(Arc::new(connection.clone())));
        self.note_worker(&connection).await;
        let problems = flaws.iter().cloned().chain(lists.problems()).collect();
        self.0.status.send_modify(|status| {
            status.phase = Phase::Ready;
            status.introduction = Some(introduction.clone());
            status.startup = Some(began.elapsed());
            status.problems = problems;
        });
        self.tell_changed();
        if let Some(former) = former {
            former.close("has forgotten the session".into());
        }
        let hearing = async {
            let (watched, level) = (self.0.watched.subscribe(), self.0.log_level.subscribe());
            Box::pin(hearing::hear(&connection, &introduction, watched, level)).await;
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            loss = connection.lost() => worded(loss),
            never = Box::pin(self.follow_lists(&connection, &introduction, lists, flaws)) => match never {},
            never = hearing => match never {},
        }
    }

    /// The handshake and the first lists; what could not be read is told in words.
    async fn get_acquainted(
        &self,
        meeting: impl Future<Output = Result<(Connection, Introduction), String>>,
        equipped: &Equipped,
    ) -> Result<Acquaintance, String> {
        let (connection, mut introduction) = meeting.await?;
        let unfinished = connection.close_on_drop();
        let mut lists = Lists::read(self, &connection, &mut introduction).await;
        let flaws = match &equipped.launch {
            Launch::Worker(worker) => worker.all_faults(&connection.faults()),
            Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => Vec::new(),
        };
        self.leave_admitted(&mut lists.inventory);
        unfinished.disarm();
        Ok(Acquaintance { connection, introduction, lists, flaws })
    }
}

/// What is known of a server after the first talk.
struct Acquaintance {
    connection: Connection,
    introduction: Introduction,
    lists: Lists,
    /// What is wrong with it besides.
    flaws: Vec<String>,
}

/// One life of a server, when it is over.
pub(super) struct Life {
    /// Why it ended; `None` if it was told to.
    pub reason: Option<String>,
    pub was_of_use: bool,
    /// Whether the next life goes on with what this one offered.
    pub is_renewed: bool,
    /// What is still to be ended.
    pub remains: Option<Process>,
}

fn worded(loss: Loss) -> String {
    match loss {
        Loss::Session => "has forgotten the session".into(),
        Loss::Gone(reason) => reason,
    }
}

/// Waits for the end of the server: of the process, or of a built-in one's output.
pub(super) async fn ended(process: Option<&mut Process>, connection: &Connection) -> String {
    match process {
        None => {
            connection.drained().await;
            "has ended".into()
        }
        Some(process) => {
            let half = tokio::select! {
                reason = process.ended() => return reason,
                () = connection.drained() => "output",
                () = connection.unwritable() => "input",
            };
            // A server that closed its end can't be talked to, whether or not it still runs; but
            // as a rule it has ended, and its exit code says more.
            let reason = timeout(EXIT_CODE_MAX, process.ended()).await;
            reason.unwrap_or_else(|_| format!("has closed its {half}"))
        }
    }
}

pub(super) fn with_last_words(reason: &str, tail: &StderrTail) -> String {
    match tail.last_words() {
        words if words.is_empty() => reason.to_owned(),
        words => format!("{reason}; its last words on stderr:\n{words}"),
    }
}
