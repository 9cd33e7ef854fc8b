//! Folders of Python tools, and the workers that run them.
//!
//! A worker is an upstream like any other; what it says is in `protocol`. Which folders there are, and under
//! which namespace they are shown, is not known here.

pub mod admission;
pub mod environment;
pub mod fresh;
mod installer;
pub mod lease;
pub mod protocol;
pub mod requirements;
pub mod runtime;
pub mod scan;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp::items::Inventory;
use tokio::time::Instant;

use crate::confine::Confinement;
use crate::guard::Bounds;
use crate::python::admission::Admission;
use crate::python::lease::Lease;
use crate::template::Template;

/// What a worker sees of our own environment, where it is set.
const USUAL: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Where a worker may write.
const OWN: [&str; 2] = ["HOME", "TMPDIR"];
/// The variables that tools may read without anybody declaring them.
pub const ALWAYS_SET: [&str; 8] =
    [USUAL[0], USUAL[1], USUAL[2], USUAL[3], USUAL[4], USUAL[5], OWN[0], OWN[1]];

/// A folder of tools, and how its worker is started. Shown without values of its environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Worker {
    /// What it calls itself.
    pub name: String,
    pub folder: PathBuf,
    pub interpreter: PathBuf,
    /// Where our own Python files are.
    pub runtime: PathBuf,
    /// What the folder declares; all else that a worker sees is the same for each.
    pub env: Vec<(String, Template)>,
    /// A hash over all that the folder holds: with other files it is another worker.
    pub version: String,
    /// What its files define, as far as that is known without running them.
    pub offer: Arc<Inventory>,
    /// Which file each of these tools stands in.
    pub files: Vec<(String, String)>,
    /// Of these, the tools whose schema alone tells what they take.
    pub exact: Vec<String>,
    /// Which of its tools may be seen and called.
    pub admission: Admission,
    /// What is wrong with its files.
    pub faults: Faults,
    /// Whether it is never started: what its folder forbids, or holds, is not known.
    pub is_refused: bool,
    /// What is there of it. One that is not whole is never started: another one takes its place.
    pub stage: Stage,
    /// Whether it is started before anybody calls it.
    pub is_eager: bool,
    /// Whether it refuses arguments of another type where it would convert them.
    pub is_strict: bool,
    pub pace: Pace,
    /// Where is kept what its tools print; nowhere if absent.
    pub log: Option<PathBuf>,
    /// A folder of its own, for what its tools write.
    pub scratch: PathBuf,
    /// What it may touch; all that we may if absent.
    pub confinement: Option<Confinement>,
    /// What it may become, with all processes that its tools start.
    pub bounds: Bounds,
    /// What must stay where it is for as long as it may run.
    pub lease: Lease,
}

/// How people run us, as they are told: behind what stands in `TOOLMAN_EXEC`, such as `docker exec -it toolman-manager`.
pub fn program() -> String {
    let before = std::env::var("TOOLMAN_EXEC").unwrap_or_default();
    [before.trim(), "toolman"].join(" ").trim_start().to_owned()
}

/// How far a folder was made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// What its files define is not known yet.
    Unread,
    /// It was read, but its environment is still to be made.
    Read,
    Whole,
}

/// What is wrong with a folder, each with its place.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub of_files: Vec<String>,
    /// Why its packages are not those that it wants. It is no part of what tells one worker from another: the words of an
    /// installer are others each time.
    pub of_packages: Option<String>,
}

impl Faults {
    pub fn all(&self) -> Vec<String> {
        self.of_files.iter().chain(&self.of_packages).cloned().collect()
    }
}

impl PartialEq for Faults {
    fn eq(&self, other: &Faults) -> bool {
        self.of_files == other.of_files
    }
}

impl Eq for Faults {}

/// How much a worker is asked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub calls_max: usize,
    pub waiting_max: usize,
    pub calls_a_minute: Option<u32>,
    pub result_bytes_max: usize,
}

impl Worker {
    pub(crate) fn command_line(&self) -> (&OsStr, Vec<OsString>) {
        let mut args: Vec<OsString> = ["-I", "-B"].map(OsString::from).into();
        args.push(self.runtime.join("worker.py").into());
        args.extend(["--namespace".into(), OsString::from(&self.name), "--tools".into()]);
        args.push(self.folder.clone().into());
        args.extend(["--result-max".into(), self.pace.result_bytes_max.to_string().into()]);
        args.extend(["--program".into(), program().into()]);
        if self.is_strict {
            args.push("--strict".into());
        }
        if let Some(confinement) = &self.confinement {
            // So that a tool which is denied something can say by which setting.
            let held_by = if confinement.has_network { "sandbox" } else { "sandbox,network" };
            args.extend(["--held-by".into(), held_by.into()]);
        }
        (self.interpreter.as_os_str(), args)
    }

    /// What is wrong with its files, together with what it has said of them: of two words on one line, its own.
    pub(crate) fn all_faults(&self, said: &[String]) -> Vec<String> {
        let is_said = |fault: &String| {
            let mut parts = fault.splitn(3, ':');
            let (Some(file), Some(line)) = (parts.next(), parts.next()) else { return false };
            let place = format!("{file}:{line}:");
            said.iter().any(|other| other == fault || other.starts_with(&place))
        };
        let read = self.faults.all().into_iter().filter(|fault| !is_said(fault));
        read.chain(said.iter().cloned()).collect()
    }

    /// All that a worker sees of an environment: what is declared, and what programs need to run at all.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let usual = USUAL.into_iter();
        let usual = usual.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        let declared = self.env.iter();
        let declared =
            declared.filter_map(|(name, value)| Some((name.into(), value.plain()?.into())));
        // What programs keep for themselves goes where nobody else looks.
        let own = OWN.map(|name| (name.into(), self.scratch.clone().into()));
        usual.chain(own).chain(declared).collect()
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Worker")
            .field("name", &self.name)
            .field("folder", &self.folder)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

/// So many calls a minute: a bucket that fills at that rate, and is full at first.
pub struct Rate {
    calls_a_minute: f64,
    bucket: Mutex<(f64, Instant)>,
}

impl Rate {
    pub fn new(calls_a_minute: u32) -> Rate {
        let calls_a_minute = f64::from(calls_a_minute);
        Rate { calls_a_minute, bucket: Mutex::new((calls_a_minute, Instant::now())) }
    }

    /// Whether one more is let through now.
    pub fn admits(&self) -> bool {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, last) = *bucket;
        let minutes = last.elapsed().as_secs_f64() / Duration::from_mins(1).as_secs_f64();
        let left = self.calls_a_minute.mul_add(minutes, left).min(self.calls_a_minute);
        let admits = left >= 1.0;
        *bucket = (if admits { left - 1.0 } else { left }, Instant::now());
        admits
    }
}
