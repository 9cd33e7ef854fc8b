//! Looking at the processes of this machine.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whether a process is there and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The session and the process group of a process.
pub fn session_and_group(pid: u32) -> (u32, u32) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[3].parse().unwrap(), fields[2].parse().unwrap())
}

/// All living descendants of a process, zombies included.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children: Vec<u32> =
                children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            found.extend(&children);
            next.extend(children);
        }
    }
    found
}

/// How many of these are zombies.
pub fn zombies(pids: &[u32]) -> usize {
    pids.iter().filter(|pid| state(**pid) == Some('Z')).count()
}

/// How many files a process has open.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// How much memory a process has resident.
pub fn resident_kib(pid: u32) -> u64 {
    kib(pid, "VmRSS:")
}

/// How much memory a process has had resident at most.
pub fn peak_kib(pid: u32) -> u64 {
    kib(pid, "VmHWM:")
}

fn kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The command line of a process.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Sends a signal, as `kill` names it.
pub fn kill(signal: &str, pid: u32) {
    let status = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// The processes that work in a folder.
pub fn working_in(folder: &Path) -> Vec<u32> {
    let works_there = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.as_path() == folder)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(works_there).filter(|pid| is_alive(*pid)).collect()
}

/// Those of `pids` that still live when `within` has passed; returns as soon as none does.
pub fn survivors(pids: &[u32], within: Duration) -> Vec<u32> {
    let deadline = Instant::now() + within;
    loop {
        let living: Vec<u32> = pids.iter().copied().filter(|pid| is_alive(*pid)).collect();
        if living.is_empty() || Instant::now() > deadline {
            return living;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
