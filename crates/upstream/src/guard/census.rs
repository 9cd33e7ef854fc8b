//! The census: how many processes a server has become, how many threads, and how much memory they have together.
//!
//! Limits of the kernel hold for one process, or for all processes of a user, so that one namespace could take them
//! from another; and none of them counts memory that is shared. So the guard counts what is below it, which takes no
//! rights and works everywhere.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::param::page_size;
use rustix::process::Pid;

use super::group::Group;
use super::stock::Stock;
use crate::limits::{
    CENSUS_BIRTHS, CENSUS_EVERY, CENSUS_PAUSE, THREADS_MAX_LEAST, THREADS_OF_A_PROCESS,
};
use crate::processes::family;

/// What a server may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub processes_max: u32,
    /// Of all its processes together.
    pub memory_bytes_max: u64,
    /// Of all its files in its scratch folder.
    pub disk_bytes_max: u64,
}

/// Why all that is below a guard has to end.
pub struct Excess {
    pub said: String,
    /// Whether it is files that are too many.
    pub is_of_files: bool,
}

impl Bounds {
    /// As it is handed to the guard.
    pub(super) fn written(&self) -> String {
        format!("{} {} {}", self.processes_max, self.memory_bytes_max, self.disk_bytes_max)
    }

    pub(super) fn read(text: &str) -> Option<Bounds> {
        let mut parts = text.split(' ');
        let processes_max = parts.next()?.parse().ok()?;
        let mut bytes = || parts.next()?.parse().ok();
        Some(Bounds { processes_max, memory_bytes_max: bytes()?, disk_bytes_max: bytes()? })
    }

    /// Threads of all its processes: each of them takes a number of the machine, as a process does.
    pub(super) fn threads_max(&self) -> u64 {
        let usual = u64::from(self.processes_max).saturating_mul(THREADS_OF_A_PROCESS);
        usual.max(THREADS_MAX_LEAST)
    }

    /// What is wrong with a family, if anything.
    fn exceeded_by(&self, family: &[Pid]) -> Option<String> {
        let (count, most) = (family.len(), self.processes_max);
        if count > usize::try_from(most).unwrap_or(usize::MAX) {
            return Some(format!(
                "it became {count} processes, where `processes` allows {most}; all were ended"
            ));
        }
        let sizes: Vec<Size> = family.iter().map(|pid| Size::of(*pid)).collect();
        let threads: u64 = sizes.iter().map(|size| size.threads).sum();
        if threads > self.threads_max() {
            let most_threads = self.threads_max();
            return Some(format!(
                "it became {threads} threads, where `processes: {most}` allows {most_threads}; all were ended"
            ));
        }
        // Pages that are shared count once, if it comes to that.
        if sizes.iter().map(|size| size.bytes).sum::<u64>() > self.memory_bytes_max
            && family.iter().map(|pid| own_bytes(*pid)).sum::<u64>() > self.memory_bytes_max
        {
            let most = self.memory_bytes_max / 1024 / 1024;
            let who = if count == 1 { "a process" } else { &format!("{count} processes") };
            return Some(format!(
                "it became {who} with more than the {most} MiB together that `memory_mb` allows; all were ended"
            ));
        }
        None
    }
}

/// Looks on for as long as all is well; then says what is not.
pub fn watch(bounds: Bounds, server: Pid, stock: &Mutex<Stock>, group: Option<&Group>) -> Excess {
    let stock = || stock.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut last, mut seen, mut crowd) = (Instant::now(), newest_pid(), 1);
    loop {
        std::thread::sleep(CENSUS_PAUSE);
        let newest = newest_pid();
        // Counting takes time, so it is left out while few were born on the whole machine, and the server is small.
        let is_quiet = newest.wrapping_sub(seen) < CENSUS_BIRTHS
            && resident_bytes(server) < bounds.memory_bytes_max / 2;
        let is_due = stock().is_due();
        if is_quiet && !is_due && crowd <= 1 && last.elapsed() < CENSUS_EVERY {
            continue;
        }
        let family = group.map_or_else(family, Group::members);
        if let Some(said) = bounds.exceeded_by(&family) {
            return Excess { said, is_of_files: false };
        }
        if is_due && let Some(said) = stock().exceeded_by(&family) {
            return Excess { said, is_of_files: true };
        }
        (last, seen, crowd) = (Instant::now(), newest, family.len());
    }
}

/// The process that was born last, on this machine or in this container.
fn newest_pid() -> u32 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().nth(4).and_then(|pid| pid.parse().ok()).unwrap_or_default()
}

/// How large a process is, by what costs little to ask.
#[derive(Default)]
struct Size {
    threads: u64,
    /// What it has in memory for itself: pages that it shares with its parent are counted in both.
    bytes: u64,
}

impl Size {
    fn of(pid: Pid) -> Size {
        let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
        let Ok(status) = status else { return Size::default() };
        Size {
            threads: number(&status, "Threads:"),
            bytes: (number(&status, "RssAnon:") + number(&status, "RssShmem:")) * 1024,
        }
    }
}

/// What it has in memory, files that it reads too; the cheapest of all.
fn resident_bytes(pid: Pid) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero()));
    let pages = pages.ok().and_then(|pages| pages.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default().saturating_mul(u64::try_from(page_size()).unwrap_or_default())
}

/// What it has in memory, with its share only of what it has in common with others.
fn own_bytes(pid: Pid) -> u64 {
    let sizes = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()));
    sizes.map_or_else(|_| Size::of(pid).bytes, |sizes| number(&sizes, "Pss:") * 1024)
}

/// A number that the kernel gives on a line of this name.
fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    number.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Bounds;

    #[test]
    fn bounds_are_read_as_they_were_written() {
        let bounds =
            Bounds { processes_max: 64, memory_bytes_max: 1 << 31, disk_bytes_max: 1 << 32 };
        assert_eq!(Bounds::read(&bounds.written()), Some(bounds));
        assert_eq!(Bounds::read(""), None);
    }
}
