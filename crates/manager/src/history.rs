//! What a file was: every version that the manager has met, and who wrote it.
//!
//! Beneath `history/NAMESPACE/FILE` of the data directory there is a text for each version, by its number, and
//! `log.jsonl`. It is never beneath `tools`, so that nothing of it is served.

use aws_lc_rs::digest::{SHA256, digest};
use mcp::text::hexadecimal;
use serde::{Deserialize, Serialize};

use crate::beneath::Root;
use crate::error::Error;
use crate::limits::{FILE_BYTES_MAX, VERSIONS_MAX};

const LOG: &str = "log.jsonl";

/// Who wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    Model,
    Person,
}

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub version: u64,
    pub time: String,
    pub by: Author,
    /// What was done: `written`, `approved`, `found`, `reverted` or `deleted`.
    pub deed: String,
    /// Of the text; empty where the file was deleted.
    pub sha256: String,
}

/// The history of one file.
pub struct History<'a> {
    data: &'a Root,
    folder: String,
}

impl<'a> History<'a> {
    pub fn of(data: &'a Root, namespace: &str, file: &str) -> History<'a> {
        History { data, folder: format!("history/{namespace}/{file}") }
    }

    /// All that is known, the oldest first. A line that can't be read is left out.
    pub fn versions(&self) -> Result<Vec<Version>, Error> {
        let log = self.data.read_text(&format!("{}/{LOG}", self.folder), FILE_BYTES_MAX)?;
        let log = log.unwrap_or_default();
        Ok(log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The text of a version; `None` if it is not kept, or there was none.
    pub fn text(&self, version: u64) -> Result<Option<String>, Error> {
        self.data.read_text(&format!("{}/{version}", self.folder), FILE_BYTES_MAX)
    }

    /// Writes down a version, unless it is the last one already; `None` stands for a file that was deleted.
    pub fn record(
        &self,
        text: Option<&str>,
        by: Author,
        deed: &str,
        time: String,
    ) -> Result<(), Error> {
        let mut versions = self.versions()?;
        let sha256 = text.map(hash).unwrap_or_default();
        let last = versions.last();
        if last.is_some_and(|last| last.sha256 == sha256) {
            return Ok(());
        }
        let version = last.map_or(1, |last| last.version + 1);
        self.data.make_folder(&self.folder)?;
        if let Some(text) = text {
            self.data.replace(&format!("{}/{version}", self.folder), text.as_bytes())?;
        }
        versions.push(Version { version, time, by, deed: deed.to_owned(), sha256 });
        let excess = versions.len().saturating_sub(VERSIONS_MAX);
        for old in versions.drain(..excess) {
            self.data.remove(&format!("{}/{}", self.folder, old.version))?;
        }
        let line = |version: &Version| {
            serde_json::to_string(version).map(|line| line + "\n").unwrap_or_default()
        };
        let log: String = versions.iter().map(line).collect();
        self.data.replace(&format!("{}/{LOG}", self.folder), log.as_bytes())
    }

    /// Who wrote this text: whoever edits a file of a model makes it their own.
    pub fn author(&self, text: &str) -> Result<Author, Error> {
        let sha256 = hash(text);
        let versions = self.versions()?;
        let known = versions.iter().rev().find(|version| version.sha256 == sha256);
        Ok(known.map_or(Author::Person, |version| version.by))
    }
}

impl Author {
    pub fn as_str(self) -> &'static str {
        match self {
            Author::Model => "model",
            Author::Person => "person",
        }
    }
}

fn hash(text: &str) -> String {
    hexadecimal(digest(&SHA256, text.as_bytes()).as_ref())
}
