//! The last words of a server: the tail of its stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use mcp::names::UpstreamName;
use mcp::text::tame;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::limits::{STDERR_BYTES_KEPT, STDERR_BYTES_SHOWN};

/// The tail, shared by who reads and who shows it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// Keeps reading until the end.
    pub async fn follow(self, upstream: UpstreamName, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            tracing::debug!(%upstream, text = %String::from_utf8_lossy(&chunk[..count]), "stderr");
            let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&chunk[..count]);
            let excess = tail.len().saturating_sub(STDERR_BYTES_KEPT);
            tail.drain(..excess);
        }
    }

    /// All that is kept.
    pub fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last lines, fit for an error: bounded, without control characters.
    pub fn last_words(&self) -> String {
        let text = self.text();
        let from = text.len().saturating_sub(STDERR_BYTES_SHOWN);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let lines: Vec<_> = text[from..].lines().map(tame).collect();
        lines.join("\n").trim().to_owned()
    }
}
