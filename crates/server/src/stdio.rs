//! The stdio door: one client, one message a line, for as long as it keeps its end open.

pub mod refusal;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use gateway::Gateway;
use gateway::auth::Caller;
use gateway::client::{Client, Outlet, Owner};
use gateway::limits::BATCH_BYTES;
use gateway::outbox::{self, Outbox, OutboxQueue};
use gateway::place::Place;
use gateway::request::Request;
use mcp::lines::{Direction, Line, Lines, guess_id};
use mcp::rpc::{self, Code, Message, Rejection};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::{
    MESSAGE_BYTES_MAX, REQUESTS_MAX, STDIN_DRAIN_MAX, STOP_DRAIN_MAX, WRITE_DRAIN_MAX,
    WRITE_STALL_MAX,
};
use crate::{batch, reply};

/// Serves one client until it closes its end or `stop` is called.
pub async fn serve(
    gateway: Gateway,
    caller: Caller,
    place: &Place,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) {
    let client = gateway.connect(caller, Owner::Process, place);
    let (outbox, queue) = outbox::channel();
    let outlet = client.outlet(outbox.clone());
    client.attach(outlet.clone());
    let mut writing = tokio::spawn(write_all(output, queue));
    let door = Door {
        gateway: gateway.clone(),
        client: Arc::clone(&client),
        outbox,
        outlet: outlet.clone(),
    };
    let mut under_way = JoinSet::new();
    let was_stopped = tokio::select! {
        () = door.read_all(input, &mut under_way) => false,
        () = stop.cancelled() => true,
        // The client takes no more answers.
        _ = &mut writing => true,
    };
    // What would never end by itself ends in good order.
    client.hurry();
    let patience = if was_stopped { STOP_DRAIN_MAX } else { STDIN_DRAIN_MAX };
    let all_answered = async { while under_way.join_next().await.is_some() {} };
    _ = timeout(patience, all_answered).await;
    under_way.shutdown().await;
    gateway.disconnect(&client);
    drop((door, outlet));
    if !writing.is_finished() {
        _ = timeout(WRITE_DRAIN_MAX, writing).await;
    }
}

#[derive(Clone)]
struct Door {
    gateway: Gateway,
    client: Arc<Client>,
    outbox: Outbox,
    outlet: Outlet,
}

impl Door {
    /// Reads until the client closes its end, and no faster than it takes its answers.
    async fn read_all(&self, mut input: impl AsyncRead + Unpin, under_way: &mut JoinSet<()>) {
        let mut lines = Lines::new(MESSAGE_BYTES_MAX);
        loop {
            let read = input.read_buf(lines.buffer()).await;
            let at_end = !matches!(read, Ok(1..));
            while let Some(line) = if at_end { lines.last_line() } else { lines.next_line() } {
                while under_way.try_join_next().is_some() {}
                if under_way.len() >= REQUESTS_MAX {
                    under_way.join_next().await;
                }
                self.outbox.has_room().await;
                self.receive(line, under_way).await;
            }
            if at_end {
                return;
            }
        }
    }

    async fn receive(&self, line: Line, under_way: &mut JoinSet<()>) {
        let (mut rejection, ends) = match line {
            Line::Frame(frame) => match rpc::parse(&frame) {
                Ok(message) => return self.pass(message, under_way),
                Err(rejection) => match batch::of(&self.client, &frame) {
                    Some(messages) => {
                        under_way.spawn(self.clone().answer_batch(messages));
                        return;
                    }
                    None => (rejection, (frame.clone(), frame)),
                },
            },
            Line::TooLong { head, tail } => {
                let reason = format!("the message is over {MESSAGE_BYTES_MAX} bytes");
                (Rejection { code: Code::INVALID_REQUEST, reason, id: None }, (head, tail))
            }
        };
        // A request that goes unanswered would keep the client waiting.
        let guess = || guess_id(&ends.0, &ends.1, Direction::Request);
        rejection.id = rejection.id.or_else(guess);
        self.outbox.send(reply::to_rejected(&rejection)).await;
    }

    fn pass(&self, message: Message, under_way: &mut JoinSet<()>) {
        let Some(request) = self.gateway.take(&self.client, message) else { return };
        let mut work = Box::pin(self.clone().answer(request));
        // What needs no waiting is answered here and now, so that answers keep the order of the
        // requests as far as they can.
        if (&mut work).now_or_never().is_none() {
            under_way.spawn(work);
        }
    }

    async fn answer_batch(self, messages: Vec<Bytes>) {
        let array = batch::answer(&self.gateway, &self.client, &self.outlet, messages).await;
        if let Some(array) = array {
            self.outbox.send(array).await;
        }
    }

    async fn answer(self, request: Request) {
        let answer = self.gateway.handle(&self.client, &request, &self.outlet).await;
        if let Some(frame) = reply::unless_cancelled(&request, answer).await {
            self.outbox.send(frame).await;
        }
    }
}

/// Writes what is queued, in that order. A client that takes nothing for long is given up.
async fn write_all(mut output: impl AsyncWrite + Unpin, mut queue: OutboxQueue) {
    let mut lines = Vec::new();
    while queue.recv_lines(&mut lines).await {
        let written = async {
            output.write_all(&lines).await?;
            output.flush().await
        };
        if !matches!(timeout(WRITE_STALL_MAX, written).await, Ok(Ok(()))) {
            return;
        }
        lines.clear();
        lines.shrink_to(BATCH_BYTES);
    }
}
