//! Families of processes: who belongs to them, and how they are ended.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpgrp, getpid, kill_process, kill_process_group, waitpid,
};

const ROUNDS_MAX: u32 = 1_000;
const ROUND_PAUSE: Duration = Duration::from_millis(1);
/// How often a family is looked at until all of it stands still.
const HALTS_MAX: u32 = 200;

/// Kills and reaps every child of this process that `spared` does not spare, and theirs.
///
/// This process must be a subreaper: the children of a killed child become ours and are met in
/// the next round, also those that have left the process group or session. They are halted before, as
/// otherwise some could be born faster than they are killed.
pub fn kill_children(spared: impl Fn(Pid) -> bool) {
    halt(&spared);
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

/// All that is below this process.
pub fn family() -> Vec<Pid> {
    let mut found = own_children();
    // Ids are used again, so a family that changes might seem to be its own ancestor.
    let mut known: HashSet<Pid> = found.iter().copied().collect();
    let mut table = Table::default();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(table.children_of(parent).into_iter().filter(|child| known.insert(*child)));
    }
    found
}

/// Stops all that is below this process, but for what is spared, so that nobody is born there any more.
///
/// It is a race against those who are born meanwhile, so each is stopped before its children are looked for, and
/// with all others of its process group.
fn halt(spared: impl Fn(Pid) -> bool) {
    let (mut halted, mut groups) = (HashSet::new(), HashSet::from([getpgrp()]));
    for _ in 0..HALTS_MAX {
        let mut is_over = true;
        let mut table = Table::default();
        let mut met = HashSet::new();
        let mut next: Vec<Pid> = own_children().into_iter().filter(|pid| !spared(*pid)).collect();
        while let Some(pid) = next.pop() {
            if !met.insert(pid) {
                continue;
            }
            // One that was born since, or has not noticed yet, may have children by now.
            if halted.insert(pid) || !stands_still(pid) {
                is_over = false;
                _ = kill_process(pid, Signal::STOP);
                if let Some(group) = getpgid(Some(pid)).ok().filter(|group| groups.insert(*group)) {
                    _ = kill_process_group(group, Signal::STOP);
                }
            }
            next.extend(table.children_of(pid));
        }
        if is_over {
            return;
        }
    }
}

/// Who the children of processes are.
#[derive(Default)]
struct Table(Option<HashMap<Pid, Vec<Pid>>>);

impl Table {
    fn children_of(&mut self, pid: Pid) -> Vec<Pid> {
        children_of(pid).unwrap_or_else(|| {
            let table = self.0.get_or_insert_with(children_by_scan);
            table.get(&pid).cloned().unwrap_or_default()
        })
    }
}

/// Whether a process is stopped, or has ended.
fn stands_still(pid: Pid) -> bool {
    stat(pid).is_none_or(|stat| stat.starts_with(['T', 't', 'Z', 'X', 'D']))
}

/// The direct children of this process, of all its threads.
fn own_children() -> Vec<Pid> {
    Table::default().children_of(getpid())
}

/// The direct children of a process; `None` if the kernel has no such list.
fn children_of(pid: Pid) -> Option<Vec<Pid>> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Some(Vec::new());
    };
    let mut pids = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => pids.extend(list.split_whitespace().filter_map(parse_pid)),
            // A thread that has just ended is no loss; a thread without the file is of an old kernel.
            Err(_) if thread.path().join("stat").exists() => return None,
            Err(_) => {}
        }
    }
    Some(pids)
}

/// The children of all processes.
fn children_by_scan() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    let Ok(processes) = fs::read_dir("/proc") else {
        return table;
    };
    for pid in processes.flatten().filter_map(|entry| parse_pid(entry.file_name().to_str()?)) {
        let parent = stat(pid).and_then(|stat| parse_pid(stat.split_whitespace().nth(1)?));
        if let Some(parent) = parent {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

/// What the kernel says of a process, from its state on.
fn stat(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name in parentheses may hold anything.
    stat.rsplit(')').next().map(|rest| rest.trim_start().to_owned())
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
