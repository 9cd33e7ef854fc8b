//! The library: toolsets that users have saved.
//!
//! Where they are kept is known to whoever starts the gateway; here is what is done with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use catalog::toolset::{Owner, Toolset};

use crate::limits::TOOLSETS_PER_AGENT_MAX;

/// What a new toolset has as its version, as hypertool's have.
pub const VERSION: &str = "1.0.0";

/// All that is saved.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// By their keys, so that two owners may have toolsets of one name.
    pub toolsets: BTreeMap<Box<str>, Arc<Toolset>>,
    /// The key of what the operator has clients begin with, where one can be equipped.
    pub last_equipped: Option<Box<str>>,
    /// The keys of those that stand in files of other programs: they are read, and changed nowhere but here.
    pub borrowed: BTreeSet<Box<str>>,
}

impl Document {
    /// Adds a toolset that somebody has made; no other one is lost for it.
    pub fn add(&mut self, toolset: Toolset) -> Result<(), String> {
        toolset.check().map_err(|flaw| flaw.to_string())?;
        let key = toolset.key().into_boxed_str();
        if self.toolsets.contains_key(&key) {
            let name = toolset.name;
            return Err(format!(
                "there is a toolset `{name}` already; delete it first, or use another name"
            ));
        }
        let is_owned = toolset.owner != Owner::Operator;
        let owned = self.toolsets.values().filter(|known| known.owner == toolset.owner);
        if is_owned && owned.count() >= TOOLSETS_PER_AGENT_MAX {
            return Err(format!(
                "{TOOLSETS_PER_AGENT_MAX} toolsets are saved; delete one of them first"
            ));
        }
        self.toolsets.insert(key, Arc::new(toolset));
        Ok(())
    }

    /// What a caller that has proven to be an agent, or none, means by a name: its own toolset first, else the
    /// operator's.
    pub fn find(&self, agent: Option<&str>, name: &str) -> Option<&Arc<Toolset>> {
        self.own(agent, name).or_else(|| {
            self.toolsets
                .values()
                .find(|known| known.owner == Owner::Operator && *known.name == *name)
        })
    }

    /// The toolset of this name that such a caller owns.
    pub fn own(&self, agent: Option<&str>, name: &str) -> Option<&Arc<Toolset>> {
        self.toolsets.values().find(|known| known.owner.is(agent) && *known.name == *name)
    }

    /// The toolsets that such a caller may use, by name; its own hide those of the operator.
    pub fn shown_to(&self, agent: Option<&str>) -> impl Iterator<Item = &Arc<Toolset>> {
        let shown = self.toolsets.values().filter(move |known| known.owner.shows_to(agent));
        let shown: BTreeMap<&str, _> = shown.fold(BTreeMap::new(), |mut shown, toolset| {
            if toolset.owner != Owner::Operator || !shown.contains_key(&*toolset.name) {
                shown.insert(&toolset.name, toolset);
            }
            shown
        });
        shown.into_values()
    }
}

/// A place for saved toolsets. Its work may take time: it is not done on the way of other requests.
pub trait Store: Debug + Send + Sync {
    /// What is saved; the error is for the user.
    fn read(&self) -> Result<Document, String>;

    /// Changes what is saved: all of it or, if `change` refuses or nothing can be written, nothing. Nobody
    /// else changes it meanwhile.
    fn update(
        &self,
        change: &mut dyn FnMut(&mut Document) -> Result<(), String>,
    ) -> Result<Document, String>;
}

/// What is forgotten at the end of the process.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Document>);

impl Store for InMemory {
    fn read(&self) -> Result<Document, String> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Document) -> Result<(), String>,
    ) -> Result<Document, String> {
        let mut saved = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut document = saved.clone();
        change(&mut document)?;
        *saved = document.clone();
        Ok(document)
    }
}
