//! SIGHUP: somebody wishes for a reload, or the terminal is gone.
//!
//! Which of the two it is, is told by whether there was a terminal and is none any more.

use std::fs::File;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::reload::Reloader;

/// The signals, from the moment on that they do not end this process any more.
pub struct Hangups {
    signals: Signal,
    /// Whether there was a terminal whose end is ours; `nohup` says that it is not.
    has_terminal: bool,
}

/// For whom it is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Whoever has typed the command: it ends with the terminal.
    Terminal,
    /// A client on stdin.
    Stdio,
    /// Anybody, for as long as nobody stops it.
    Service,
}

impl Hangups {
    pub fn listen() -> std::io::Result<Hangups> {
        let has_terminal = has_terminal() && !is_ignored();
        Ok(Hangups { signals: signal(SignalKind::hangup())?, has_terminal })
    }

    /// Does what each signal asks for, from now on.
    pub fn heed(
        mut self,
        served: Served,
        reloader: Option<Arc<Reloader>>,
        stop: CancellationToken,
    ) {
        tokio::spawn(async move {
            let mut reload = tokio::spawn(async {});
            while self.signals.recv().await.is_some() {
                let is_gone = self.has_terminal && !has_terminal();
                match reloader.clone() {
                    _ if is_gone && served != Served::Service => {
                        tracing::info!("the terminal is gone; stopping");
                        return stop.cancel();
                    }
                    // Not waited for: the next signal may be the end.
                    Some(reloader) => {
                        let former = reload;
                        reload = tokio::spawn(async move {
                            _ = former.await;
                            reloader.begin_reload().await;
                        });
                    }
                    None if served == Served::Stdio => return stop.cancel(),
                    None => tracing::warn!(
                        "SIGHUP reloads folders of Python tools, and none are served; start again to read a changed file"
                    ),
                }
            }
        });
    }
}

/// Whether this process has a controlling terminal.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Whether whoever started us has SIGHUP ignored, as `nohup` does.
fn is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal is the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 1)
}
