//! The upstreams of a gateway: those there are now, and their exchange for others.
//!
//! They are exchanged whole. Whoever has begun with the former ones goes on with them: an upstream that is
//! no longer a member finishes its calls before it ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catalog::snapshot::Rules;
use foldhash::HashMap;
use mcp::names::{Namespace, UpstreamName};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use upstream::error::Error as Problem;
use upstream::inventories::Inventories;
use upstream::launch::Spawner;
use upstream::supervisor::condition::Condition;
use upstream::supervisor::{Event, Upstream};

use crate::lazy::{self, Lazy};
use crate::limits::CALL_REST_MIN;
use crate::{Gateway, Member};

/// All upstreams, in the order of the configuration.
pub(crate) struct Members {
    pub list: Vec<(Namespace, Upstream)>,
    by_name: HashMap<UpstreamName, Upstream>,
    pub lazy: Vec<Arc<Lazy>>,
    /// Whether some are folders that are still to be read.
    pub has_unread: bool,
    /// Whether some are folders that offer nothing now: still to be read, or not served at all.
    pub has_unserved: bool,
}

impl Members {
    fn new(list: Vec<(Namespace, Upstream)>, rules: &Rules) -> Members {
        let named = list.iter().map(|(_, upstream)| (upstream.name().clone(), upstream.clone()));
        Members {
            by_name: named.collect(),
            lazy: lazy::among(&list, rules),
            has_unread: list.iter().any(|(_, upstream)| upstream.is_unread()),
            has_unserved: list.iter().any(|(_, one)| one.is_unread() || one.refused().is_some()),
            list,
        }
    }

    pub fn get(&self, name: &UpstreamName) -> Option<&Upstream> {
        self.by_name.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Namespace, &Upstream)> {
        self.list.iter().map(|(namespace, upstream)| (namespace, upstream))
    }
}

/// What starts upstreams.
pub(crate) struct Starter {
    pub spawner: Arc<Spawner>,
    pub events: mpsc::Sender<Event>,
    /// Where is kept what upstreams offered, if it is.
    pub inventories: Option<Arc<Inventories>>,
}

impl Starter {
    /// Starts what is not running as it is wanted, and takes over what is.
    pub fn muster(
        &self,
        wanted: Vec<Member>,
        former: &[(Namespace, Upstream)],
    ) -> Vec<(Namespace, Upstream)> {
        let start = |Member { namespace, upstream: settings }: Member| {
            let is_same = |upstream: &Upstream| *upstream.settings() == settings;
            let running = former.iter().map(|(_, upstream)| upstream).find(|one| is_same(one));
            let upstream = running.cloned().unwrap_or_else(|| {
                let (spawner, events) = (Arc::clone(&self.spawner), self.events.clone());
                Upstream::start(settings, spawner, events, self.inventories.clone())
            });
            (namespace, upstream)
        };
        wanted.into_iter().map(start).collect()
    }
}

/// What an exchange of upstreams has done, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    pub started: Vec<UpstreamName>,
    pub retired: Vec<UpstreamName>,
}

impl Gateway {
    pub(crate) fn members(&self) -> Arc<Members> {
        self.0.members.load_full()
    }

    /// All upstreams in the order of the configuration.
    pub fn upstreams(&self) -> impl Iterator<Item = (Namespace, Upstream)> {
        self.members().list.clone().into_iter()
    }

    /// How each upstream is, in the order of the configuration.
    pub fn conditions(&self) -> Vec<(Namespace, UpstreamName, Condition)> {
        let member = |(namespace, upstream): (Namespace, Upstream)| {
            (namespace, upstream.name().clone(), upstream.condition())
        };
        self.upstreams().map(member).collect()
    }

    /// Waits for the upstream that takes the place of a provisional one, for as long as a call may take; and how much of
    /// that is left for the call.
    pub(crate) async fn successor(
        &self,
        provisional: &Upstream,
    ) -> Result<(Upstream, Duration), Problem> {
        let (name, whole) = (provisional.name(), provisional.settings().call_timeout);
        let began = Instant::now();
        let mut generation = self.0.generation.subscribe();
        loop {
            let Some(upstream) = self.upstream(name) else {
                let (upstream, reason) = (name.clone(), "is not served any more".to_owned());
                return Err(Problem::Down { upstream, reason });
            };
            if !upstream.is_provisional() {
                let left = upstream.settings().call_timeout.saturating_sub(began.elapsed());
                return Ok((upstream, left.max(CALL_REST_MIN)));
            }
            if timeout_at(began + whole, generation.changed()).await.is_err() {
                return Err(Problem::Unready { upstream: name.clone(), waited: whole });
            }
        }
    }

    /// Notes what is being made for the one that takes an upstream's place, if anything is.
    pub fn note_making(&self, name: &UpstreamName, making: Option<String>) {
        if let Some(upstream) = self.upstream(name) {
            upstream.note_making(making);
        }
    }

    /// How often upstreams were exchanged for others: what was found out about a place holds until then.
    pub fn exchanges(&self) -> u64 {
        self.0.exchanges.load(Ordering::Relaxed)
    }

    /// Serves these upstreams from now on. Those that are wanted as they run go on; the catalog is swapped once,
    /// when every new one has answered, failed or run out of its time. TF-49
    pub async fn exchange(&self, wanted: Vec<Member>) -> Exchange {
        let _one_at_a_time = self.0.exchanging.lock().await;
        let former = self.members();
        let list = self.0.starter.muster(wanted, &former.list);
        let is_among = |upstream: &Upstream, list: &[(Namespace, Upstream)]| {
            list.iter().any(|(_, other)| other.is(upstream))
        };
        let fresh: Vec<_> =
            list.iter().filter(|(_, one)| !is_among(one, &former.list)).cloned().collect();
        let unfinished = Unfinished(fresh.iter().map(|(_, upstream)| upstream.clone()).collect());
        for (_, upstream) in &fresh {
            upstream.settled().await;
        }
        let members = Arc::new(Members::new(list, &self.0.rules));
        self.0.metrics.count_for(members.iter().map(|(_, upstream)| upstream.name()));
        self.0.members.store(Arc::clone(&members));
        unfinished.disarm();
        self.0.exchanges.fetch_add(1, Ordering::Relaxed);
        self.refresh_now();
        self.review_needs();
        let mut done = Exchange::default();
        done.started.extend(fresh.iter().map(|(_, upstream)| upstream.name().clone()));
        for (_, old) in former.list.iter().filter(|(_, one)| !is_among(one, &members.list)) {
            done.retired.push(old.name().clone());
            old.retire();
        }
        done
    }
}

/// Upstreams that were started and nobody knows of yet; they are ended when nobody waits for them any more.
struct Unfinished(Vec<Upstream>);

impl Unfinished {
    fn disarm(mut self) {
        self.0.clear();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for upstream in &self.0 {
            upstream.give_up();
        }
    }
}

/// The upstreams that a gateway begins with.
pub(crate) fn first(starter: &Starter, wanted: Vec<Member>, rules: &Rules) -> Members {
    Members::new(starter.muster(wanted, &[]), rules)
}
