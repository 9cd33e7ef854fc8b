//! Conversations of single clients: a process or a session of its own for each.
//!
//! Opened at a client's first call, closed when it leaves, has been idle for long, or must give
//! way to another. The lists come from the shared conversation all the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp::version::Era;
use tokio::sync::{OnceCell, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{SessionChoice, Upstream, life};
use crate::connection::{Connection, Loss};
use crate::conversation::{Introduction, introduce};
use crate::error::Error;
use crate::hearing;
use crate::launch::{Launch, Process};
use crate::limits::{PRIVATE_IDLE_MAX, PRIVATE_STOP_MAX};
use crate::relay::{Relay, Who};
use crate::stderr::StderrTail;

/// The conversations of one upstream that belong to one client each.
#[derive(Default)]
pub(super) struct Privates {
    open: Mutex<HashMap<Who, Arc<Private>>>,
    /// The client that keeps the shared conversation while others are given their own.
    resident: Mutex<Option<Who>>,
    /// The tasks that look after them.
    keepers: TaskTracker,
}

/// One client's conversation.
pub(super) struct Private {
    connection: OnceCell<Arc<Connection>>,
    last_used: Mutex<Instant>,
    /// Cancelled when it is to be closed.
    close: CancellationToken,
}

impl Upstream {
    /// The conversation of a client, opened if need be.
    pub(super) async fn private(&self, relay: &Relay) -> Result<Arc<Connection>, Error> {
        let client = self.keyed(relay);
        let Some(shared) = self.0.connection.load_full() else {
            return Err(self.down());
        };
        // Without sessions there is nothing to keep apart but what a client says of itself.
        let launch = &self.0.settings.launch;
        let is_remote = matches!(launch, Launch::Url(_));
        if is_remote && shared.era() == Era::Modern && launch.is_plain() {
            return Ok(shared);
        }
        let upstream = self.name();
        let most = self.privates_max();
        let private = self.0.privates.of(client, most, &self.0.stop);
        let private =
            private.ok_or_else(|| Error::Crowded { upstream: upstream.clone(), limit: most })?;
        let opened = private.connection.get_or_try_init(|| self.open(relay, &private)).await;
        if opened.is_err() {
            self.0.privates.forget(client, &private);
            // Nobody would find what another waiter opens in it.
            private.close.cancel();
        }
        opened.cloned()
    }

    /// Whose a conversation is. Where each client is to have its own, programs that share a token are one client: its
    /// process is kept for the caller and what that says. TC-36
    fn keyed(&self, relay: &Relay) -> Who {
        match self.settings().session {
            SessionChoice::PerClient => Who { program: 0, ..relay.who },
            SessionChoice::Auto | SessionChoice::Shared => relay.who,
        }
    }

    /// Closes the conversations of a client that has left.
    pub fn forget_client(&self, client: u64) {
        self.0.privates.open().retain(|who, private| {
            let stays = who.client != client;
            if !stays {
                private.close.cancel();
            }
            stays
        });
        self.0.privates.resident().take_if(|resident| resident.client == client);
    }

    /// Closes a client's conversation, unless another one has taken its place already.
    pub(super) fn forget_conversation(&self, relay: &Relay, connection: &Arc<Connection>) {
        let client = self.keyed(relay);
        let mut open = self.0.privates.open();
        let known = open.get(&client).and_then(|private| private.connection.get());
        if known.is_some_and(|known| Arc::ptr_eq(known, connection))
            && let Some(private) = open.remove(&client)
        {
            private.close.cancel();
        }
    }

    async fn open(&self, relay: &Relay, private: &Arc<Private>) -> Result<Arc<Connection>, Error> {
        let context = relay.context.as_ref().unwrap_or(&self.0.settings.context);
        let wait = self.0.settings.startup_timeout;
        let broken = |reason: String| Error::Down { upstream: self.name().clone(), reason };
        if private.close.is_cancelled() {
            return Err(broken("could not be opened for this client; try again".into()));
        }
        let equipped = Box::pin(self.equipped()).await.map_err(broken)?;
        let (connection, process, tail, introduction) = match &equipped.launch {
            Launch::Url(remote) => {
                let remote = remote.fill(context);
                let remote =
                    remote.map_err(|error| broken(format!("can't be asked: a header {error}")))?;
                let meeting =
                    timeout(wait, Box::pin(self.meet_remote(&remote, relay.abilities))).await;
                let met =
                    meeting.unwrap_or_else(|_| Err(format!("gave no own session within {wait:?}")));
                let (connection, introduction) = met.map_err(broken)?;
                (connection, None, StderrTail::new(self.0.spawner.veil()), Some(introduction))
            }
            launch @ (Launch::Command(_) | Launch::BuiltIn(_) | Launch::Worker(_)) => {
                let started = self.0.spawner.start(launch, context);
                let started =
                    started.map_err(|error| broken(format!("can't be started again: {error}")))?;
                let tail = StderrTail::new(self.0.spawner.veil());
                let (connection, stderr, process) =
                    started.connect(self.name().clone(), self.listener());
                if let Some(stderr) = stderr {
                    tokio::spawn(tail.clone().follow(self.name().clone(), stderr, None));
                }
                (connection, process, tail, None)
            }
        };
        let close = private.close.child_token();
        // A call that is given up during the handshake takes it along.
        let unfinished = close.clone().drop_guard();
        let (introduce_to_keeper, introduced) = oneshot::channel();
        let keeper = Keeper {
            upstream: self.clone(),
            client: self.keyed(relay),
            private: Arc::clone(private),
            close,
            connection: connection.clone(),
            tail,
        };
        self.0.privates.keepers.spawn(keeper.keep(process, introduced));
        let introduction = match introduction {
            Some(introduction) => introduction,
            None => introduce(&connection, self.0.settings.era, relay.abilities, wait)
                .await
                .map_err(|problem| broken(format!("can't be used: {problem}")))?,
        };
        _ = introduce_to_keeper.send(introduction);
        unfinished.disarm();
        Ok(Arc::new(connection))
    }

    /// Closes those of all clients; whoever calls again opens another.
    pub(super) fn close_conversations(&self) {
        for (_, private) in self.0.privates.open().drain() {
            private.close.cancel();
        }
    }

    /// Closes all of them for good.
    pub(super) async fn close_privates(&self) {
        self.close_conversations();
        self.0.privates.keepers.close();
        _ = timeout(PRIVATE_STOP_MAX, self.0.privates.keepers.wait()).await;
    }
}

impl Privates {
    /// A client's place; if there are too many, the idlest gives way. `None` if all are in use.
    fn of(&self, client: Who, most: usize, stop: &CancellationToken) -> Option<Arc<Private>> {
        let mut open = self.open();
        if !open.contains_key(&client) && open.len() >= most {
            let unused = open.iter().filter(|(_, private)| private.is_unused());
            let idlest = unused.min_by_key(|(_, private)| *private.last_used());
            let idlest = idlest.map(|(id, _)| *id)?;
            if let Some(private) = open.remove(&idlest) {
                private.close.cancel();
            }
        }
        let private = open.entry(client).or_insert_with(|| {
            Arc::new(Private {
                connection: OnceCell::new(),
                last_used: Mutex::new(Instant::now()),
                close: stop.child_token(),
            })
        });
        *private.last_used() = Instant::now();
        Some(Arc::clone(private))
    }

    /// All that are open now.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        self.open().values().filter_map(|private| private.connection.get().cloned()).collect()
    }

    fn forget(&self, client: Who, private: &Arc<Private>) {
        let mut open = self.open();
        if open.get(&client).is_some_and(|known| Arc::ptr_eq(known, private)) {
            open.remove(&client);
        }
    }

    pub(super) fn open(&self) -> MutexGuard<'_, HashMap<Who, Arc<Private>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn resident(&self) -> MutexGuard<'_, Option<Who>> {
        self.resident.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Private {
    fn last_used(&self) -> MutexGuard<'_, Instant> {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in_use(&self) -> bool {
        self.connection.get().is_none_or(|connection| connection.is_in_use())
    }

    /// Whether no calls are under way in it, and it is not being opened for one.
    pub(super) fn is_unused(self: &Arc<Private>) -> bool {
        match self.connection.get() {
            Some(connection) => !connection.is_in_use(),
            None => Arc::strong_count(self) == 1,
        }
    }

    /// Waits until it has not been used for long.
    async fn idle(&self) {
        loop {
            let latest = *self.last_used() + PRIVATE_IDLE_MAX;
            sleep_until(latest).await;
            if self.is_in_use() {
                *self.last_used() = Instant::now();
            } else if *self.last_used() + PRIVATE_IDLE_MAX <= Instant::now() {
                return;
            }
        }
    }
}

/// Looks after one private conversation until it is over.
struct Keeper {
    upstream: Upstream,
    client: Who,
    private: Arc<Private>,
    /// Cancelled when it is to be closed, or was never finished.
    close: CancellationToken,
    connection: Connection,
    tail: StderrTail,
}

impl Keeper {
    async fn keep(self, mut process: Option<Process>, introduced: oneshot::Receiver<Introduction>) {
        let is_remote = matches!(self.upstream.settings().launch, Launch::Url(_));
        let connection = &self.connection;
        let hearing = async {
            if let Ok(introduction) = introduced.await {
                let level = self.upstream.0.log_level.subscribe();
                Box::pin(hearing::hear_one_client(connection, &introduction, level)).await;
            }
            std::future::pending::<()>().await;
        };
        let ended = async {
            if is_remote {
                return match connection.lost().await {
                    Loss::Session => "has forgotten the session".to_owned(),
                    Loss::Gone(reason) => reason,
                };
            }
            life::ended(process.as_mut(), connection).await
        };
        let reason = tokio::select! {
            reason = ended => life::with_last_words(&reason, &self.tail),
            () = self.close.cancelled() => "is closed for this client".into(),
            () = self.private.idle() => "was not used for long".into(),
            () = hearing => return,
        };
        self.upstream.0.privates.forget(self.client, &self.private);
        if !connection.is_lost() {
            connection.say_farewell().await;
        }
        connection.close(reason);
        if let Some(process) = process {
            process.end().await;
        }
    }
}
