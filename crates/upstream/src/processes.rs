//! Ending whole families of processes.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const ROUNDS_MAX: u32 = 1_000;
const ROUND_PAUSE: Duration = Duration::from_millis(1);

/// Kills and reaps every child of this process that `spared` does not spare, and theirs.
///
/// This process must be a subreaper: the children of a killed child become ours and are met in
/// the next round, also those that have left the process group or session.
pub fn kill_children(spared: impl Fn(Pid) -> bool) {
    for _ in 0..ROUNDS_MAX {
        let doomed: Vec<Pid> = own_children().into_iter().filter(|pid| !spared(*pid)).collect();
        if doomed.is_empty() {
            return;
        }
        for pid in doomed {
            // Gone already, or not ours to kill: the next round tells.
            _ = kill_process(pid, Signal::KILL);
            _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
        std::thread::sleep(ROUND_PAUSE);
    }
}

/// The direct children of this process, of all its threads.
fn own_children() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let mut pids = Vec::new();
    for list in lists {
        match list {
            Ok(list) => pids.extend(list.split_whitespace().filter_map(parse_pid)),
            // A kernel without these files; a thread that has just ended is no loss.
            Err(_) => return children_by_scan(),
        }
    }
    pids
}

fn children_by_scan() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let is_child = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        // The name in parentheses may hold anything; the parent is the second field after it.
        stat.is_ok_and(|stat| {
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            after_name.split_whitespace().nth(1) == Some(&own)
        })
    };
    let pids = processes.flatten().filter_map(|entry| parse_pid(entry.file_name().to_str()?));
    pids.filter(is_child).collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
