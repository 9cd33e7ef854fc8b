//! Starting a server: a command under its guard, or one that is built in.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, Once, PoisonError};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use crate::context::{Context, Template};
use crate::guard;
use crate::limits::{GUARD_EXIT_MAX, STDIN_CLOSE_GRACE};
use crate::processes::kill_children;
use crate::remote::Remote;

/// Variables that are meant for us: a server that had them could call all others.
const OWN_SECRETS: [&str; 1] = ["BEARER_TOKEN"];

/// How a server is started.
#[derive(Clone, Debug)]
pub enum Launch {
    Command(Command),
    BuiltIn(BuiltIn),
    /// It runs already, elsewhere.
    Url(Remote),
}

/// A command with its surroundings. Shown by names only: values and arguments may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub line: CommandLine,
    /// Added to our own environment.
    pub env: Vec<(String, Template)>,
    pub cwd: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq)]
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
                env.iter().map(|(_, value)| value).chain(args).all(Template::is_plain)
            }
            Launch::BuiltIn(_) => true,
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

impl fmt::Debug for BuiltIn {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("BuiltIn")
    }
}

/// A started server.
pub struct Started {
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub stderr: Option<ChildStderr>,
    pub process: Option<Process>,
}

/// Starts processes and sees to it that none is left over.
///
/// The process that owns one becomes a subreaper and must start children in no other way: what
/// is left of a killed guard is told from the living by not having been started here.
#[derive(Debug)]
pub struct Spawner {
    guard: OsString,
    /// Done when this process has become a subreaper.
    adopts: Once,
    living: Mutex<HashSet<Pid>>,
}

impl Spawner {
    /// `guard` is a binary that calls [`guard::run`] first of all: our own.
    pub fn new(guard: impl Into<OsString>) -> Arc<Spawner> {
        Arc::new(Spawner { guard: guard.into(), adopts: Once::new(), living: Mutex::default() })
    }

    /// Starts a server for whom a context tells of.
    pub fn start(self: &Arc<Self>, launch: &Launch, context: &Context) -> std::io::Result<Started> {
        match launch {
            Launch::Command(command) => self.start_command(command, context),
            Launch::Url(_) => Err(std::io::Error::other("it is not ours to start")),
            Launch::BuiltIn(BuiltIn(make)) => {
                let (reader, writer) = tokio::io::split(make());
                Ok(Started {
                    reader: Box::new(reader),
                    writer: Box::new(writer),
                    stderr: None,
                    process: None,
                })
            }
        }
    }

    fn start_command(
        self: &Arc<Self>,
        command: &Command,
        context: &Context,
    ) -> std::io::Result<Started> {
        self.adopts.call_once(|| {
            if let Err(error) = set_child_subreaper(Some(getpid())) {
                tracing::warn!(%error, "is no subreaper; a killed guard may leave orphans");
            }
        });
        let (program, args) = match &command.line {
            CommandLine::Shell(line) => ("/bin/sh", vec!["-c".into(), line.into()]),
            CommandLine::Direct { program, args } => {
                let filled = args.iter().map(|arg| OsString::from(arg.fill(context)));
                (program.as_str(), filled.collect())
            }
        };
        let mut guarded = guard::command(&self.guard, program.as_ref(), &args);
        for name in OWN_SECRETS {
            guarded.env_remove(name);
        }
        guarded.envs(command.env.iter().map(|(name, value)| (name, value.fill(context))));
        if let Some(cwd) = &command.cwd {
            guarded.current_dir(cwd);
        }
        guarded.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guarded = tokio::process::Command::from(guarded);
        let mut child = {
            // Under the lock, so that a sweep never takes a newborn for a leftover.
            let mut living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
            #[expect(clippy::disallowed_methods, reason = "the one place that starts processes")]
            let child = guarded.spawn()?;
            living.extend(pid_of(&child));
            child
        };
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(writer), Some(reader), stderr) = pipes else {
            return Err(std::io::Error::other("the pipes of the process are missing"));
        };
        Ok(Started {
            reader: Box::new(reader),
            writer: Box::new(writer),
            stderr,
            process: Some(Process { pid: pid_of(&child), child, spawner: Arc::clone(self) }),
        })
    }

    /// Kills what a guard that was itself killed has left behind.
    fn sweep(&self) {
        let living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
        kill_children(|pid| living.contains(&pid));
    }

    fn forget(&self, pid: Option<Pid>) {
        let mut living = self.living.lock().unwrap_or_else(PoisonError::into_inner);
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
    use super::{Command, CommandLine};

    #[test]
    fn values_and_arguments_of_a_command_are_never_shown() {
        let direct =
            CommandLine::Direct { program: "tool".into(), args: vec!["--key=hush".into()] };
        for (line, shown) in
            [(direct, "Direct(tool)"), (CommandLine::Shell("tool --key=hush".into()), "Shell")]
        {
            let env = vec![("API_KEY".into(), "hush".into())];
            let command = Command { line, env, cwd: None };
            assert_eq!(
                format!("{command:?}"),
                format!(r#"Command {{ line: {shown}, env: ["API_KEY"], cwd: None }}"#)
            );
        }
    }
}
