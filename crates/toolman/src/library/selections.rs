//! What callers have chosen: `selections.json` of the data directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use config::library::text_at;
use gateway::auth::Identity;
use gateway::selections::{Holder, Keeper, Kept};
use mcp::items::Kind;
use serde::{Deserialize, Serialize};

use super::{Fresh, Library, lock};

/// Callers that are kept; of more, those that have changed nothing for longest are left out.
const KEPT_MAX: usize = 4_096;
/// Bytes of the file; beyond, these are left out too.
const BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug, Default, Deserialize, Serialize)]
struct Document {
    selections: Vec<Entry>,
}

/// What one caller has chosen at one place.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    surface: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<Box<str>>,
    /// In seconds since 1970.
    changed: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on: Switched,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    off: Switched,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    enabled: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equipped: Option<Box<str>>,
}

/// Names by kind, by server.
type Switched = BTreeMap<Box<str>, BTreeMap<Box<str>, Vec<Box<str>>>>;

impl Keeper for Library {
    fn read(&self) -> Result<Vec<Kept>, String> {
        let Ok(folder) = &self.folder else { return Ok(Vec::new()) };
        let document = read(folder)?;
        Ok(document.selections.into_iter().map(Entry::into_kept).collect())
    }

    fn keep(&self, changed: Vec<Kept>) -> Result<(), String> {
        let folder = self.folder()?;
        let _lock = lock(&folder.join("selections.lock"))?;
        let mut entries: Vec<Entry> = changed.into_iter().map(Entry::of).collect();
        let former = read(folder)?.selections;
        let is_other = |entry: &Entry| !entries.iter().any(|new| new.is_of_the_same(entry));
        let former: Vec<_> = former.into_iter().filter(is_other).collect();
        entries.extend(former);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.changed));
        entries.truncate(KEPT_MAX);
        let mut bytes = 0;
        let mut lines = Vec::new();
        for entry in &entries {
            let line = serde_json::to_string(entry).map_err(|error| error.to_string())?;
            bytes += line.len() + 2;
            if bytes > BYTES_MAX {
                break;
            }
            lines.push(line);
        }
        let text = format!("{{\"selections\": [\n{}\n]}}\n", lines.join(",\n"));
        Fresh::write(&folder.join("selections.json"), &text)?.put_in_place()
    }
}

fn read(folder: &Path) -> Result<Document, String> {
    let path = folder.join("selections.json");
    let text = text_at(&path).map_err(|fault| fault.to_string())?;
    let Some(text) = text else { return Ok(Document::default()) };
    serde_json::from_str(&text).map_err(|error| {
        let path = path.display();
        format!(
            "{path}: {error}; mend the file, or move it away to begin anew: it is not written to"
        )
    })
}

impl Entry {
    fn of(kept: Kept) -> Entry {
        let Kept { holder, changed, switched, enabled, equipped } = kept;
        let names = |wanted: bool| {
            let mut names = Switched::new();
            for (upstream, kind, name, on) in &switched {
                if *on == wanted {
                    let of_server = names.entry(upstream.clone()).or_default();
                    of_server.entry(word(*kind).into()).or_default().push(name.clone());
                }
            }
            names
        };
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Entry {
            agent: holder.identity.agent.clone(),
            client: holder.identity.client.clone(),
            label: holder.label.as_deref().map(str::to_owned),
            surface: holder.surface,
            namespace: holder.namespace,
            choice: holder.choice,
            changed,
            on: names(true),
            off: names(false),
            enabled,
            equipped,
        }
    }

    fn into_kept(self) -> Kept {
        let identity = Arc::new(Identity { agent: self.agent, client: self.client });
        let (surface, namespace, choice) = (self.surface, self.namespace, self.choice);
        let label = self.label.map(Into::into);
        let switched = [(self.on, true), (self.off, false)].into_iter().flat_map(|(names, on)| {
            names.into_iter().flat_map(move |(upstream, kinds)| {
                kinds.into_iter().flat_map(move |(kind, names)| {
                    let (upstream, kind) = (upstream.clone(), kind_of(&kind));
                    let of_kind = move |name| Some((upstream.clone(), kind?, name, on));
                    names.into_iter().filter_map(of_kind)
                })
            })
        });
        Kept {
            holder: Holder { identity, label, surface, namespace, choice },
            changed: SystemTime::UNIX_EPOCH + Duration::from_secs(self.changed),
            switched: switched.collect(),
            enabled: self.enabled,
            equipped: self.equipped,
        }
    }

    fn is_of_the_same(&self, other: &Entry) -> bool {
        let of = |entry: &Entry| {
            let Entry { agent, client, label, surface, namespace, choice, .. } = entry;
            (
                [agent.clone(), client.clone(), namespace.clone(), choice.clone()],
                label.clone(),
                surface.clone(),
            )
        };
        of(self) == of(other)
    }
}

fn word(kind: Kind) -> &'static str {
    kind.list_member()
}

fn kind_of(word: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.list_member() == word)
}
