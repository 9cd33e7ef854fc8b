//! The chain: every line carries the hash of the one before.

use std::io::Write as _;
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA256, digest};
use mcp::text::hexadecimal;

use crate::calendar::moment;
use crate::entry::{Event, Line};
use crate::writer::Hide;

/// Where a chain ends: the next line goes on from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The position of the last line; 0 before the first.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
}

impl Default for Link {
    fn default() -> Link {
        Link { seq: 0, hash: "0".repeat(64) }
    }
}

impl Link {
    /// The link that a line makes, without its newline.
    pub fn of(line: &[u8]) -> Link {
        let seq = serde_json::from_slice::<Line>(line).map_or(0, |line| line.seq);
        Link { seq, hash: hash(line) }
    }

    /// Adds a line for an event to `out` and goes on behind it.
    pub fn add(&mut self, at: SystemTime, event: &Event<'_>, hide: &Hide, out: &mut Vec<u8>) {
        let (start, seq) = (out.len(), self.seq + 1);
        // Writing plain data to memory has no way to fail.
        _ = write!(out, r#"{{"seq":{seq},"prev":"{}","at":""#, self.hash);
        out.extend_from_slice(&moment(at));
        out.push(b'"');
        let brace = out.len();
        _ = serde_json::to_writer(&mut *out, event);
        if let Some(hidden) = hide(&out[brace..]) {
            out.truncate(brace);
            out.extend_from_slice(&hidden);
        }
        // The members of the event follow in the same object.
        out[brace] = b',';
        *self = Link { seq, hash: hash(&out[start..]) };
        out.push(b'\n');
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    hexadecimal(digest(&SHA256, bytes).as_ref())
}
