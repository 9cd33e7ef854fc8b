//! The control group of a server, where one can be made: whatever it starts is in there, and is ended in one act.
//!
//! Only of version 2, and below the group that we are in ourselves: by root, or where it was delegated to us. No
//! controller is switched on; those that are on for groups below ours hold the server to its bounds, too.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::process::Pid;

use super::census::Bounds;

/// How the names of our groups begin; the id of the guard follows.
const NAME: &str = "toolman-guard-";
/// What a worker has besides its data, such as files that it reads: it should meet its own limit first.
const BESIDES_BYTES: u64 = 128 * 1024 * 1024;

pub struct Group(PathBuf);

impl Group {
    /// Makes a group, if that is possible.
    pub fn make(bounds: Bounds) -> Option<Group> {
        let own = own_group()?;
        remove_left_over(&own);
        let group = Group(own.join(format!("{NAME}{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        // Where the controllers are on. They count threads.
        _ = group.write("pids.max", bounds.threads_max());
        _ = group.write("memory.max", bounds.memory_bytes_max.saturating_add(BESIDES_BYTES));
        _ = group.write("memory.oom.group", 1);
        Some(group)
    }

    /// Takes a process in; its children will be born here.
    pub fn take(&self, pid: Pid) -> io::Result<()> {
        self.write("cgroup.procs", u64::from(pid.as_raw_nonzero().get().unsigned_abs()))
    }

    /// All that are in it.
    pub fn members(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// Kills them all, and those who are being born.
    pub fn kill(&self) {
        _ = self.write("cgroup.kill", 1);
    }

    /// Removes the group, in which nobody lives any more.
    pub fn remove(&self) {
        _ = fs::remove_dir(&self.0);
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.0.join(file))?;
        file.write_all(value.to_string().as_bytes())
    }
}

/// Whether groups can be made here; found out by trying, once.
pub fn can_be_made() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let trial = own_group().map(|own| own.join(format!("{NAME}{}", std::process::id())));
        trial.is_some_and(|trial| {
            let is_made = fs::create_dir(&trial).is_ok();
            _ = fs::remove_dir(trial);
            is_made
        })
    })
}

/// The folder of the group that this process is in.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mut fields = mount.split(' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let path = Path::new(path).strip_prefix(root).ok()?;
    let own = Path::new(place).join(path);
    // All that is in it can be killed at once since Linux 5.14.
    own.join("cgroup.procs").exists().then_some(own)
}

/// Removes groups whose guards were killed. Those that somebody lives in stay by themselves.
fn remove_left_over(own: &Path) {
    for entry in fs::read_dir(own).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let guard = name.to_str().and_then(|name| name.strip_prefix(NAME));
        if guard.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            _ = fs::remove_dir(entry.path());
        }
    }
}
