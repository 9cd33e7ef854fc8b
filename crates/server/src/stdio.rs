//! The stdio door: one client, one message a line, for as long as it keeps its end open.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use gateway::Gateway;
use gateway::auth::Caller;
use gateway::client::{Client, Outlet, Owner};
use gateway::dispatch::Request;
use mcp::lines::{Line, Lines};
use mcp::rpc::{self, Code, Message, Rejection};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::{
    FRAMES_MAX, MESSAGE_BYTES_MAX, REQUESTS_MAX, STDIN_DRAIN_MAX, WRITE_DRAIN_MAX,
};
use crate::reply;

/// Serves one client until it closes its end or `stop` is called.
pub async fn serve(
    gateway: Gateway,
    caller: Caller,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) {
    let client = gateway.connect(caller, Owner::Process);
    // Answers wait for a place in the queue; what upstreams say meanwhile does not.
    let (frames, queue) = mpsc::channel(FRAMES_MAX);
    let outlet = client.outlet(frames.clone());
    client.attach(outlet.clone());
    let writing = tokio::spawn(write_all(output, queue));
    let door = Door { gateway: gateway.clone(), client: Arc::clone(&client), frames, outlet };
    let mut under_way = JoinSet::new();
    let was_stopped = tokio::select! {
        () = door.read_all(input, &mut under_way, &writing) => false,
        () = stop.cancelled() => true,
    };
    if !was_stopped {
        // What was asked before the end is answered, if it does not take long.
        let all_answered = async { while under_way.join_next().await.is_some() {} };
        _ = timeout(STDIN_DRAIN_MAX, all_answered).await;
    }
    under_way.shutdown().await;
    gateway.disconnect(&client);
    drop(door);
    _ = timeout(WRITE_DRAIN_MAX, writing).await;
}

#[derive(Clone)]
struct Door {
    gateway: Gateway,
    client: Arc<Client>,
    frames: mpsc::Sender<Bytes>,
    outlet: Outlet,
}

impl Door {
    /// Reads until the client closes its end, or no longer takes answers.
    async fn read_all(
        &self,
        mut input: impl AsyncRead + Unpin,
        under_way: &mut JoinSet<()>,
        writing: &JoinHandle<()>,
    ) {
        let mut lines = Lines::new(MESSAGE_BYTES_MAX);
        loop {
            let read = input.read_buf(lines.buffer()).await;
            let at_end = !matches!(read, Ok(1..));
            while let Some(line) = if at_end { lines.last_line() } else { lines.next_line() } {
                while under_way.try_join_next().is_some() {}
                if under_way.len() >= REQUESTS_MAX {
                    under_way.join_next().await;
                }
                self.receive(line, under_way).await;
            }
            if at_end || writing.is_finished() {
                return;
            }
        }
    }

    async fn receive(&self, line: Line, under_way: &mut JoinSet<()>) {
        let rejected = match line {
            Line::Frame(frame) => match rpc::parse(&frame) {
                Ok(message) => return self.pass(message, under_way),
                Err(rejection) => rejection,
            },
            Line::TooLong { .. } => Rejection {
                code: Code::INVALID_REQUEST,
                reason: format!("the message is over {MESSAGE_BYTES_MAX} bytes"),
                id: None,
            },
        };
        _ = self.frames.send(reply::to_rejected(&rejected)).await;
    }

    fn pass(&self, message: Message, under_way: &mut JoinSet<()>) {
        match message {
            Message::Request { id, method, params } => {
                let door = self.clone();
                let mut work = Box::pin(door.answer(Request { id, method, params }));
                // What needs no waiting is answered here and now, so that answers keep the
                // order of the requests as far as they can.
                if (&mut work).now_or_never().is_none() {
                    under_way.spawn(work);
                }
            }
            Message::Notification { method, params } => {
                self.gateway.notice(&self.client, &method, params.as_ref());
            }
            Message::Response { id, outcome } => self.gateway.answer(&self.client, &id, outcome),
        }
    }

    async fn answer(self, request: Request) {
        let outcome = self.gateway.handle(&self.client, &request, &self.outlet).await;
        if let Some(frame) = reply::to_request(&request.id, &request.method, outcome) {
            _ = self.frames.send(frame).await;
        }
    }
}

/// Writes frames, many at a time, in the order in which they came.
async fn write_all(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Bytes>) {
    let mut frames = Vec::new();
    let mut buffer = Vec::new();
    while queue.recv_many(&mut frames, FRAMES_MAX).await > 0 {
        for frame in frames.drain(..) {
            buffer.extend_from_slice(&mcp::lines::one_line(frame));
            buffer.push(b'\n');
        }
        if output.write_all(&buffer).await.is_err() || output.flush().await.is_err() {
            return;
        }
        buffer.clear();
        buffer.shrink_to(64 * 1024);
    }
}
