//! The reading half of a conversation: answers, and what the server says by itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use mcp::json;
use mcp::lines::{Direction, Line, Lines, guess_id};
use mcp::rpc::{self, Code, Message, Outcome, Raw};
use mcp::version::Era;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::audience::{Audience, Utterance};
use super::{Connection, Heard, OpenAsk, State, Waiting, Wire};
use crate::error::Error;
use crate::limits::{ASK_TIMEOUT, ASKS_MAX, LINE_BYTES_MAX};
use crate::python::protocol;
use crate::relay::{Ask, Upcall, Who};

/// Reads until the server closes its end.
pub(super) async fn read_all(connection: Connection, mut reader: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    while let Ok(1..) = reader.read_buf(lines.buffer()).await {
        while let Some(line) = lines.next_line() {
            match line {
                Line::Frame(frame) => connection.receive(&frame),
                Line::TooLong { head, tail } => connection.receive_oversized(&head, &tail),
            }
        }
    }
}

/// Where a message came from, which may tell for whom it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// On the way that all messages share.
    Shared,
    /// On the answer to this call.
    Answer(u64),
}

impl Connection {
    pub(super) fn receive(&self, frame: &Bytes) {
        if let Wire::Worker = self.0.wire {
            return self.receive_from_worker(frame);
        }
        // Some runtimes begin their output with a byte order mark.
        let frame = &frame.slice(if frame.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }..);
        match rpc::parse(frame) {
            Ok(message) => self.take(message, frame, Source::Shared),
            Err(rejection) => {
                self.complain(&rejection.reason, frame);
                let guess = || guess_id(frame, frame, Direction::Answer);
                let is_broken = rejection.code == Code::PARSE && is_like_an_answer(frame);
                let about = rejection.id.or_else(guess).and_then(|id| number(&id));
                let about = about.or_else(|| self.only_call().filter(|_| is_broken));
                if let Some(id) = about {
                    let upstream = self.0.upstream.clone();
                    self.settle(id, Err(Error::Garbled { upstream, reason: rejection.reason }));
                }
            }
        }
    }

    pub(super) fn take(&self, message: Message, frame: &Bytes, source: Source) {
        match message {
            Message::Response { id, outcome: outcome @ Outcome::Error(_) } if is_null(&id) => {
                // It could not read the request, and so not its id.
                match self.only_call() {
                    Some(id) => _ = self.settle(id, Ok(outcome)),
                    None => self.complain("it is an error about nothing that was asked", frame),
                }
            }
            Message::Response { id, outcome } => {
                if !number(&id).is_some_and(|id| self.settle(id, Ok(outcome))) {
                    self.complain("it answers nothing that was asked", frame);
                }
            }
            Message::Request { ref method, .. } | Message::Notification { ref method, .. } => {
                if self.0.listener.veil.is_off() {
                    return self.hear(message, frame, source);
                }
                let hidden = self.veiled(Raw::trusted(frame.clone()), method).map(Bytes::from);
                match hidden.and_then(|frame| Some((rpc::parse(&frame).ok()?, frame))) {
                    Some((message, frame)) => self.hear(message, &frame, source),
                    None => self.complain("it holds the value of a secret", frame),
                }
            }
        }
    }

    /// The call under way, if there is only one.
    fn only_call(&self) -> Option<u64> {
        let state = self.state();
        let mut open = state.calls.iter().filter(|(_, call)| call.is_open());
        let (id, _) = open.next()?;
        open.next().is_none().then_some(*id)
    }

    /// Takes what the server says by itself.
    fn hear(&self, message: Message, frame: &Bytes, source: Source) {
        match message {
            Message::Request { .. } if self.era() == Era::Modern => {
                self.complain("a server of the modern era must not ask", frame);
            }
            Message::Request { id, method, params } => {
                self.receive_ask(id, method, params, source);
            }
            Message::Notification { method, params } => {
                self.receive_notice(&method, params, frame, source);
            }
            Message::Response { .. } => {}
        }
    }

    /// What the server says by itself, without the values of secrets; `None` if nothing is left.
    pub(super) fn veiled(&self, said: Raw, method: &str) -> Option<Raw> {
        self.0.listener.veil.over_raw(said, self.saying(method))
    }

    /// Warns of what a server should not send: of the first few, then at 8, 16, 32, … of them.
    pub(super) fn complain(&self, problem: &str, frame: &[u8]) {
        let so_far = self.0.complaints.fetch_add(1, Ordering::Relaxed) + 1;
        if so_far <= 5 || so_far.is_power_of_two() {
            // First hidden, then cut: half a value is one, too.
            let frame = self.0.listener.veil.over_text(frame);
            let start = String::from_utf8_lossy(&frame[..frame.len().min(80)]).into_owned();
            tracing::warn!(upstream = %self.0.upstream, line = %start.escape_debug(),
                so_far, "dropped a line: {problem}");
        }
    }

    pub(super) fn receive_oversized(&self, head: &[u8], tail: &[u8]) {
        let upstream = self.0.upstream.clone();
        tracing::warn!(%upstream, "dropped a line of over {LINE_BYTES_MAX} bytes");
        if let Some(id) = guess_id(head, tail, Direction::Answer).and_then(|id| number(&id)) {
            self.settle(id, Err(Error::TooLarge { upstream, limit: LINE_BYTES_MAX }));
        }
    }

    pub(super) fn receive_notice(
        &self,
        method: &str,
        params: Option<Raw>,
        frame: &Bytes,
        source: Source,
    ) {
        match method {
            "notifications/progress" => self.relay_progress(params.as_ref()),
            "notifications/cancelled" => self.cancel_ask(params.as_ref()),
            "notifications/tools/list_changed" => self.note_change("tools"),
            "notifications/resources/list_changed" => self.note_change("resources"),
            "notifications/prompts/list_changed" => self.note_change("prompts"),
            "notifications/resources/updated" => {
                if let Some(params) = params {
                    (self.0.listener.hear)(Heard::Updated(params));
                }
            }
            "notifications/subscriptions/acknowledged" => {}
            _ => {
                let notice = Upcall::Notice(frame.clone());
                match self.audience(source, Utterance::Notice) {
                    Audience::One(relay) => _ = (relay.deliver)(notice),
                    Audience::Nobody => (self.0.listener.hear)(Heard::Upcall(notice)),
                    Audience::Several => (self.0.listener.hear)(Heard::Unattributed),
                }
            }
        }
    }

    /// Passes progress on to the client that asked for it, under its own token.
    pub(super) fn relay_progress(&self, params: Option<&Raw>) {
        let Some(params) = params else { return };
        let Ok([Some(token)]) = params.members(["progressToken"]) else { return };
        let (relay, own) = {
            let mut state = self.state();
            let call = token.parse().ok().and_then(|id: u64| state.calls.get_mut(&id));
            let Some(call) = call else { return };
            let deadline = call.put_off(call.timeout);
            let found = (call.relay.clone(), call.progress_token.clone());
            self.watch(&mut state, deadline);
            found
        };
        if let (Some(relay), Some(own)) = (relay, own) {
            let span = json::span(params.as_bytes(), token);
            let params = json::splice(params.as_bytes(), &[(span, own.as_bytes())]);
            let notice = rpc::notification("notifications/progress", Some(&params));
            _ = (relay.deliver)(Upcall::Notice(notice));
        }
    }

    pub(super) fn receive_ask(&self, id: Raw, method: String, params: Option<Raw>, source: Source) {
        if method == "ping" {
            return self.respond(&id, &Outcome::Result(Raw::trusted("{}")));
        }
        if self.state().asks.len() >= ASKS_MAX {
            return self.respond(&id, &refusal("too many requests wait for an answer"));
        }
        let (answer, answered) = oneshot::channel();
        let mut asked = None;
        let notices = self.0.outgoing.clone();
        let ask = Upcall::Ask(Ask { method: method.clone(), params, answer, notices });
        match self.audience(source, Utterance::Question) {
            Audience::One(relay) => {
                if (relay.deliver)(ask) {
                    self.set_deadlines_of(&mut self.state(), relay.who, Some(ASK_TIMEOUT));
                    asked = Some(relay.who);
                }
                (self.0.listener.hear)(Heard::Asked { is_known: true });
            }
            Audience::Nobody => (self.0.listener.hear)(Heard::Upcall(ask)),
            Audience::Several => {
                (self.0.listener.hear)(Heard::Asked { is_known: false });
                return self.respond(&id, &refusal(&unattributed(&method)));
            }
        }
        let connection = self.clone();
        let ask_id = id.clone();
        let mut state = self.state();
        let waiter = tokio::spawn(async move {
            let outcome = match timeout(ASK_TIMEOUT, answered).await {
                Ok(Ok(outcome)) => outcome,
                _ => refusal(&format!("no client could answer `{method}`")),
            };
            connection.close_ask(&ask_id);
            connection.respond(&ask_id, &outcome);
        });
        state.asks.insert(id, OpenAsk { waiter: waiter.abort_handle(), client: asked });
    }

    /// The server no longer wants an answer; dropping the waiter tells the client's side.
    fn cancel_ask(&self, params: Option<&Raw>) {
        let Some(Ok([Some(id)])) = params.map(|params| params.members(["requestId"])) else {
            return;
        };
        let id = Raw::trusted(Bytes::copy_from_slice(id.as_bytes()));
        if let Some(ask) = self.close_ask(&id) {
            ask.waiter.abort();
        }
    }

    pub(super) fn respond(&self, id: &Raw, outcome: &Outcome) {
        let frame = match outcome {
            outcome if matches!(self.0.wire, Wire::Worker) => protocol::answered(id, outcome),
            Outcome::Result(result) => rpc::result(id, result.as_bytes()),
            Outcome::Error(error) => rpc::relayed_error(id, error.as_bytes()),
        };
        _ = self.0.outgoing.try_send(frame);
    }

    pub(crate) fn note_change(&self, capability: &'static str) {
        self.state().changed.insert(capability);
        self.0.changed.notify_one();
    }
}

impl Connection {
    /// Forgets a request of the server, and gives the calls of the client that was asked their
    /// own time again, unless it is still asked something else.
    pub(super) fn close_ask(&self, id: &Raw) -> Option<OpenAsk> {
        let mut state = self.state();
        let ask = state.asks.remove(id)?;
        if let Some(client) = ask.client
            && !state.asks.values().any(|other| other.client == Some(client))
        {
            self.set_deadlines_of(&mut state, client, None);
        }
        Some(ask)
    }

    /// While a person is asked, the calls that wait for the answer do not run out of time;
    /// afterwards (`None`) each has its own time again.
    fn set_deadlines_of(&self, state: &mut State, client: Who, extended: Option<Duration>) {
        let is_clients = |call: &Waiting| call.relay.as_ref().is_some_and(|r| r.who == client);
        let calls = state.calls.values_mut().filter(|call| is_clients(call));
        let deadlines = calls.map(|call| call.put_off(extended.unwrap_or(call.timeout)));
        if let Some(earliest) = deadlines.min() {
            self.watch(state, earliest);
        }
    }
}

pub(super) fn refusal(reason: &str) -> Outcome {
    Outcome::Error(rpc::error_object(Code::METHOD_NOT_FOUND, reason, None))
}

fn unattributed(method: &str) -> String {
    format!(
        "several clients share this server, so it is not known which of them `{method}` is for; call the tool again"
    )
}

/// Our id; some servers give it back as text, or as a number with a point.
pub(crate) fn number(id: &Raw) -> Option<u64> {
    let text = std::str::from_utf8(id.as_bytes()).ok()?.trim_matches('"');
    text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok())
}

pub(super) fn is_null(id: &Raw) -> bool {
    id.as_bytes() == b"null"
}

/// Whether what can't be read was rather meant to answer something than printed by mistake.
pub(super) fn is_like_an_answer(frame: &[u8]) -> bool {
    let has = |key: &str| memchr::memmem::find(frame, key.as_bytes()).is_some();
    has("\"jsonrpc\"") && !has("\"method\"")
}
