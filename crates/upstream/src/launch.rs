//! Starting a server: a command or a Python worker under its guard, or one that is built in.

mod errand;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp::abilities::Abilities;
use mcp::names::UpstreamName;
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use secrets::store::{Mark, Store};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::{Connection, Listener};
use crate::context::Context;
use crate::guard::{self, Bounds, Terms};
use crate::limits::{CLIENT_WAIT_MAX, GUARD_EXIT_MAX, SECRETS_WAIT_MAX, STDIN_CLOSE_GRACE};
use crate::processes::kill_children;
use crate::python::Worker;
use crate::remote::Remote;
use crate::template::Template;
use crate::veil::Veil;

pub use errand::{Ended, Errand};

/// Variables that are meant for us: a server that had them could call all others.
const OWN_SECRETS: [&str; 8] = [
    "BEARER_TOKEN",
    "CORE_TOKEN",
    "MANAGER_INTERNAL_TOKEN",
    "SECRETS_KEY",
    "SECRETS_KEY_COMMAND",
    "SECRETS_KEY_FD",
    "SECRETS_KEY_FILE",
    "TOOLMAN_KEY_HANDED",
];

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    Command(Command),
    BuiltIn(BuiltIn),
    /// It runs already, elsewhere.
    Url(Remote),
    /// A folder of Python tools.
    Worker(Box<Worker>),
}

/// A command with its surroundings. Shown by names only: values and arguments may be secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Command {
    pub line: CommandLine,
    /// Added to our own environment.
    pub env: Vec<(String, Template)>,
    pub cwd: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum CommandLine {
    /// A string for the shell.
    Shell(String),
    /// A program and its arguments, as they are.
    Direct { program: String, args: Vec<Template> },
}

impl Launch {
    /// Whether it is the same for every client.
    pub fn is_plain(&self) -> bool {
        match self {
            Launch::Command(Command { line, env, .. }) => {
                let args = match line {
                    CommandLine::Shell(_) => &[][..],
                    CommandLine::Direct { args, .. } => args,
                };
                env.iter().map(|(_, value)| value).chain(args).all(|text| !text.is_of_clients())
            }
            Launch::BuiltIn(_) | Launch::Worker(_) => true,
            Launch::Url(remote) => remote.headers.is_plain(),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("Command")
            .field("line", &self.line)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .finish()
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CommandLine::Shell(_) => formatter.write_str("Shell"),
            CommandLine::Direct { program, .. } => write!(formatter, "Direct({program})"),
        }
    }
}

/// A server in this process: each call makes a fresh one and gives our end of its pipe.
#[derive(Clone)]
pub struct BuiltIn(pub Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl PartialEq for BuiltIn {
    fn eq(&self, other: &BuiltIn) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for BuiltIn {}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("BuiltIn")
    }
}

/// A started server.
pub struct Started {
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub process: Option<Process>,
    is_worker: bool,
}

impl Started {
    /// Begins the conversation; what is left are its stderr and the process.
    pub fn connect(
        self,
        upstream: UpstreamName,
        listener: Listener,
    ) -> (Connection, Option<Box<dyn AsyncRead + Send + Unpin>>, Option<Process>) {
        let open = if self.is_worker { Connection::open_worker } else { Connection::open };
        (open(upstream, self.reader, self.writer, listener), self.stderr, self.process)
    }
}

/// Starts processes and sees to it that none is left over.
///
/// The process that owns one becomes a subreaper and must start children in no other way, nor by one that is no
/// [`Spawner::twin`]: what is left of a killed guard is told from the living by not having been started here.
#[derive(Debug)]
pub struct Spawner {
    guard: OsString,
    children: Arc<Children>,
    /// Where the values are that servers declare.
    secrets: Option<Arc<Store>>,
    /// Hides them in what servers say.
    veil: Arc<Veil>,
    /// The safe as it was when all its values were hidden, or could not be read.
    hidden: Arc<Mutex<Option<Mark>>>,
    /// What servers are told that their clients can be asked for; `None` while the one client is yet to say.
    abilities: watch::Sender<Option<Abilities>>,
    /// A variable by which the commands that are started here know who is above them.
    marker: Option<(&'static str, OsString)>,
}

/// The children of this process.
#[derive(Debug, Default)]
struct Children {
    /// Done when this process has become a subreaper.
    adopts: OnceLock<()>,
    living: Mutex<HashSet<Pid>>,
}

impl Spawner {
    /// `guard` is a binary that calls [`guard::run`] first of all: our own.
    pub fn new(guard: impl Into<OsString>) -> Arc<Spawner> {
        Spawner::with_secrets(guard, None)
    }

    /// The same, for servers that declare secrets.
    pub fn with_secrets(guard: impl Into<OsString>, secrets: Option<Arc<Store>>) -> Arc<Spawner> {
        let (guard, children) = (guard.into(), Arc::default());
        let (veil, hidden) = (Arc::default(), Arc::default());
        let abilities = watch::Sender::new(Some(Abilities::ALL));
        Arc::new(Spawner { guard, children, secrets, veil, hidden, abilities, marker: None })
    }

    /// The same, with a variable of the environment for all commands.
    pub fn marking(self: Arc<Self>, name: &'static str, value: OsString) -> Arc<Spawner> {
        Arc::new(Spawner { marker: Some((name, value)), ..self.copy() })
    }

    /// The same for another gateway in this process, which hears by itself of what is hidden. Two that know nothing of
    /// each other would take each other's children for leftovers.
    pub fn twin(&self) -> Arc<Spawner> {
        Arc::new(Spawner { veil: Arc::new(self.veil.twin()), ..self.copy() })
    }

    fn copy(&self) -> Spawner {
        Spawner {
            guard: self.guard.clone(),
            children: Arc::clone(&self.children),
            secrets: self.secrets.clone(),
            veil: Arc::clone(&self.veil),
            hidden: Arc::clone(&self.hidden),
            abilities: watch::Sender::new(Some(Abilities::ALL)),
            marker: self.marker.clone(),
        }
    }

    /// There is one client only, and servers are told what it can be asked for, once it has said so.
    pub fn expect_client(&self) {
        self.abilities.send_replace(None);
    }

    /// The expected client has said what it can be asked for.
    pub fn know_client(&self, abilities: Abilities) {
        self.abilities.send_if_modified(|known| {
            let is_news = known.is_none();
            known.get_or_insert(abilities);
            is_news
        });
    }

    /// What servers are told that their clients can be asked for: all that can be passed on, where there are several.
    pub(crate) async fn abilities(&self) -> Abilities {
        let mut known = self.abilities.subscribe();
        let said = timeout(CLIENT_WAIT_MAX, known.wait_for(Option::is_some)).await;
        said.ok().and_then(|said| *said.ok()?).unwrap_or(Abilities::ALL)
    }

    pub fn veil(&self) -> &Arc<Veil> {
        &self.veil
    }

    /// Hides all values that there are, also those that no server declares. Where the safe can't be opened,
    /// nobody is handed one either. If it has not changed since, that is a look at two files.
    pub async fn hide_secrets(&self) {
        let Some(store) = self.secrets().filter(|store| store.vault_file().exists()) else {
            return;
        };
        let (veil, hidden, mark) = (Arc::clone(&self.veil), Arc::clone(&self.hidden), store.mark());
        if *hidden.lock().unwrap_or_else(PoisonError::into_inner) == Some(mark) {
            return;
        }
        let learning = tokio::task::spawn_blocking(move || {
            match store.read() {
                Ok(contents) => veil.learn(&contents),
                Err(error) => tracing::debug!("the secrets can't be read: {error}"),
            }
            *hidden.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
        });
        // Deriving a key takes a while, but a keyring may wait for a person: that goes on beside.
        _ = timeout(SECRETS_WAIT_MAX, learning).await;
    }

    pub(crate) fn secrets(&self) -> Option<Arc<Store>> {
        self.secrets.clone()
    }

    /// Starts a server for whom a context tells of.
    pub fn start(self: &Arc<Self>, launch: &Launch, context: &Context) -> io::Result<Started> {
        match launch {
            Launch::Command(command) => self.start_command(command, context),
            Launch::Worker(worker) => self.start_worker(worker),
            Launch::Url(_) => Err(io::Error::other("it is not ours to start")),
            Launch::BuiltIn(BuiltIn(make)) => {
                let (reader, writer) = tokio::io::split(make());
                Ok(Started {
                    reader: Box::new(reader),
                    writer: Box::new(writer),
                    stderr: None,
                    process: None,
                    is_worker: false,
                })
            }
        }
    }

    fn start_command(
        self: &Arc<Self>,
        command: &Command,
        context: &Context,
    ) -> io::Result<Started> {
        let (program, args) = match &command.line {
            CommandLine::Shell(line) => ("/bin/sh", vec!["-c".into(), line.into()]),
            CommandLine::Direct { program, args } => {
                let filled = args.iter().map(|arg| OsString::from(arg.fill(context)));
                (program.as_str(), filled.collect())
            }
        };
        let mut guarded = guard::command(&self.guard, Terms::default(), program.as_ref(), &args);
        for name in OWN_SECRETS {
            guarded.env_remove(name);
        }
        guarded.envs(self.marker.clone());
        for (name, value) in &command.env {
            if value.secrets().next().is_some() {
                return Err(io::Error::other("a secret is not put in"));
            }
            guarded.env(name, value.fill(context));
        }
        if let Some(cwd) = &command.cwd {
            guarded.current_dir(cwd);
        }
        guarded.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = self.spawn(guarded)?;
        let child = &mut process.child;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(writer), Some(reader), Some(stderr)) = pipes else {
            return Err(io::Error::other("the pipes of the process are missing"));
        };
        Ok(Started {
            reader: Box::new(reader),
            writer: Box::new(writer),
            stderr: Some(Box::new(stderr)),
            process: Some(process),
            is_worker: false,
        })
    }

    /// Starts a worker: one socket, which is its stdin, for the protocol both ways; whatever its tools print goes
    /// to where stderr goes.
    fn start_worker(self: &Arc<Self>, worker: &Worker) -> io::Result<Started> {
        let (program, args) = worker.command_line();
        let confinement = worker.confinement.as_ref();
        let scratch = Some(worker.scratch.as_path());
        let terms = Terms { confinement, bounds: Some(worker.bounds), scratch };
        let mut guarded = guard::command(&self.guard, terms, program, &args);
        guarded.env_clear().envs(worker.environment()).current_dir(&worker.folder);
        let (ours, theirs) = StdUnixStream::pair()?;
        let (output, printed) = io::pipe()?;
        guarded.stdin(OwnedFd::from(theirs));
        guarded.stdout(printed.try_clone()?).stderr(printed);
        let process = self.spawn(guarded)?;
        let Bounds { processes_max, memory_bytes_max, disk_bytes_max } = worker.bounds;
        let means = if guard::has_groups() { "a control group" } else { "nothing else" };
        tracing::info!(
            namespace = worker.name,
            processes_max,
            memory_bytes_max,
            disk_bytes_max,
            "its processes are bounded by its guard and {means}"
        );
        ours.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        Ok(Started {
            reader: Box::new(reader),
            writer: Box::new(writer),
            stderr: Some(Box::new(pipe::Receiver::from_owned_fd(output.into())?)),
            process: Some(process),
            is_worker: true,
        })
    }

    fn spawn(self: &Arc<Self>, guarded: std::process::Command) -> io::Result<Process> {
        self.children.adopts.get_or_init(|| {
            if let Err(error) = set_child_subreaper(Some(getpid())) {
                tracing::warn!(%error, "is no subreaper; a killed guard may leave orphans");
            }
        });
        let mut guarded = tokio::process::Command::from(guarded);
        // Under the lock, so that a sweep never takes a newborn for a leftover.
        let mut living = self.children.living.lock().unwrap_or_else(PoisonError::into_inner);
        #[expect(clippy::disallowed_methods, reason = "the one place that starts processes")]
        let child = guarded.spawn()?;
        living.extend(pid_of(&child));
        Ok(Process { pid: pid_of(&child), child, spawner: Arc::clone(self) })
    }

    /// Kills what a guard that was itself killed has left behind.
    fn sweep(&self) {
        let living = self.children.living.lock().unwrap_or_else(PoisonError::into_inner);
        kill_children(|pid| living.contains(&pid));
    }

    fn forget(&self, pid: Option<Pid>) {
        let mut living = self.children.living.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = pid {
            living.remove(&pid);
        }
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

/// A guard with its server below.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Option<Pid>,
    spawner: Arc<Spawner>,
}

impl Process {
    /// Waits for the end of the server and says how it ended.
    pub async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        let Some(pid) = self.pid.take() else {
            return "ended".into();
        };
        self.spawner.forget(Some(pid));
        match status.as_ref().map(std::process::ExitStatus::code) {
            Ok(Some(code @ 129..=192)) => format!("was killed by signal {}", code - 128),
            Ok(Some(code)) => format!("ended with exit code {code}"),
            Ok(None) | Err(_) => {
                let spawner = Arc::clone(&self.spawner);
                _ = tokio::task::spawn_blocking(move || spawner.sweep()).await;
                "was killed together with its guard".into()
            }
        }
    }

    /// Ends the server, whose stdin is closed by now: with patience first, then without.
    pub async fn end(mut self) {
        if timeout(STDIN_CLOSE_GRACE, self.ended()).await.is_ok() {
            return;
        }
        self.signal(Signal::TERM);
        if timeout(GUARD_EXIT_MAX, self.ended()).await.is_ok() {
            return;
        }
        self.signal(Signal::KILL);
        self.ended().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid {
            _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guard ends its server and itself.
        self.signal(Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, CommandLine, OWN_SECRETS};
    use crate::template::Template;

    #[test]
    fn what_opens_our_own_doors_is_for_no_server() {
        for name in [
            "BEARER_TOKEN",
            "CORE_TOKEN",
            "SECRETS_KEY",
            "SECRETS_KEY_FD",
            "MANAGER_INTERNAL_TOKEN",
        ] {
            assert!(OWN_SECRETS.contains(&name), "{name}");
        }
    }

    #[test]
    fn values_and_arguments_of_a_command_are_never_shown() {
        let direct =
            CommandLine::Direct { program: "tool".into(), args: vec!["--key=hush".into()] };
        for (line, shown) in
            [(direct, "Direct(tool)"), (CommandLine::Shell("tool --key=hush".into()), "Shell")]
        {
            let env = vec![("API_KEY".into(), Template::from("hush"))];
            let command = Command { line, env, cwd: None };
            assert_eq!(
                format!("{command:?}"),
                format!(r#"Command {{ line: {shown}, env: ["API_KEY"], cwd: None }}"#)
            );
        }
    }
}
