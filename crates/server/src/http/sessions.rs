//! The sessions of legacy clients, by their unguessable ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway::Gateway;
use gateway::auth::{Caller, unguessable};
use gateway::client::{Client, Outlet, Owner};
use gateway::outbox;
use mcp::version::Revision;
use tokio::time::Instant;

use super::streams::{STANDING, Streams};
use crate::limits::{SESSION_IDLE_MAX, SESSIONS_MAX};

pub struct Sessions {
    gateway: Gateway,
    open: Mutex<HashMap<String, Arc<Session>>>,
}

/// A client with its streams.
pub struct Session {
    pub client: Arc<Client>,
    pub outlet: Outlet,
    pub streams: Streams,
    last_used: Mutex<Instant>,
}

impl Session {
    /// Opens the session: what belongs to no request becomes events of its standing stream.
    fn open(client: Arc<Client>) -> Arc<Session> {
        let (outbox, mut queue) = outbox::channel();
        let outlet = client.outlet(outbox);
        client.attach(outlet.clone());
        let last_used = Mutex::new(Instant::now());
        let session = Arc::new(Session { client, outlet, streams: Streams::new(), last_used });
        let streams = Arc::downgrade(&session);
        tokio::spawn(async move {
            while let (Some(frame), Some(session)) = (queue.recv().await, streams.upgrade()) {
                session.streams.push(STANDING, frame);
            }
        });
        session
    }

    /// The revision that was agreed on.
    pub fn revision(&self) -> Revision {
        self.client.introduction().map_or(Revision::NEWEST_LEGACY, |known| known.revision)
    }

    fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub fn new(gateway: Gateway) -> Sessions {
        Sessions { gateway, open: Mutex::default() }
    }

    /// A client that has no session until its handshake is done.
    pub fn admit(&self, caller: Caller) -> Newcomer<'_> {
        let client = self.gateway.connect(caller, Owner::Session);
        Newcomer { sessions: self, client: Some(client) }
    }

    fn open(&self, client: Arc<Client>) -> String {
        let id = unguessable();
        let now = Instant::now();
        let mut open = self.lock();
        let mut ended: Vec<String> = Vec::new();
        for (id, session) in &*open {
            if now.duration_since(session.last_used()) > SESSION_IDLE_MAX {
                ended.push(id.clone());
            }
        }
        if open.len() - ended.len() >= SESSIONS_MAX {
            let idlest = open.iter().min_by_key(|(_, session)| session.last_used());
            ended.extend(idlest.map(|(id, _)| id.clone()));
        }
        for id in ended {
            if let Some(session) = open.remove(&id) {
                self.gateway.disconnect(&session.client);
            }
        }
        open.insert(id.clone(), Session::open(client));
        id
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = Arc::clone(self.lock().get(id)?);
        // Nobody has come since it ended; a new one would have swept it away.
        if session.last_used().elapsed() > SESSION_IDLE_MAX {
            self.close(id);
            return None;
        }
        *session.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Some(session)
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
}

impl Newcomer<'_> {
    pub fn client(&self) -> &Arc<Client> {
        self.client.as_ref().expect("it is taken only at the end")
    }

    /// Opens the client's session and gives its id.
    pub fn open(mut self) -> String {
        let client = self.client.take().expect("it is taken only here");
        self.sessions.open(client)
    }
}

impl Drop for Newcomer<'_> {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.sessions.gateway.disconnect(&client);
        }
    }
}
