//! What callers have chosen, as it is kept for the next start. Nobody waits for it to be written.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::SystemTime;

use catalog::selection::Selection;
use mcp::items::Kind;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::{Holder, Holding, locked};
use crate::Gateway;
use crate::limits::{SELECTION_BYTES_MAX, SELECTIONS_GATHER, SELECTIONS_WRITE_MAX};

/// What a caller has chosen, by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub holder: Holder,
    pub changed: SystemTime,
    /// Of which upstream, what, and whether it is on.
    pub switched: Vec<(Box<str>, Kind, Box<str>, bool)>,
    /// The toolsets that are enabled.
    pub enabled: Vec<Box<str>>,
    /// The key of the toolset that is equipped, in the library.
    pub equipped: Option<Box<str>>,
}

/// A place where it is kept. Its work may take time: it is not done on the way of requests.
pub trait Keeper: Debug + Send + Sync {
    /// All that is kept; the error is for the operator.
    fn read(&self) -> Result<Vec<Kept>, String>;

    /// Puts these in the place of what is kept for the same holders.
    fn keep(&self, changed: Vec<Kept>) -> Result<(), String>;
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    changed: HashMap<Holder, Kept>,
    /// Whether a task is about to write it.
    is_looked_after: bool,
}

impl Gateway {
    /// What a caller has chosen before the start, until it is known from then on.
    pub(crate) fn recalled(&self, holding: &Holding) -> Option<Selection> {
        let keeper = self.0.keeper.as_ref().filter(|_| holding.context.is_none())?;
        if self.clients().selections.contains_key(&holding.holder) {
            return None;
        }
        let before = self.0.selections.before.get_or_init(|| {
            let all = keeper.read().unwrap_or_else(|problem| {
                tracing::warn!("what clients have chosen before can't be read: {problem}");
                Vec::new()
            });
            all.into_iter().map(|kept| (kept.holder.clone(), kept)).collect()
        });
        before.get(&holding.holder).map(|kept| self.restored(kept))
    }

    /// A selection as it is by now: what there is no more, or may not be enabled any more, is left out.
    fn restored(&self, kept: &Kept) -> Selection {
        let mut selection = Selection::default();
        for (upstream, kind, name, on) in &kept.switched {
            if let Ok(upstream) = upstream.parse() {
                selection.put(&upstream, *kind, name, *on);
            }
        }
        let exposure = &self.0.rules.exposure;
        let known = self.0.rules.toolsets.places(kept.enabled.iter().map(|name| &**name));
        let permitted = known.into_iter().filter(|place| exposure.permits(*place));
        selection.enabled.extend(permitted.take(exposure.active_max.unwrap_or(usize::MAX)));
        if let Some(key) = &kept.equipped {
            let agent = kept.holder.identity.agent.as_deref();
            let library = self.0.library.read();
            let found = library.ok().and_then(|document| document.toolsets.get(key).cloned());
            selection.equipped = found.filter(|toolset| toolset.owner.shows_to(agent));
        }
        selection
    }

    /// Has a selection written before long.
    pub(super) fn keep(&self, holder: &Holder, selection: &Selection) {
        if self.0.keeper.is_none() {
            return;
        }
        let kept = self.kept(holder, selection);
        let count = kept.switched.iter().map(|(upstream, _, name, _)| upstream.len() + name.len());
        if count.sum::<usize>() > SELECTION_BYTES_MAX {
            let agent = holder.identity.agent.as_deref();
            tracing::warn!(agent, "has chosen too much for it to be kept for the next start");
            return;
        }
        let mut waiting = locked(&self.0.selections.waiting);
        waiting.changed.insert(holder.clone(), kept);
        if !std::mem::replace(&mut waiting.is_looked_after, true) {
            let gateway = self.clone();
            tokio::spawn(async move {
                // What changes at once is written at once.
                sleep(SELECTIONS_GATHER).await;
                while gateway.write_kept().await {
                    sleep(SELECTIONS_GATHER).await;
                }
            });
        }
    }

    fn kept(&self, holder: &Holder, selection: &Selection) -> Kept {
        let toolsets = &self.0.rules.toolsets;
        let names = selection.enabled.iter().filter_map(|place| toolsets.get(*place));
        let switched = selection
            .switched()
            .map(|(upstream, kind, name, on)| (upstream.as_str().into(), kind, name.into(), on));
        Kept {
            holder: holder.clone(),
            changed: SystemTime::now(),
            switched: switched.collect(),
            enabled: names.map(|toolset| toolset.name.clone()).collect(),
            equipped: selection.equipped.as_ref().map(|toolset| toolset.key().into()),
        }
    }

    /// Writes what waits; whether there was anything.
    async fn write_kept(&self) -> bool {
        let _one_at_a_time = self.0.selections.writing.lock().await;
        let changed = {
            let mut waiting = locked(&self.0.selections.waiting);
            if waiting.changed.is_empty() {
                waiting.is_looked_after = false;
                return false;
            }
            std::mem::take(&mut waiting.changed)
        };
        let Some(keeper) = self.0.keeper.clone() else { return false };
        let written = spawn_blocking(move || keeper.keep(changed.into_values().collect())).await;
        if let Err(problem) = written.unwrap_or_else(|error| Err(error.to_string())) {
            tracing::warn!("what clients have chosen is forgotten at the end: {problem}");
        }
        true
    }

    /// Writes what still waits, at the end.
    pub(crate) async fn keep_all(&self) {
        _ = timeout(SELECTIONS_WRITE_MAX, self.write_kept()).await;
    }
}
