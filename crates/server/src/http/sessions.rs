//! The sessions of legacy clients, by their unguessable ids.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use gateway::Gateway;
use gateway::auth::{Caller, unguessable};
use gateway::client::{Client, Outlet, Owner};
use gateway::outbox;
use gateway::place::Place;
use mcp::version::Revision;
use tokio::time::{Duration, Instant};

use super::streams::Streams;
use crate::limits::SESSIONS_MAX;

pub struct Sessions {
    gateway: Gateway,
    /// A session that was not used for this long is forgotten.
    ttl: Duration,
    open: Mutex<HashMap<String, Arc<Session>>>,
}

/// A client with its streams.
pub struct Session {
    pub client: Arc<Client>,
    pub outlet: Outlet,
    pub streams: Streams,
    pub place: Place,
    last_used: Mutex<Instant>,
}

impl Session {
    /// Opens the session: what belongs to no request becomes events of a standing stream.
    fn open(client: Arc<Client>, place: Place) -> Arc<Session> {
        let (outbox, mut queue) = outbox::channel();
        let outlet = client.outlet(outbox);
        let last_used = Mutex::new(Instant::now());
        let streams = Streams::new();
        let session = Arc::new(Session { client, outlet, streams, place, last_used });
        let heard = Arc::downgrade(&session);
        let is_heard =
            move || heard.upgrade().is_some_and(|session| session.streams.is_standing_read());
        session.client.attach(session.outlet.clone().heard_while(is_heard));
        let streams = Arc::downgrade(&session);
        tokio::spawn(async move {
            while let (Some(frame), Some(session)) = (queue.recv().await, streams.upgrade()) {
                session.streams.tell(frame);
            }
        });
        session
    }

    /// Whether this caller has opened it.
    pub fn is_of(&self, caller: &Caller) -> bool {
        self.client.caller.identity == caller.identity
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Revision {
        self.client.introduction().map_or(Revision::NEWEST_LEGACY, |known| known.revision)
    }

    /// Whether a request of it is under way or somebody reads one of its streams.
    fn is_in_use(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1 || self.streams.is_read()
    }

    fn touch(&self, now: Instant) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub fn new(gateway: Gateway, ttl: Duration) -> Sessions {
        Sessions { gateway, ttl, open: Mutex::default() }
    }

    /// A client that has no session until its handshake is done.
    pub fn admit(&self, caller: Caller, place: &Place) -> Newcomer<'_> {
        let client = self.gateway.connect(caller, Owner::Session, place);
        Newcomer { sessions: self, client: Some(client), place: place.clone() }
    }

    fn open(&self, client: Arc<Client>, place: Place) -> String {
        let id = unguessable();
        self.expire();
        let mut open = self.lock();
        if open.len() >= SESSIONS_MAX {
            let idlest = open.iter().min_by_key(|(_, session)| session.last_used());
            let idlest = idlest.map(|(id, _)| id.clone());
            if let Some(session) = idlest.and_then(|id| open.remove(&id)) {
                self.gateway.disconnect(&session.client);
            }
        }
        open.insert(id.clone(), Session::open(client, place));
        id
    }

    /// Forgets the sessions that nobody has used for too long.
    pub fn expire(&self) {
        self.lock().retain(|_, session| {
            if session.is_in_use() {
                session.touch(Instant::now());
            }
            let is_kept = session.last_used().elapsed() <= self.ttl;
            if !is_kept {
                self.gateway.disconnect(&session.client);
            }
            is_kept
        });
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut open = self.lock();
        let session = open.get(id)?;
        let now = Instant::now();
        if !session.is_in_use() && now.duration_since(session.last_used()) > self.ttl {
            // It is too old, and was only not looked for yet.
            let session = open.remove(id)?;
            self.gateway.disconnect(&session.client);
            return None;
        }
        session.touch(now);
        Some(Arc::clone(session))
    }

    /// Ends a session; whether there was one.
    pub fn close(&self, id: &str) -> bool {
        let session = self.lock().remove(id);
        match session {
            Some(session) => {
                self.gateway.disconnect(&session.client);
                true
            }
            None => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client in its handshake; forgotten if it leaves before the end.
pub struct Newcomer<'a> {
    sessions: &'a Sessions,
    client: Option<Arc<Client>>,
    place: Place,
}

impl Newcomer<'_> {
    pub fn client(&self) -> &Arc<Client> {
        self.client.as_ref().expect("it is taken only at the end")
    }

    /// Opens the client's session and gives its id.
    pub fn open(mut self) -> String {
        let client = self.client.take().expect("it is taken only here");
        self.sessions.open(client, self.place.clone())
    }
}

impl Drop for Newcomer<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.sessions.gateway.disconnect(&client);
        }
    }
}
