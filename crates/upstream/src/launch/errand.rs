//! An errand: a program that is run to its end, under a guard, with bounds on its time and on what it says.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{Process, Spawner};
use crate::confine::Confinement;
use crate::guard::{self, Terms};

/// What is to be run.
#[derive(Debug)]
pub struct Errand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// All of its environment.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// What it gives up before it runs, if anything.
    pub confinement: Option<Confinement>,
    /// What it reads.
    pub input: Vec<u8>,
    pub time_max: Duration,
    /// How much of each of its outputs is kept.
    pub output_bytes_max: usize,
}

/// What became of it.
#[derive(Debug)]
pub struct Ended {
    /// How it ended, in words.
    pub how: String,
    pub is_success: bool,
    /// Whether it was ended because its time was over.
    pub is_late: bool,
    pub output: Vec<u8>,
    pub errors: String,
}

impl Spawner {
    /// Runs a program to its end, or to the end of its time; it is ended too if this is dropped.
    pub async fn run(self: &Arc<Self>, errand: Errand) -> std::io::Result<Ended> {
        self.run_until(errand, std::future::pending()).await
    }

    /// The same, but it is ended as soon as `objection` is there, which says why.
    pub async fn run_until(
        self: &Arc<Self>,
        errand: Errand,
        objection: impl Future<Output = String>,
    ) -> std::io::Result<Ended> {
        let (program, args) = (errand.program.as_os_str(), &errand.args);
        let terms = Terms { confinement: errand.confinement.as_ref(), ..Terms::default() };
        let mut guarded = guard::command(&self.guard, terms, program, args);
        guarded.env_clear().envs(errand.env).current_dir(&errand.cwd);
        guarded.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut held = Held(Some(self.spawn(guarded)?));
        let Some(process) = &mut held.0 else {
            return Err(std::io::Error::other("the process is missing"));
        };
        let child = &mut process.child;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(std::io::Error::other("the pipes of the process are missing"));
        };
        let max = errand.output_bytes_max;
        let input = errand.input;
        let writing = async move {
            // One that does not read on has its reasons.
            _ = stdin.write_all(&input).await;
        };
        let all = async {
            let (output, errors, ()) = tokio::join!(kept(stdout, max), kept(stderr, max), writing);
            (process.ended().await, output, errors)
        };
        let done = tokio::select! {
            done = timeout(errand.time_max, all) => {
                done.map_err(|_| (format!("did not end within {:?}", errand.time_max), true))
            }
            why = objection => Err((why, false)),
        };
        match done {
            Ok((how, output, errors)) => {
                held.0 = None;
                Ok(Ended {
                    is_success: how == "ended with exit code 0",
                    is_late: false,
                    how,
                    output,
                    errors: String::from_utf8_lossy(&errors).into_owned(),
                })
            }
            Err((how, is_late)) => {
                if let Some(process) = held.0.take() {
                    process.end().await;
                }
                let (output, errors) = (Vec::new(), String::new());
                Ok(Ended { how, is_success: false, is_late, output, errors })
            }
        }
    }
}

/// A process that is ended in order, also if nobody waits for it any more.
struct Held(Option<Process>);

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(process), Ok(here)) = (self.0.take(), Handle::try_current()) {
            here.spawn(process.end());
        }
    }
}

/// The first bytes of an output; the rest is read and dropped.
async fn kept(mut output: impl AsyncRead + Unpin, bytes_max: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = output.read(&mut chunk).await {
        let room = bytes_max.saturating_sub(all.len());
        all.extend_from_slice(&chunk[..count.min(room)]);
    }
    all
}
