//! Processes that the benchmark starts and measures: each ends with the value that holds it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{ChildStdin, ChildStdout};

use crate::limits::{LOOK_PAUSE, STOP_TIME_MAX};

/// What `/proc` counts CPU time in, on every Linux that Rust runs on.
const TICKS_PER_SECOND: u64 = 100;

/// A child, ended when it is dropped.
pub struct Process {
    child: Child,
    typed: String,
}

impl Process {
    #[expect(clippy::disallowed_methods, reason = "these are no servers of the gateway")]
    pub fn start(command: &mut Command) -> anyhow::Result<Process> {
        let typed = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("can't start `{typed}`"))?;
        Ok(Process { child, typed })
    }

    /// Starts something that prints a line when it serves.
    pub fn with_line(command: &mut Command) -> anyhow::Result<(Process, String)> {
        let mut process = Process::start(command.stdout(Stdio::piped()))?;
        let stdout = process.child.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line.is_empty() {
            bail!("`{}` does not serve; see what it said above", process.typed);
        }
        Ok((process, line.trim_end().to_owned()))
    }

    /// Starts something that prints its port when it serves.
    pub fn with_port(command: &mut Command) -> anyhow::Result<(Process, u16)> {
        let (process, line) = Process::with_line(command)?;
        let port = line.parse().with_context(|| format!("`{line}` is no port"))?;
        Ok((process, port))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The pipes of a child that was started with them.
    pub fn pipes(
        &mut self,
    ) -> anyhow::Result<(std::process::ChildStdin, std::process::ChildStdout)> {
        let stdin = self.child.stdin.take().context("stdin is piped")?;
        Ok((stdin, self.child.stdout.take().context("stdout is piped")?))
    }

    /// Says so when it has ended already.
    pub fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("`{}` ended early ({status}); see what it said above", self.typed);
        }
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end(STOP_TIME_MAX)
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> anyhow::Result<()> {
        self.await_end(STOP_TIME_MAX)
    }

    fn end(&mut self, patience: Duration) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        _ = kill_process(pid.context("a child has a process id")?, Signal::TERM);
        self.await_end(patience)
    }

    fn await_end(&mut self, patience: Duration) -> anyhow::Result<()> {
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > patience {
                self.child.kill()?;
                self.child.wait()?;
                bail!("`{}` did not end when asked to", self.typed);
            }
            std::thread::sleep(LOOK_PAUSE / 4);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whoever cares whether it ended well has called `stop`.
        _ = self.end(STOP_TIME_MAX / 10);
    }
}

/// Starts a child that talks over pipes.
#[expect(clippy::disallowed_methods, reason = "the anchor has no guard: it does only what it must")]
pub fn piped(
    command: &[String],
) -> anyhow::Result<(tokio::process::Child, ChildStdin, ChildStdout)> {
    let [program, arguments @ ..] = command else { bail!("name the command of the child") };
    let mut child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("can't start `{program}`"))?;
    let stdin = child.stdin.take().context("stdin is piped")?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    Ok((child, stdin, stdout))
}

/// The CPU time that a process has used so far, in microseconds; its children are not counted.
pub fn cpu_micros(pid: u32) -> anyhow::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = cpu_ticks(&stat).context("/proc has another format than expected")?;
    Ok(ticks * 1_000_000 / TICKS_PER_SECOND)
}

/// The sum of `utime` and `stime`; the name before them may hold anything but its last bracket.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// The memory that a process keeps, in KiB.
pub fn memory_kib(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).context("/proc tells no memory")
}

/// All processes below one, however deep, that run a program.
pub fn below(pid: u32, program: &Path) -> Vec<u32> {
    // The first word of its command line: the guard of a server only names it later.
    below_that(pid, |words| words.first() == Some(&program.as_os_str().as_bytes()))
}

/// All processes below one, however deep, whose command line is such.
pub fn below_that(pid: u32, is_such: impl Fn(&[&[u8]]) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    let mut to_look_at = vec![pid];
    while let Some(pid) = to_look_at.pop() {
        for task in threads(pid) {
            let children = fs::read_to_string(format!("/proc/{pid}/task/{task}/children"));
            let children = children.unwrap_or_default();
            for child in children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
                to_look_at.push(child);
                let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
                if is_such(&words) {
                    found.push(child);
                }
            }
        }
    }
    found
}

/// The threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::cpu_ticks;

    #[test]
    fn cpu_time_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 90 0 0 0 11 22 0 0 20 0 3 0 5 6 7";
        assert_eq!(cpu_ticks(stat), Some(33));
        assert_eq!(cpu_ticks("7 (a"), None);
    }
}
