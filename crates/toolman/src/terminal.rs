//! Writing to the terminal, or to whatever stands in its place.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use gateway::Gateway;
use tokio::time::interval;
use upstream::supervisor::Phase;

use crate::log;

/// Writes to stdout. That its reader has gone away (`| head`) is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("can't write to stdout"))
        }
        _ => Ok(()),
    }
}

/// Writes a line to stderr.
pub fn complain(text: &str) {
    let text = [&log::hidden(text.as_bytes())[..], b"\n"].concat();
    _ = std::io::stderr().lock().write_all(&text);
}

/// Whether colours are welcome on stderr.
pub fn has_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Waits until all servers are there, also those that nobody needs.
pub async fn wait_for_all(gateway: &Gateway) {
    gateway.wake_all();
    wait_until_ready(gateway).await;
}

/// Waits until the gateway is ready; a terminal is shown for whom.
pub async fn wait_until_ready(gateway: &Gateway) {
    let ready = gateway.ready();
    tokio::pin!(ready);
    if !std::io::stderr().is_terminal() {
        return ready.await;
    }
    let mut ticks = interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            () = &mut ready => break,
            _ = ticks.tick() => show_progress(gateway),
        }
    }
    _ = write!(std::io::stderr().lock(), "\r\x1b[K");
}

fn show_progress(gateway: &Gateway) {
    let starting = |phase: &Phase| matches!(phase, Phase::Starting);
    let (waiting, settled): (Vec<_>, Vec<_>) =
        gateway.upstreams().partition(|(_, upstream)| starting(&upstream.status().phase));
    let names: Vec<_> = waiting.iter().map(|(_, upstream)| upstream.name().as_str()).collect();
    let total = waiting.len() + settled.len();
    let line =
        format!("starting servers: {} of {total}; waiting for {}", settled.len(), names.join(", "));
    let line: String = line.chars().take(78).collect();
    _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
}
