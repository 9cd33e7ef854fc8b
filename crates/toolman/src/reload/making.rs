//! What is being made for folders while they are served: a task for each, and its end.
//!
//! Of one folder the newest counts. An install that the newer version of a folder wants just as well is waited for, not
//! begun again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gateway::Member;
use gateway::members::Exchange;
use mcp::names::UpstreamName;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use upstream::launch::Launch;
use upstream::python::Stage;

use super::{Reloader, log, problems_of};
use crate::dock::{Prepared, Rest, Version};

/// How long a start is waited for whose folders take their time to be read.
const READ_MAX: Duration = Duration::from_secs(10);

/// What is served of the folders now, and what is being made for them.
#[derive(Default)]
pub(super) struct Served {
    pub folders: Vec<Member>,
    making: HashMap<UpstreamName, Making>,
    /// How many were begun.
    begun: u64,
}

/// Something that is being made for a folder.
struct Making {
    number: u64,
    version: Version,
    needs: Needs,
    done: watch::Receiver<Option<Done>>,
    task: AbortHandle,
}

type Needs = (Option<String>, Option<Vec<String>>);

/// What has become of it.
#[derive(Clone, Default)]
pub(super) struct Done {
    pub is_started: bool,
    /// Whether its packages were installed just now.
    pub is_synced: bool,
    pub problems: Vec<String>,
}

impl Served {
    /// A folder as it serves now, if it does.
    pub fn running(&self, name: &UpstreamName) -> Option<&Member> {
        let member = self.folders.iter().find(|member| member.upstream.name == *name)?;
        let serves = |launch: &Launch| match launch {
            Launch::Worker(worker) => worker.stage == Stage::Whole && !worker.is_refused,
            Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => true,
        };
        serves(&member.upstream.launch).then_some(member)
    }

    /// What is being made for this very version of a folder.
    pub fn made_for(
        &self,
        name: &UpstreamName,
        version: &Version,
    ) -> Option<watch::Receiver<Option<Done>>> {
        let making = self.making.get(name).filter(|making| making.version == *version);
        making.map(|making| making.done.clone())
    }

    /// For which folders something is made, but for these.
    pub fn made_besides(&self, names: &[UpstreamName]) -> Vec<UpstreamName> {
        self.making.keys().filter(|name| !names.contains(name)).cloned().collect()
    }
}

impl Reloader {
    /// Begins to make what a folder lacks.
    pub(super) fn set_out(
        self: &Arc<Self>,
        served: &mut Served,
        name: &UpstreamName,
        version: Version,
        rest: Rest,
    ) -> watch::Receiver<Option<Done>> {
        let (name, needs) = (name.clone(), rest.needs());
        let before = match served.making.get(&name) {
            Some(making) if making.needs == needs => Some(making.done.clone()),
            Some(_) => {
                self.call_off(served, &name);
                None
            }
            None => None,
        };
        served.begun += 1;
        let number = served.begun;
        let (sender, done) = watch::channel(None);
        let unread = (!rest.is_read).then(|| Unread::new(&self.unread));
        let (reloader, named) = (Arc::clone(self), name.clone());
        let stopping = self.stopping.clone();
        let work = async move {
            if let Some(mut before) = before {
                // It ends with a word or without.
                _ = before.wait_for(Option::is_some).await;
            }
            if let Some(done) = reloader.make(&named, number, rest, unread).await {
                sender.send_replace(Some(done));
            }
        };
        let task = tokio::spawn(async move { _ = stopping.run_until_cancelled(work).await });
        let task = task.abort_handle();
        served.making.insert(name, Making { number, version, needs, done: done.clone(), task });
        done
    }

    /// Makes what a folder lacks, and puts it in place; nothing if a newer one takes its place.
    async fn make(
        &self,
        name: &UpstreamName,
        number: u64,
        rest: Rest,
        unread: Option<Unread>,
    ) -> Option<Done> {
        if let Some(unread) = unread {
            let prepared = self.site.prepare(&rest, None).await;
            let is_whole = prepared.is_whole;
            let done = self.put_in_place(name, number, prepared).await;
            drop(unread);
            if is_whole || done.is_none() {
                return done;
            }
        }
        let tell = |step: &str| {
            tracing::warn!(namespace = %name, "{step}");
            self.gateway.note_making(name, Some(step.to_owned()));
        };
        let prepared = self.site.prepare(&rest, Some(&tell)).await;
        self.put_in_place(name, number, prepared).await
    }

    /// Serves a folder as it was made; nothing if a newer one takes its place.
    async fn put_in_place(
        &self,
        name: &UpstreamName,
        number: u64,
        prepared: Prepared,
    ) -> Option<Done> {
        let mut served = self.served.lock().await;
        if served.making.get(name).is_none_or(|making| making.number != number) {
            return None;
        }
        let Prepared { member, is_new, is_whole } = prepared;
        if is_whole {
            served.making.remove(name);
            self.gateway.note_making(name, None);
        } else if served.running(name).is_some() {
            return Some(Done::default());
        }
        let problems = problems_of(&member);
        let place = served.folders.iter_mut().find(|other| other.upstream.name == *name)?;
        *place = member;
        let exchange = self.exchange(&served).await;
        drop(served);
        if is_whole {
            log(&problems);
        }
        Some(Done { is_started: exchange.started.contains(name), is_synced: is_new, problems })
    }

    /// Makes nothing any more for a folder.
    pub(super) fn call_off(&self, served: &mut Served, name: &UpstreamName) {
        if let Some(making) = served.making.remove(name) {
            making.task.abort();
            self.gateway.note_making(name, None);
        }
    }

    /// Waits until what is made for a folder is in its place, or something newer is.
    pub(super) async fn wait_for(
        &self,
        name: &UpstreamName,
        mut done: watch::Receiver<Option<Done>>,
    ) -> Done {
        loop {
            if let Ok(done) = done.wait_for(Option::is_some).await {
                return done.clone().unwrap_or_default();
            }
            match self.served.lock().await.making.get(name) {
                Some(newer) => done = newer.done.clone(),
                None => return Done::default(),
            }
        }
    }

    /// Waits until nothing is being made any more.
    pub async fn finished(&self) {
        loop {
            let next = self
                .served
                .lock()
                .await
                .making
                .iter()
                .next()
                .map(|(name, making)| (name.clone(), making.done.clone()));
            let Some((name, done)) = next else { return };
            self.wait_for(&name, done).await;
        }
    }

    /// Waits until all folders were read, so that what they offer is known, but not for ever.
    pub async fn is_read(&self) {
        let mut unread = self.unread.subscribe();
        _ = timeout(READ_MAX, unread.wait_for(|unread| *unread == 0)).await;
    }

    /// Serves the folders as they are wanted now.
    pub(super) async fn exchange(&self, served: &Served) -> Exchange {
        let wanted = self.site.in_order(&self.fixed, served.folders.clone());
        self.gateway.exchange(wanted).await
    }

    /// Makes nothing any more: all is about to end.
    pub fn stop(&self) {
        self.stopping.cancel();
    }
}

/// A folder that is not read yet; it counts as read when this goes.
struct Unread(watch::Sender<usize>);

impl Unread {
    fn new(count: &watch::Sender<usize>) -> Unread {
        count.send_modify(|unread| *unread += 1);
        Unread(count.clone())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.send_modify(|unread| *unread -= 1);
    }
}
