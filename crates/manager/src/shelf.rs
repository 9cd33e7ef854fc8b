//! Files of namespaces: put in place, or laid aside until a person has looked at them.
//!
//! What waits lies in `pending/NAMESPACE/FILE` of the data directory, and never beneath `tools`.

#[cfg(test)]
mod tests;

use std::fs::File;

use config::dock::Approval;

use crate::beneath::Root;
use crate::error::Error;
use crate::history::{Author, History};
use crate::limits::{DELETED_MAX, FILE_BYTES_MAX};

/// The folders that files are moved between.
pub struct Shelf<'a> {
    pub data: &'a Root,
    pub tools: &'a Root,
    /// What time it is, for the history.
    pub clock: fn() -> String,
}

/// A file that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub namespace: String,
    pub file: String,
    pub text: String,
}

impl Shelf<'_> {
    /// Waits to be the only one who changes files, in this process or another.
    fn lock(&self) -> Result<File, Error> {
        self.data.lock("manager.lock")
    }

    /// The text of a file that is served, if there is one.
    pub fn served(&self, namespace: &str, file: &str) -> Result<Option<String>, Error> {
        self.tools.read_text(&format!("{namespace}/{file}"), FILE_BYTES_MAX)
    }

    /// The text of a file that waits, if there is one.
    pub fn waiting(&self, namespace: &str, file: &str) -> Result<Option<String>, Error> {
        self.data.read_text(&format!("pending/{namespace}/{file}"), FILE_BYTES_MAX)
    }

    /// All files that wait.
    pub fn all_waiting(&self) -> Result<Vec<Waiting>, Error> {
        let mut found = Vec::new();
        for namespace in self.data.names("pending")? {
            found.extend(self.all_waiting_in(&namespace)?);
        }
        Ok(found)
    }

    /// The files of a namespace that wait.
    pub fn all_waiting_in(&self, namespace: &str) -> Result<Vec<Waiting>, Error> {
        let mut found = Vec::new();
        if !self.data.has_folder(&format!("pending/{namespace}"))? {
            return Ok(found);
        }
        for file in self.data.names(&format!("pending/{namespace}"))? {
            if file.starts_with('.') {
                continue;
            }
            if let Some(text) = self.waiting(namespace, &file)? {
                found.push(Waiting { namespace: namespace.to_owned(), file, text });
            }
        }
        Ok(found)
    }

    /// Puts a former text in place again for a person; what was there is kept in the history. What waits must be decided
    /// upon first, or it would be lost, or undo this.
    pub fn revert(&self, namespace: &str, file: &str, text: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        if self.waiting(namespace, file)?.is_some() {
            return Err(Error::Waits { namespace: namespace.to_owned(), file: file.to_owned() });
        }
        self.tools.make_folder(namespace)?;
        self.put(namespace, file, text, (Author::Person, "reverted"))
    }

    /// Puts a text in place, for who holds the lock; what was there is kept in the history. What waited is no longer wanted.
    fn put(
        &self,
        namespace: &str,
        file: &str,
        text: &str,
        (by, deed): (Author, &str),
    ) -> Result<(), Error> {
        // Nobody else writes now, so these are of writers that were killed.
        self.tools.sweep(namespace, ".new-")?;
        self.data.sweep(&format!("history/{namespace}/{file}"), ".new-")?;
        let history = self.remember(namespace, file)?;
        // Killed after this, the text is known but not served.
        history.record(Some(text), by, deed, (self.clock)())?;
        self.tools.replace(&format!("{namespace}/{file}"), text.as_bytes())?;
        self.drop_waiting(namespace, file)?;
        Ok(())
    }

    /// Lays a text aside; for who holds the lock.
    fn lay_aside(&self, namespace: &str, file: &str, text: &str) -> Result<(), Error> {
        self.data.make_folder(&format!("pending/{namespace}"))?;
        self.data.replace(&format!("pending/{namespace}/{file}"), text.as_bytes())
    }

    /// The text that a change begins with: what waits, where all that is new waits, else what is served.
    pub fn newest(&self, namespace: &str, file: &str, approval: Approval) -> Result<String, Error> {
        let waiting = match approval {
            Approval::Required => self.waiting(namespace, file)?,
            Approval::Auto => None,
        };
        let text = waiting.map_or_else(|| self.served(namespace, file), |text| Ok(Some(text)))?;
        Ok(text.unwrap_or_default())
    }

    /// Changes a file for a model while nobody else can: the new text is put in place, or laid aside, as it was decided.
    /// Where `change` gives none, all stays as it is. Whether there was one.
    pub fn edit(
        &self,
        namespace: &str,
        file: &str,
        approval: Approval,
        change: impl FnOnce(&str) -> Result<Option<String>, Error>,
    ) -> Result<bool, Error> {
        let _lock = self.lock()?;
        let Some(text) = change(&self.newest(namespace, file, approval)?)? else {
            return Ok(false);
        };
        match approval {
            Approval::Auto => {
                self.put(namespace, file, &text, (Author::Model, "written"))?;
            }
            Approval::Required => self.lay_aside(namespace, file, &text)?,
        }
        Ok(true)
    }

    /// Puts a text in place that has waited, if it and what it replaces are still what was shown; whether they were.
    pub fn approve(&self, shown: &Waiting, before: Option<&str>) -> Result<bool, Error> {
        let _lock = self.lock()?;
        let Waiting { namespace, file, text } = shown;
        if self.waiting(namespace, file)?.as_ref() != Some(text)
            || self.served(namespace, file)?.as_deref() != before
        {
            return Ok(false);
        }
        self.put(namespace, file, text, (Author::Model, "approved"))?;
        Ok(true)
    }

    /// Throws a text away that has waited, if it is still the one that was shown; whether it was.
    pub fn reject(&self, shown: &Waiting) -> Result<bool, Error> {
        let _lock = self.lock()?;
        let is_same = self.waiting(&shown.namespace, &shown.file)?.as_ref() == Some(&shown.text);
        if is_same {
            self.drop_waiting(&shown.namespace, &shown.file)?;
        }
        Ok(is_same)
    }

    /// Removes a file, and what waited to take its place; whether there was any. Its text is kept in the history.
    pub fn remove(&self, namespace: &str, file: &str, by: Author) -> Result<bool, Error> {
        let _lock = self.lock()?;
        let history = self.remember(namespace, file)?;
        let was_waiting = self.drop_waiting(namespace, file)?;
        let was_served = self.tools.remove(&format!("{namespace}/{file}"))?;
        if was_served {
            history.record(None, by, "deleted", (self.clock)())?;
        }
        Ok(was_waiting || was_served)
    }

    /// Takes a namespace out of service at once, whole, and keeps it: in `deleted` of the data directory or, if that is on
    /// another disk, in `.deleted` beside the namespaces.
    pub fn put_away(&self, namespace: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        let files = self.tools.names(namespace)?;
        for file in &files {
            // A link or a pipe was never ours to read.
            if matches!(self.served(namespace, file), Ok(Some(_))) {
                self.remember(namespace, file)?;
            }
        }
        if !self.keep(namespace, self.data, "deleted")?
            && !self.keep(namespace, self.tools, ".deleted")?
        {
            let problem = "is a disk of its own, and can't be kept elsewhere; remove it by hand";
            return Err(Error::Path { path: namespace.to_owned(), problem });
        }
        for file in &files {
            let history = History::of(self.data, namespace, file);
            if !history.versions()?.is_empty() {
                history.record(None, Author::Model, "deleted", (self.clock)())?;
            }
        }
        Ok(())
    }

    /// Moves a namespace into a folder of those that were deleted, of which the oldest go; whether it is on the same disk.
    fn keep(&self, namespace: &str, root: &Root, folder: &str) -> Result<bool, Error> {
        let time: String = (self.clock)().chars().filter(char::is_ascii_alphanumeric).collect();
        root.make_folder(folder)?;
        let mut all = root.names(folder)?;
        let mut kept = format!("{time}-{namespace}");
        while all.contains(&kept) {
            kept.push('+');
        }
        if !self.tools.hand_over(namespace, root, &format!("{folder}/{kept}"))? {
            return Ok(false);
        }
        all.retain(|name| !name.starts_with('.'));
        let surplus = (all.len() + 1).saturating_sub(DELETED_MAX);
        for name in all.iter().take(surplus) {
            root.remove_folder(&format!("{folder}/{name}"))?;
        }
        Ok(true)
    }

    /// Sees to it that what is served is in the history.
    fn remember(&self, namespace: &str, file: &str) -> Result<History<'_>, Error> {
        let history = History::of(self.data, namespace, file);
        if let Some(text) = self.served(namespace, file)? {
            let by = history.author(&text)?;
            history.record(Some(&text), by, "found", (self.clock)())?;
        }
        Ok(history)
    }

    fn drop_waiting(&self, namespace: &str, file: &str) -> Result<bool, Error> {
        if !self.data.has_folder(&format!("pending/{namespace}"))? {
            return Ok(false);
        }
        self.data.remove(&format!("pending/{namespace}/{file}"))
    }
}
