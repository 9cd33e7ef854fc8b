//! The last inventory of each server, kept in a folder, so that a start need not wait for the servers.
//!
//! A file belongs to the exact settings of its server. Their values go into a keyed hash, so neither the name of a file
//! nor its text says anything of them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::{hmac, rand};
use bytes::Bytes;
use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::rpc::Raw;
use mcp::text::hexadecimal;
use mcp::version::Revision;

use crate::conversation::Introduction;
use crate::launch::Launch;
use crate::limits::{INVENTORIES_MAX, INVENTORY_BYTES_MAX};
use crate::supervisor::Settings;

const KEY: &str = "key";
const KEY_BYTES: usize = 32;
const ENDING: &str = "json";
/// The version of the format; files of another one are not read.
const FORMAT: &str = "1";

/// What a server has said of itself and offered.
#[derive(Clone, Debug)]
pub struct Known {
    pub introduction: Introduction,
    pub inventory: Arc<Inventory>,
}

/// The folder.
#[derive(Debug)]
pub struct Inventories {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    /// Whether a start serves what is kept; else it is only kept for others.
    serves: bool,
    has_complained: AtomicBool,
    /// Counts the files that were written.
    written: AtomicU64,
}

impl Inventories {
    /// Uses a folder, which is made if need be.
    pub fn open(folder: PathBuf, serves: bool) -> io::Result<Inventories> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(KEY);
        let key = match read_key(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; KEY_BYTES];
                rand::fill(&mut key).map_err(|_| io::Error::other("no random bytes"))?;
                let fresh = folder.join(format!("{KEY}.{}.new", std::process::id()));
                write(&fresh, &key)?;
                // Of several processes that begin at once the first one counts.
                let linked = fs::hard_link(&fresh, &path);
                _ = fs::remove_file(&fresh);
                match linked {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => read_key(&path)?,
                }
            }
            key => key?,
        };
        let (has_complained, written) = Default::default();
        Ok(Inventories { folder, key, serves, has_complained, written })
    }

    /// The place of a server's inventory. A worker has none: its files say what it offers.
    pub(crate) fn shelf(self: Arc<Self>, settings: &Settings) -> Option<Shelf> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
        let mut hasher = Keyed(hmac::Context::with_key(&key));
        match &settings.launch {
            Launch::Command(command) => command.hash(&mut hasher),
            Launch::Url(remote) => remote.hash(&mut hasher),
            Launch::BuiltIn(_) => {}
            Launch::Worker(_) => return None,
        }
        let Settings { name, era, session, context, .. } = settings;
        (name, era, session, context).hash(&mut hasher);
        let digest = hexadecimal(hasher.0.sign().as_ref());
        let path = self.folder.join(format!("{name}.{}.{ENDING}", &digest[..32]));
        Some(Shelf { inventories: self, path, saved: Mutex::default() })
    }

    fn complain(&self, error: &io::Error) {
        if !self.has_complained.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            tracing::warn!(
                "can't keep inventories in `{folder}`, so starts wait for servers: {error}"
            );
        }
    }

    /// Removes the oldest files where there are too many.
    fn prune(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push((entry.metadata()?.modified()?, path));
            }
        }
        files.sort();
        let surplus = files.len().saturating_sub(INVENTORIES_MAX);
        files.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

/// The place of one server's inventory.
pub(crate) struct Shelf {
    inventories: Arc<Inventories>,
    path: PathBuf,
    /// What was written last; held while something is written.
    saved: Mutex<Option<Arc<Known>>>,
}

impl Shelf {
    /// What is kept, if it is to be served.
    pub fn load(&self) -> Option<Known> {
        let file = self.inventories.serves.then(|| File::open(&self.path).ok())??;
        let mut text = Vec::new();
        (&file).take(INVENTORY_BYTES_MAX as u64).read_to_end(&mut text).ok()?;
        let known = decode(&Bytes::from(text));
        if known.is_none() {
            tracing::warn!("`{}` can't be read; it is written anew", self.path.display());
        }
        // What is used is not the oldest.
        _ = file.set_modified(SystemTime::now());
        known
    }

    /// Keeps what a server has said last when nobody else writes it. A failure is told once.
    pub fn save(&self, last: impl FnOnce() -> Option<Arc<Known>>) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = last() else { return };
        if saved.as_ref().is_some_and(|saved| Arc::ptr_eq(saved, &known)) {
            return;
        }
        let text = encode(&known);
        *saved = Some(known);
        let kept = if text.len() > INVENTORY_BYTES_MAX {
            fs::remove_file(&self.path)
        } else {
            self.replace(text.as_bytes()).and_then(|()| self.inventories.prune())
        };
        match kept {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.inventories.complain(&error),
            Ok(()) => {}
        }
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let count = self.inventories.written.fetch_add(1, Ordering::Relaxed);
        let fresh = self.path.with_extension(format!("{}.{count}.new", std::process::id()));
        write(&fresh, text).and_then(|()| fs::rename(&fresh, &self.path)).inspect_err(|_| {
            _ = fs::remove_file(&fresh);
        })
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn read_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    File::open(path)?.read_exact(&mut key)?;
    Ok(key)
}

/// Hashes with a key.
struct Keyed(hmac::Context);

impl Hasher for Keyed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Nobody asks for the short form.
        0
    }
}

fn encode(Known { introduction, inventory }: &Known) -> String {
    let Introduction { revision, capabilities, instructions, server_info, runs_tasks, .. } =
        introduction;
    let optional = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
    let shown = |raw: &Raw| String::from_utf8_lossy(raw.as_bytes()).into_owned();
    let mut text = format!(
        r#"{{"format":{FORMAT},"revision":"{revision}","capabilities":{},"instructions":{},"serverInfo":{},"runsTasks":{runs_tasks}"#,
        shown(capabilities),
        optional(instructions.as_deref().map(json::quote)),
        optional(server_info.as_ref().map(shown)),
    );
    for kind in Kind::ALL {
        let items: Vec<_> = inventory.of(kind).iter().map(|item| shown(item.raw())).collect();
        text += &format!(",\n\"{}\":[{}]", kind.list_member(), items.join(",\n"));
    }
    text + "}\n"
}

fn decode(text: &Bytes) -> Option<Known> {
    let wanted = ["format", "revision", "capabilities", "instructions", "serverInfo", "runsTasks"];
    let [format, revision, capabilities, instructions, server_info, runs_tasks] =
        json::members(text, wanted).ok()?;
    // A copy each, so that one item does not keep the whole file in memory.
    let raw = |text: &str| Raw::trusted(Bytes::copy_from_slice(text.as_bytes()));
    let introduction = Introduction {
        revision: Revision::parse(&json::string(revision?)?).filter(|_| format == Some(FORMAT))?,
        capabilities: raw(capabilities?),
        instructions: instructions.and_then(json::string).map(String::from),
        server_info: server_info.filter(|info| *info != "null").map(raw),
        runs_tasks: runs_tasks == Some("true"),
        unimplemented: Vec::new(),
    };
    let mut inventory = Inventory::default();
    for kind in Kind::ALL {
        let [items] = json::members(text, [kind.list_member()]).ok()?;
        inventory.set(kind, json::elements(items?).ok()?.into_iter().map(raw));
    }
    Some(Known { introduction, inventory: Arc::new(inventory) })
}
