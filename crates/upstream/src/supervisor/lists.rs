//! The lists of a server: read, read again whenever they change, and kept while they can't be read.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use mcp::items::{Inventory, Kind};
use tokio::time::{Instant, sleep, sleep_until};

use super::Upstream;
use crate::connection::{Connection, jittered};
use crate::conversation::{Introduction, Problem, read_lists};
use crate::limits::{LIST_AGE_MIN, LIST_RETRIES_MAX, LIST_RETRY_PAUSE_MAX, LIST_RETRY_PAUSE_MIN};

/// The capabilities that lists belong to.
const CAPABILITIES: [&str; 3] = ["tools", "resources", "prompts"];

/// What a server offers, as far as it can be read.
pub(super) struct Lists {
    pub inventory: Inventory,
    /// After which time those of a capability may be other ones without notice.
    ages: BTreeMap<&'static str, Duration>,
    /// The capabilities whose lists could not be read the last time.
    failing: BTreeMap<&'static str, Failing>,
}

struct Failing {
    problem: String,
    tries: u32,
    /// When to try again, if at all.
    next: Option<Instant>,
}

impl Lists {
    /// Reads all lists for the first time; what can't be read stays as it was known before.
    pub async fn read(
        upstream: &Upstream,
        connection: &Connection,
        introduction: &mut Introduction,
    ) -> Lists {
        let known = upstream.last_inventory().map(|known| Inventory::clone(&known));
        let (inventory, ages, failing) =
            (known.unwrap_or_default(), BTreeMap::new(), BTreeMap::new());
        let mut lists = Lists { inventory, ages, failing };
        for capability in CAPABILITIES {
            if !introduction.declares(capability) {
                lists.clear(capability);
                continue;
            }
            let read = read_lists(connection, introduction, capability, &mut lists.inventory);
            match read.await {
                Err(Problem::MethodNotFound { method }) => {
                    tracing::info!(upstream = %upstream.name(), "declares {capability}, but knows no `{method}`");
                    introduction.unimplemented.push(capability);
                    lists.clear(capability);
                }
                read => lists.note(upstream, capability, read),
            }
        }
        lists
    }

    /// What can't be read, in words.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.failing.iter().map(|(capability, Failing { problem, next, .. })| {
            let kinds = Kind::ALL.into_iter().filter(|kind| kind.capability() == *capability);
            let is_kept = kinds.into_iter().any(|kind| !self.inventory.of(kind).is_empty());
            let kept = if is_kept { "; those that it gave last are kept" } else { "" };
            let again = if next.is_some() { "; it is asked again" } else { "" };
            format!("its {capability} can't be read: {problem}{kept}{again}")
        })
    }

    /// Takes note of what has become of reading the lists of a capability.
    fn note(
        &mut self,
        upstream: &Upstream,
        capability: &'static str,
        read: Result<Option<Duration>, Problem>,
    ) {
        let problem = match read {
            Ok(age) => {
                self.failing.remove(capability);
                self.ages.remove(capability);
                self.ages.extend(age.map(|age| (capability, age)));
                return;
            }
            Err(problem) => problem.to_string(),
        };
        tracing::warn!(upstream = %upstream.name(), "its {capability} can't be read: {problem}");
        let tries = self.failing.get(capability).map_or(0, |failing| failing.tries) + 1;
        let pause = LIST_RETRY_PAUSE_MIN.saturating_mul(1 << (tries - 1).min(16));
        let next = Instant::now() + pause.min(LIST_RETRY_PAUSE_MAX);
        let next = (tries <= LIST_RETRIES_MAX).then_some(next);
        self.failing.insert(capability, Failing { problem, tries, next });
    }

    fn clear(&mut self, capability: &str) {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.capability() == capability) {
            self.inventory.set(kind, []);
        }
    }

    /// Waits until lists are to be read again; the capabilities that they belong to.
    async fn due(&self, connection: &Connection) -> Vec<&'static str> {
        let grown_old = async {
            match self.ages.values().min() {
                Some(age) => sleep(jittered((*age).max(LIST_AGE_MIN))).await,
                None => std::future::pending().await,
            }
        };
        let next = self.failing.values().filter_map(|failing| failing.next).min();
        let retry = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = connection.changed_lists() => changed.into_iter().collect(),
            () = grown_old => CAPABILITIES.to_vec(),
            () = retry => {
                let is_due = |failing: &Failing| failing.next.is_some_and(|due| Some(due) <= next);
                let due = self.failing.iter().filter(|(_, failing)| is_due(failing));
                due.map(|(capability, _)| *capability).collect()
            }
        }
    }
}

impl Upstream {
    /// Reads lists again whenever they change, for ever. `flaws` is what else is wrong with the server.
    pub(super) async fn follow_lists(
        &self,
        connection: &Connection,
        introduction: &Introduction,
        mut lists: Lists,
        flaws: Vec<String>,
    ) -> Infallible {
        loop {
            let due = lists.due(connection).await;
            let failed = lists.failing.len();
            for capability in due {
                let read = read_lists(connection, introduction, capability, &mut lists.inventory);
                let read = read.await;
                lists.note(self, capability, read);
            }
            if failed + lists.failing.len() > 0 {
                let problems = flaws.iter().cloned().chain(lists.problems()).collect();
                self.0.status.send_modify(|status| status.problems = problems);
            }
            self.leave_admitted(&mut lists.inventory);
            if *self.inventory() != lists.inventory {
                self.offer(introduction, &lists.inventory);
                self.keep();
                self.tell_changed();
            }
        }
    }
}
