//! The stock: what a server keeps in files, where its memory is not counted: in its scratch folder, and in `/dev/shm`.
//!
//! Nobody owns a file there more than another worker of the same user does. So files of `/dev/shm` are laid to the charge
//! of those who have had them open, for as long as they are there.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, openat2, statvfs, unlinkat};
use rustix::process::{Pid, Resource, Rlimit, geteuid, prlimit};

use super::census::Bounds;
use crate::limits::{CENSUS_EVERY, STOCK_FILE_BYTES_MIN, STOCK_PART, STOCK_SHARE};

/// Where files are memory.
const SHARED: &str = "/dev/shm";

/// What one server keeps.
pub struct Stock {
    scratch: PathBuf,
    bounds: Bounds,
    began: SystemTime,
    /// When it was looked at last, and how long that took.
    looked: Instant,
    took: Duration,
    /// What was taken of both file systems then, by whomever.
    taken: [u64; 2],
    /// How much may be in the scratch folder.
    allowed_bytes: u64,
    /// The files in `/dev/shm` that its processes have had open.
    shared: HashSet<u64>,
}

/// A file of the scratch folder that has changed since the server was started.
struct Changed {
    path: PathBuf,
    bytes: u64,
    is_folder: bool,
    /// Those that were there before come last.
    is_older: bool,
    at: SystemTime,
}

impl Stock {
    /// Of a server that is about to be started.
    pub fn new(scratch: PathBuf, bounds: Bounds) -> Stock {
        Stock {
            scratch,
            bounds,
            began: SystemTime::now(),
            looked: Instant::now(),
            took: Duration::ZERO,
            taken: [0; 2],
            allowed_bytes: bounds.disk_bytes_max,
            shared: HashSet::new(),
        }
    }

    /// Looks for the first time. If there is too much already, nothing is taken away: nobody writes before there is room.
    /// What to say of that.
    pub fn open(&mut self, server: Pid) -> Option<String> {
        let older = self.scratch_bytes(|file| changed(file) < self.began).unwrap_or(u64::MAX);
        self.taken = self.taken_now();
        if older <= self.bounds.disk_bytes_max {
            return None;
        }
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        _ = prlimit(Some(server), Resource::Fsize, none);
        // Names take some room, too.
        self.allowed_bytes = older.saturating_add(self.bounds.disk_bytes_max / STOCK_PART);
        let (scratch, most) = (self.scratch.display(), mib(self.bounds.disk_bytes_max));
        Some(format!(
            "`{scratch}` holds more than the {most} MiB that `disk_mb` allows, so nothing can be written; remove some of it, or raise `disk_mb`"
        ))
    }

    /// Whether it is time to look again: looking must not take more than a small part of all time, so it
    /// depends on how long it took, and on how much was taken since.
    pub fn is_due(&self) -> bool {
        let since = self.looked.elapsed();
        if since >= CENSUS_EVERY.max(self.took * STOCK_SHARE) {
            return true;
        }
        let mosts = [self.bounds.disk_bytes_max, self.bounds.memory_bytes_max];
        let mut grown = self.taken_now().into_iter().zip(self.taken).zip(mosts);
        since >= self.took * 2
            && grown.any(|((now, before), most)| now.saturating_sub(before) > most / STOCK_PART)
    }

    /// What is too much, if anything.
    pub fn exceeded_by(&mut self, family: &[Pid]) -> Option<String> {
        let began = Instant::now();
        self.taken = self.taken_now();
        let deleted = self.note_open(family);
        let left: Vec<_> = self.left_in_memory().map(|(_, file)| file).collect();
        self.shared = left.iter().map(Metadata::ino).collect();
        let shared = deleted[1] + left.iter().map(bytes).sum::<u64>();
        let kept = self.scratch_bytes(|_| true);
        (self.took, self.looked) = (began.elapsed(), Instant::now());
        if shared > self.bounds.memory_bytes_max {
            let most = mib(self.bounds.memory_bytes_max);
            return Some(format!(
                "it has files in `{SHARED}` of more than the {most} MiB that `memory_mb` allows; it was ended, and they were removed"
            ));
        }
        match kept {
            Ok(kept) if kept.saturating_add(deleted[0]) <= self.allowed_bytes => None,
            Ok(_) => {
                let most = mib(self.bounds.disk_bytes_max);
                Some(format!(
                    "its files became more than the {most} MiB that `disk_mb` allows; it was ended, and the newest of them were removed"
                ))
            }
            Err(place) => {
                let place = place.display();
                Some(format!(
                    "`{place}` can't be looked into, so `disk_mb` can't be kept; it was ended"
                ))
            }
        }
    }

    /// Gives back what it holds in memory without any process. To be called when all of them have ended.
    pub fn release(&self) {
        for (path, file) in self.left_in_memory() {
            // One that was there before is somebody else's.
            let is_its_own = born(&file) >= self.began && file.uid() == geteuid().as_raw();
            if is_its_own {
                _ = fs::remove_file(path);
            }
        }
    }

    /// Removes what was written last until the rest is within its bounds; what was not touched stays. To be called
    /// when all processes have ended.
    pub fn shrink(&self) {
        let mut files = Vec::new();
        let mut kept = 0;
        let walked = walk(&self.scratch, &mut |path, file| {
            kept += bytes(file);
            if changed(file) >= self.began {
                let is_older = born(file) < self.began;
                let at = if is_older { changed(file) } else { born(file) };
                let path = path.strip_prefix(&self.scratch).unwrap_or(path).to_owned();
                let (bytes, is_folder) = (bytes(file), file.is_dir());
                files.push(Changed { path, bytes, is_folder, is_older, at });
            }
        });
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.scratch, flags, Mode::empty());
        let (Ok(()), Ok(root)) = (walked, root) else { return };
        // What is in a folder was made after it.
        files.sort_by(|one, other| {
            one.is_older.cmp(&other.is_older).then_with(|| other.at.cmp(&one.at))
        });
        for file in files {
            if kept <= self.allowed_bytes {
                return;
            }
            let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
                continue;
            };
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            // Another worker of the namespace may run on: it must not be able to lead us elsewhere by a link.
            let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let Ok(parent) = openat2(&root, parent, flags, Mode::empty(), within) else { continue };
            let how = if file.is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            if unlinkat(&parent, name, how).is_ok() {
                kept = kept.saturating_sub(file.bytes);
            }
        }
    }

    /// What is taken of the file systems of the scratch folder and of `/dev/shm`.
    fn taken_now(&self) -> [u64; 2] {
        [self.scratch.as_path(), Path::new(SHARED)].map(|place| {
            let found = statvfs(place);
            found.map_or(0, |it| it.f_blocks.saturating_sub(it.f_bfree).saturating_mul(it.f_frsize))
        })
    }

    /// How much is in the scratch folder of what `counts`; the error is a place that can't be looked into.
    fn scratch_bytes(&self, counts: impl Fn(&Metadata) -> bool) -> Result<u64, PathBuf> {
        let mut sum = 0_u64;
        let mut known = HashSet::new();
        walk(&self.scratch, &mut |_, file| {
            // A file with two names is there once.
            if counts(file) && (file.nlink() <= 1 || file.is_dir() || known.insert(file.ino())) {
                sum = sum.saturating_add(bytes(file));
            }
        })?;
        Ok(sum)
    }

    /// Notes which files in `/dev/shm` are open; how much is in open files that have no name any more, there and
    /// on the disk of the scratch folder.
    pub fn note_open(&mut self, family: &[Pid]) -> [u64; 2] {
        let device = |place: &Path| fs::metadata(place).map(|found| found.dev()).ok();
        let (disk, memory) = (device(&self.scratch), device(Path::new(SHARED)));
        let (mut deleted, mut known) = ([0; 2], HashSet::new());
        for pid in family {
            let list = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
            for open in list.into_iter().flatten().flatten() {
                let Ok(file) = fs::metadata(open.path()) else { continue };
                let is_shared = Some(file.dev()) == memory;
                if !file.is_file() || !(is_shared || Some(file.dev()) == disk) {
                    continue;
                }
                if file.nlink() == 0 && known.insert((file.dev(), file.ino())) {
                    deleted[usize::from(is_shared)] += bytes(&file);
                } else if is_shared {
                    self.shared.insert(file.ino());
                }
            }
        }
        deleted
    }

    /// Those of the noted files that are still there.
    fn left_in_memory(&self) -> impl Iterator<Item = (PathBuf, Metadata)> {
        let list = (!self.shared.is_empty()).then(|| fs::read_dir(SHARED));
        let list = list.into_iter().flatten().flatten().flatten();
        let found = list.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
        found.filter(|(_, file)| file.is_file() && self.shared.contains(&file.ino()))
    }
}

/// Everything in a folder, folders before what is in them; the error is one that can't be looked into.
fn walk(folder: &Path, visit: &mut impl FnMut(&Path, &Metadata)) -> Result<(), PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let list = match fs::read_dir(&folder) {
            Ok(list) => list,
            // It was removed meanwhile, or is none any more.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                continue;
            }
            Err(_) => return Err(folder),
        };
        for entry in list.flatten() {
            let Ok(file) = entry.metadata() else { continue };
            visit(&entry.path(), &file);
            if file.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

/// What a file takes, which is something even if it is empty.
fn bytes(file: &Metadata) -> u64 {
    (file.blocks() * 512).max(STOCK_FILE_BYTES_MIN)
}

fn born(file: &Metadata) -> SystemTime {
    file.created().unwrap_or_else(|_| changed(file))
}

/// When it was changed in any way; nobody can set this.
fn changed(file: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(file.ctime().unsigned_abs());
    let nanos = Duration::from_nanos(file.ctime_nsec().unsigned_abs());
    SystemTime::UNIX_EPOCH + seconds + nanos
}

fn mib(bytes: u64) -> u64 {
    bytes / 1024 / 1024
}
