//! The census: how many processes a server has become, and how much memory they have together.
//!
//! Limits of the kernel hold for one process, or for all processes of a user, so that one namespace could take them
//! from another. So the guard counts what is below it, which takes no rights and works everywhere.

use std::fs;
use std::time::Instant;

use rustix::process::Pid;

use super::group::Group;
use crate::limits::{CENSUS_BIRTHS, CENSUS_EVERY, CENSUS_PAUSE};
use crate::processes::family;

/// What a server may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub processes_max: u32,
    /// Of all its processes together.
    pub memory_bytes_max: u64,
}

impl Bounds {
    /// As it is handed to the guard.
    pub(super) fn written(&self) -> String {
        format!("{} {}", self.processes_max, self.memory_bytes_max)
    }

    pub(super) fn read(text: &str) -> Option<Bounds> {
        let (processes, memory) = text.split_once(' ')?;
        let (processes_max, memory_bytes_max) = (processes.parse().ok()?, memory.parse().ok()?);
        Some(Bounds { processes_max, memory_bytes_max })
    }

    /// What is wrong with a family, if anything.
    fn exceeded_by(&self, family: &[Pid]) -> Option<String> {
        let count = family.len();
        if count > usize::try_from(self.processes_max).unwrap_or(usize::MAX) {
            let most = self.processes_max;
            return Some(format!(
                "{count} processes, where `processes` allows {most}; all were ended"
            ));
        }
        // One process alone is held by its own limit. Pages that are shared count once, if it comes to that.
        if count > 1
            && family.iter().map(|pid| resident_bytes(*pid)).sum::<u64>() > self.memory_bytes_max
            && family.iter().map(|pid| own_bytes(*pid)).sum::<u64>() > self.memory_bytes_max
        {
            let most = self.memory_bytes_max / 1024 / 1024;
            return Some(format!(
                "{count} processes with more than the {most} MiB together that `memory_mb` allows; all were ended"
            ));
        }
        None
    }
}

/// Looks on for as long as all is well; then says what is not.
pub fn watch(bounds: Bounds, group: Option<&Group>) -> String {
    let (mut last, mut seen, mut crowd) = (Instant::now(), newest_pid(), 1);
    loop {
        std::thread::sleep(CENSUS_PAUSE);
        let newest = newest_pid();
        // Counting takes time, so it is left out while few were born on the whole machine.
        let is_quiet = newest.wrapping_sub(seen) < CENSUS_BIRTHS;
        if is_quiet && crowd <= 1 && last.elapsed() < CENSUS_EVERY {
            continue;
        }
        let family = group.map_or_else(family, Group::members);
        if let Some(problem) = bounds.exceeded_by(&family) {
            return problem;
        }
        (last, seen, crowd) = (Instant::now(), newest, family.len());
    }
}

/// The process that was born last, on this machine or in this container.
fn newest_pid() -> u32 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().nth(4).and_then(|pid| pid.parse().ok()).unwrap_or_default()
}

/// What a process has in memory for itself, by what costs little to ask: pages that it shares with its parent are
/// counted in both.
fn resident_bytes(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    kib(&status, "RssAnon:") + kib(&status, "RssShmem:")
}

/// The same, with its share only of what it has in common with others.
fn own_bytes(pid: Pid) -> u64 {
    let sizes = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()));
    sizes.map_or_else(|_| resident_bytes(pid), |sizes| kib(&sizes, "Pss:"))
}

/// A size that the kernel gives in KiB, in bytes.
fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    size.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::Bounds;

    #[test]
    fn bounds_are_read_as_they_were_written() {
        let bounds = Bounds { processes_max: 64, memory_bytes_max: 1 << 31 };
        assert_eq!(Bounds::read(&bounds.written()), Some(bounds));
        assert_eq!(Bounds::read(""), None);
    }
}
