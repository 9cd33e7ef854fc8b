//! The library: toolsets that users have saved.
//!
//! Where they are kept is known to whoever starts the gateway; here is what is done with them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use catalog::toolset::Toolset;

/// All that is saved.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub toolsets: BTreeMap<Box<str>, Arc<Toolset>>,
    /// What the last client has equipped, for the next start.
    pub last_equipped: Option<Box<str>>,
}

impl Document {
    /// Adds a toolset that somebody has made; no other one is lost for it.
    pub fn add(&mut self, toolset: Toolset) -> Result<(), String> {
        toolset.check().map_err(|flaw| flaw.to_string())?;
        if self.toolsets.contains_key(&toolset.name) {
            let name = toolset.name;
            return Err(format!(
                "there is a toolset `{name}` already; delete it first, or use another name"
            ));
        }
        self.toolsets.insert(toolset.name.clone(), Arc::new(toolset));
        Ok(())
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
