//! The sessions of legacy clients, by their unguessable ids.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway::Gateway;
use gateway::auth::{Caller, unguessable};
use gateway::client::{Client, Owner};
use tokio::time::Instant;

use crate::limits::{SESSION_IDLE_MAX, SESSIONS_MAX};

pub struct Sessions {
    gateway: Gateway,
    open: Mutex<HashMap<String, Session>>,
}

struct Session {
    client: Arc<Client>,
    last_used: Instant,
}

impl Sessions {
    pub fn new(gateway: Gateway) -> Sessions {
        Sessions { gateway, open: Mutex::default() }
    }

    /// A client that has no id until its handshake is done.
    pub fn connect(&self, caller: Caller) -> Arc<Client> {
        self.gateway.connect(caller, Owner::Session)
    }

    /// Opens the session of a client that has introduced itself.
    pub fn open(&self, client: Arc<Client>) -> String {
        let id = unguessable();
        let now = Instant::now();
        let mut open = self.lock();
        let mut ended: Vec<String> = Vec::new();
        for (id, session) in &*open {
            if now.duration_since(session.last_used) > SESSION_IDLE_MAX {
                ended.push(id.clone());
            }
        }
        if open.len() - ended.len() >= SESSIONS_MAX {
            let idlest = open.iter().min_by_key(|(_, session)| session.last_used);
            ended.extend(idlest.map(|(id, _)| id.clone()));
        }
        for id in ended {
            if let Some(session) = open.remove(&id) {
                self.gateway.disconnect(&session.client);
            }
        }
        open.insert(id.clone(), Session { client, last_used: now });
        id
    }

    pub fn find(&self, id: &str) -> Option<Arc<Client>> {
        let mut open = self.lock();
        let session = open.get_mut(id)?;
        session.last_used = Instant::now();
        Some(Arc::clone(&session.client))
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
