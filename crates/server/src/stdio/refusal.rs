//! The stdio door of a Toolman that can't serve: every request gets the reason.
//!
//! A process that only ends leaves its client with a closed pipe and no words.

use mcp::lines::{Direction, Line, Lines, guess_id};
use mcp::rpc::{self, Message, Raw};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::limits::{MESSAGE_BYTES_MAX, REFUSAL_MAX};

/// Answers every request with `error` until the client closes its end, but not for ever.
pub async fn refuse(error: &Raw, input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin) {
    // A client that is gone can't be told.
    _ = timeout(REFUSAL_MAX, answer_all(error, input, output)).await;
}

async fn answer_all(
    error: &Raw,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let mut lines = Lines::new(MESSAGE_BYTES_MAX);
    while input.read_buf(lines.buffer()).await? > 0 {
        while let Some(line) = lines.next_line() {
            if let Some(id) = id_of(&line) {
                output.write_all(&rpc::error(Some(&id), error.as_bytes())).await?;
                output.write_all(b"\n").await?;
                output.flush().await?;
            }
        }
    }
    Ok(())
}

/// The id of a request, if it is one.
fn id_of(line: &Line) -> Option<Raw> {
    match line {
        Line::Frame(frame) => match rpc::parse(frame) {
            Ok(Message::Request { id, .. }) => Some(id),
            Ok(Message::Notification { .. } | Message::Response { .. }) => None,
            Err(rejection) => rejection.id,
        },
        Line::TooLong { head, tail } => guess_id(head, tail, Direction::Request),
    }
}
