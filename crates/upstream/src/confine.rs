//! Confinement: what a process gives up before it becomes a worker. HARDENING §4.3
//!
//! Entered by the stage, between fork and exec of the worker, in safe Rust: limits on resources, no
//! privileges, Landlock for files and connections, seccomp for what no tool needs. What the kernel lacks is left
//! out, unless it is required.

pub mod apart;
mod calls;
mod home;
mod privileges;
mod shared;

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use home::home_of;

/// The newest rules that are used where the kernel knows them.
const NEWEST: ABI = ABI::V6;
/// Open files of a worker.
const FILES_MAX: u64 = 1_024;

/// Where the C library keeps named semaphores and shared memory: without it `multiprocessing` can't be used.
const SHARED: &str = "/dev/shm";
/// How the stage begins to say what was reached, before the worker runs.
pub const SANDBOX_SAID: &str = "toolman: sandbox ";

/// How far a process can be confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// In its resources, and in its system calls where the kernel can.
    #[default]
    Limits,
    /// In its files too.
    Landlock,
    /// In all that we know of.
    Full,
}

impl Level {
    const ALL: [Level; 3] = [Level::Limits, Level::Landlock, Level::Full];

    pub fn as_str(self) -> &'static str {
        match self {
            Level::Limits => "limits",
            Level::Landlock => "landlock",
            Level::Full => "full",
        }
    }
}

/// What a worker may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files and folders that it may read and run.
    pub reads: Vec<PathBuf>,
    /// Those that it may change, too.
    pub writes: Vec<PathBuf>,
    /// Whether it may open connections.
    pub has_network: bool,
    /// How much memory it may have.
    pub memory_bytes_max: u64,
    /// How large a file that it writes may become.
    pub file_bytes_max: u64,
    /// Where less can be reached, it must not run.
    pub least: Level,
}

impl Confinement {
    /// As it is handed to the stage: a line for each word.
    pub fn written(&self) -> String {
        let mut text = String::new();
        for (mark, paths) in [('r', &self.reads), ('w', &self.writes)] {
            // A line each: one with a line's end in it could say anything.
            for path in paths.iter().filter(|path| !path.to_string_lossy().contains('\n')) {
                _ = writeln!(text, "{mark}{}", path.display());
            }
        }
        _ = writeln!(text, "n{}", u8::from(self.has_network));
        _ = writeln!(text, "m{}", self.memory_bytes_max);
        _ = writeln!(text, "f{}", self.file_bytes_max);
        _ = writeln!(text, "q{}", self.least.as_str());
        text
    }

    fn read(text: &str) -> Option<Confinement> {
        let mut confinement = Confinement::default();
        for line in text.lines() {
            let rest = line.get(1..)?;
            match line.chars().next()? {
                'r' => confinement.reads.push(rest.into()),
                'w' => confinement.writes.push(rest.into()),
                'n' => confinement.has_network = rest == "1",
                'm' => confinement.memory_bytes_max = rest.parse().ok()?,
                'f' => confinement.file_bytes_max = rest.parse().ok()?,
                'q' => {
                    confinement.least = Level::ALL.into_iter().find(|it| it.as_str() == rest)?;
                }
                _ => return None,
            }
        }
        Some(confinement)
    }
}

/// Enters a confinement as it was written down; an empty one is none. What was reached, in words.
pub(crate) fn enter(written: &str) -> Result<Option<String>, String> {
    if written.is_empty() {
        return Ok(None);
    }
    let confinement = Confinement::read(written).ok_or("the confinement can't be read")?;
    limit(&confinement);
    // What it was granted there would be hidden.
    let mut granted = confinement.reads.iter().chain(&confinement.writes);
    let has_shared = !granted.any(|path| path.starts_with(SHARED))
        && shared::take(confinement.memory_bytes_max).is_ok();
    // Before files are looked for, so that whatever can't be opened without them shows.
    let given_up = privileges::give_up();
    let (mut level, mut reached) = match confine_files(&confinement) {
        Ok(confined) => confined,
        Err(problem) => (Level::Limits, format!("files NOT confined: {problem}")),
    };
    if let Err(problem) = given_up {
        level = level.min(Level::Landlock);
        _ = write!(reached, ", privileges NOT given up: {problem}");
    }
    reached += match calls::forgo(confinement.has_network) {
        Ok(()) => ", system calls reduced",
        Err(_) => {
            level = level.min(Level::Landlock);
            ", system calls NOT reduced"
        }
    };
    if has_shared {
        reached += ", own /dev/shm";
    }
    if !confinement.has_network {
        reached += ", no network";
    }
    let (reached, least) = (format!("{}: {reached}", level.as_str()), confinement.least.as_str());
    if level < confinement.least {
        return Err(format!(
            "`require_sandbox = \"{least}\"` can't be met here, only {reached}; use a kernel with Landlock, or ask for less"
        ));
    }
    Ok(Some(reached))
}

/// Limits that hold for each process by itself.
fn limit(confinement: &Confinement) {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, FILES_MAX),
        (Resource::Fsize, confinement.file_bytes_max),
        (Resource::Data, confinement.memory_bytes_max),
    ];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        // A limit can be lowered always.
        _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
}

fn confine_files(confinement: &Confinement) -> Result<(Level, String), String> {
    let worded = |error: landlock::RulesetError| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(worded)?;
    if !confinement.has_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(worded)?;
    }
    let ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(worded)?;
    let mut ruleset = ruleset.create().map_err(worded)?;
    // A device that somebody makes is the device itself.
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock;
    let rules = [
        (&confinement.reads, AccessFs::from_read(NEWEST)),
        (&confinement.writes, AccessFs::from_all(NEWEST) & !devices),
    ];
    let mut out_of_reach = Vec::new();
    for (paths, access) in rules {
        for path in paths {
            let place = match PathFd::new(path) {
                Ok(place) => place,
                Err(PathFdError::OpenCall { source, .. })
                    if source.kind() == ErrorKind::PermissionDenied =>
                {
                    out_of_reach.push(path.display());
                    continue;
                }
                // What is not there can't be read anyway.
                Err(_) => continue,
            };
            let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
            ruleset = ruleset.add_rule(PathBeneath::new(place, access)).map_err(worded)?;
        }
    }
    if let Ok(place) = PathFd::new(SHARED) {
        // Files there can be made and opened by name, but not listed: those of others have names that can't be guessed.
        let by_name = AccessFs::ReadFile
            | AccessFs::WriteFile
            | AccessFs::Truncate
            | AccessFs::MakeReg
            | AccessFs::RemoveFile;
        ruleset = ruleset.add_rule(PathBeneath::new(place, by_name)).map_err(worded)?;
    }
    let status = ruleset.restrict_self().map_err(worded)?;
    let (level, mut reached) = match status.ruleset {
        RulesetStatus::NotEnforced => return Err("the kernel has no Landlock".into()),
        RulesetStatus::PartiallyEnforced => {
            (Level::Landlock, "files confined, as far as the kernel can".to_owned())
        }
        RulesetStatus::FullyEnforced => (Level::Full, "files confined".to_owned()),
    };
    for path in out_of_reach {
        _ = write!(reached, ", `{path}` OUT OF REACH: a folder above it is closed to its user");
    }
    Ok((level, reached))
}

/// What every program reads: libraries, certificates, the names of this machine; no accounts, no secrets.
pub fn common_reads() -> Vec<PathBuf> {
    let paths = [
        "/usr",
        "/lib",
        "/lib64",
        "/bin",
        "/sbin",
        "/opt",
        "/nix/store",
        "/etc/ssl",
        "/etc/pki",
        "/etc/ca-certificates",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/timezone",
        "/etc/resolv.conf",
        "/etc/hosts",
        "/etc/nsswitch.conf",
        "/etc/gai.conf",
        "/etc/services",
        "/etc/protocols",
        "/etc/mime.types",
        "/etc/host.conf",
        "/proc/self",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/filesystems",
        "/sys/devices/system/cpu",
        "/dev/urandom",
        "/dev/random",
        "/dev/zero",
    ];
    paths.iter().map(PathBuf::from).collect()
}

/// What every program may write to.
pub fn common_writes() -> Vec<PathBuf> {
    ["/dev/null", "/dev/tty"].iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::{Confinement, Level};

    #[test]
    fn confinement_is_read_as_it_was_written() {
        let confinement = Confinement {
            reads: vec!["/usr".into(), "/a b".into()],
            writes: vec!["/tmp/x".into()],
            has_network: false,
            memory_bytes_max: 7,
            file_bytes_max: 8,
            least: Level::Landlock,
        };
        assert_eq!(Confinement::read(&confinement.written()), Some(confinement));
        assert_eq!(Confinement::read("x"), None);
        let forged = Confinement { reads: vec!["/a\nw/".into()], ..Confinement::default() };
        let read = Confinement::read(&forged.written()).unwrap();
        assert!(read.reads.is_empty() && read.writes.is_empty());
    }
}
