//! Running other programs quietly: what they print is kept, and shown only when they fail.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a program did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// There is no such program on this machine.
    Missing { program: String },
    /// The program could not be started.
    Unstarted { program: String, problem: io::Error },
    /// The program ran and said no; `output` is what it printed.
    Failed { typed: String, output: String },
}

/// Runs a program in `directory` and returns what it printed on stdout.
///
/// `lock` becomes its stdin. So the lock is held until the last child ends, even when this program
/// is killed above it, and no later run begins while an orphan still writes.
pub fn run(command: &mut Command, directory: &Path, lock: &File) -> Result<String, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let unstarted = |problem: io::Error| match problem.kind() {
        io::ErrorKind::NotFound => Failure::Missing { program: program.clone() },
        _ => Failure::Unstarted { program: program.clone(), problem },
    };
    let stdin = lock.try_clone().map_err(unstarted)?;
    let output =
        command.current_dir(directory).stdin(Stdio::from(stdin)).output().map_err(unstarted)?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Failed { typed: typed(command), output: format!("{stdout}{stderr}") })
}

/// The command as one would type it.
fn typed(command: &Command) -> String {
    let mut typed = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        typed.push(' ');
        typed.push_str(&argument.to_string_lossy());
    }
    typed
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Missing { program } => {
                write!(f, "`{program}` was not found; install it, or add it to PATH")
            }
            Failure::Unstarted { program, problem } => {
                write!(f, "cannot start `{program}`: {problem}")
            }
            Failure::Failed { typed, output } => {
                write!(f, "`{typed}` failed and said:\n{}", output.trim_end())
            }
        }
    }
}
