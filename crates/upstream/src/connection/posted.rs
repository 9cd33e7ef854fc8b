//! Requests that are posted: answered in the task that makes them, as JSON or as a stream.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use mcp::lines::{Direction, guess_id};
use mcp::names::UpstreamName;
use mcp::rpc::{self, Message, Outcome};
use mcp::text::shorten;
use mcp::version::Era;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::incoming::{Source, is_like_an_answer, is_null, number};
use super::{Call, Connection, Listener, Loss, Wire};
use crate::answer::{Answer, Coming, Flow};
use crate::error::Error;
use crate::limits::{
    FAREWELL_MAX, HELD_BYTES_MAX, LAST_POSTS_MAX, LINE_BYTES_MAX, POST_TIMEOUT, POSTS_MAX,
    REOPEN_DELAY_MAX, REOPEN_DELAY_MIN, RESUME_DELAY_MIN, RESUMES_MAX, TIMEOUT_SETTING,
};
use crate::sse::{Decoder, Event, Remainder};
use crate::streamable::{Streamable, Terms};
use crate::web::{self, Body, Failure, Reply};

impl Connection {
    /// Starts a conversation over Streamable HTTP. Nothing is sent yet.
    pub fn open_posts(
        upstream: UpstreamName,
        http: Arc<Streamable>,
        listener: Listener,
    ) -> Connection {
        let wire = Wire::Posts(Arc::clone(&http));
        let (connection, queue) = Connection::new(upstream, wire, listener);
        tokio::spawn(post_all(http, queue));
        connection
    }

    /// Ends the session, if there is one.
    pub async fn say_farewell(&self) {
        if let Wire::Posts(http) = &self.0.wire
            && http.terms().has_session
        {
            _ = timeout(FAREWELL_MAX, http.delete()).await;
        }
    }

    pub(super) async fn call_posted(
        &self,
        http: &Streamable,
        call: &Call<'_>,
    ) -> Result<Answer, Error> {
        let ticket = self.admit(call, call.timeout)?;
        let id = ticket.id.to_string();
        let frame = rpc::request(&id, call.method, (call.params)(&id).as_deref());
        let answer = tokio::select! {
            biased;
            // Nothing but the end of its time, or of the conversation.
            over = self.settled(ticket.id) => return over.map(Answer::Whole),
            answer = self.exchange(http, ticket.id, call, &frame) => answer,
        };
        self.finish(ticket.id, answer.is_ok());
        answer
    }

    async fn exchange(
        &self,
        http: &Streamable,
        id: u64,
        call: &Call<'_>,
        frame: &Bytes,
    ) -> Result<Answer, Error> {
        let terms = http.terms();
        let response = http.post_call(&terms, call, frame).await;
        let response = response.map_err(|failure| self.failed(failure))?;
        if response.status != StatusCode::OK {
            let refused = Box::pin(self.refused(&terms, http, Some(id), response));
            return refused.await.map(Answer::Whole);
        }
        if call.method == "initialize" {
            http.keep_session(&response);
        }
        if response.is_event_stream {
            let body = response.body;
            return Box::pin(self.follow(http, &terms, (id, call), body)).await;
        }
        let mut body = response.body;
        let held_max = if call.may_come { HELD_BYTES_MAX } else { LINE_BYTES_MAX };
        let held = body.read_some(held_max).await;
        let held = held.map_err(|failure| self.failed(failure))?;
        let body = if body.is_over() {
            held
        } else if call.may_come {
            let flow = Flow { body, event: None };
            match Coming::begin(&self.0.upstream, id, &held, flow, call.timeout) {
                Ok(coming) => return Ok(Answer::Coming(Box::new(coming))),
                Err(Flow { mut body, .. }) => {
                    let whole = Box::pin(web::read_on(&mut body, held, LINE_BYTES_MAX)).await;
                    whole.map_err(|failure| self.failed(failure))?
                }
            }
        } else {
            return Err(self.failed(Failure::TooLarge));
        };
        match rpc::parse(&body) {
            Ok(Message::Response { id: theirs, outcome }) if number(&theirs) == Some(id) => {
                Ok(Answer::Whole(outcome))
            }
            Ok(Message::Response { id: theirs, outcome: outcome @ Outcome::Error(_) })
                if is_null(&theirs) =>
            {
                Ok(Answer::Whole(outcome))
            }
            Ok(_) => Err(self.garbled("it is a message that answers something else")),
            Err(rejection) => {
                // First hidden, then cut: half a value is one, too.
                let body = self.0.listener.veil.over_text(&body);
                let start = shorten(&String::from_utf8_lossy(&body[..body.len().min(400)]));
                Err(self.garbled(&format!("{} in `{start}`", rejection.reason)))
            }
        }
    }

    /// Reads the stream that answers a call, also where it goes on after a break.
    async fn follow(
        &self,
        http: &Streamable,
        terms: &Terms,
        (id, call): (u64, &Call<'_>),
        mut body: Body,
    ) -> Result<Answer, Error> {
        let mut decoder = Decoder::new(LINE_BYTES_MAX);
        let (mut resumes, mut may_come) = (0, call.may_come);
        loop {
            let reason = loop {
                match body.next().await {
                    Ok(Some(chunk)) => decoder.push(&chunk),
                    Ok(None) => break "it ended the stream".to_owned(),
                    Err(failure) => break self.failed(failure).to_string(),
                }
                while let Some(event) = decoder.next_event() {
                    resumes = 0;
                    if let Some(outcome) = self.take_event(id, event)? {
                        body.leave();
                        return Ok(Answer::Whole(outcome));
                    }
                }
                // What has passed can't be resumed, so what could be is held instead.
                may_come &= decoder.last_id().is_none();
                if may_come && let Some(start) = decoder.unfinished(HELD_BYTES_MAX) {
                    let flow = Flow { body, event: Some(Remainder::default()) };
                    match Coming::begin(&self.0.upstream, id, &start, flow, call.timeout) {
                        Ok(coming) => return Ok(Answer::Coming(Box::new(coming))),
                        Err(flow) => (may_come, body) = (false, flow.body),
                    }
                }
            };
            let is_resumable = terms.era == Era::Legacy && decoder.last_id().is_some();
            if !is_resumable || resumes >= RESUMES_MAX {
                let reason = format!("did not answer: {reason} too early");
                return Err(Error::Down { upstream: self.0.upstream.clone(), reason });
            }
            resumes += 1;
            let pause = decoder.retry().unwrap_or(REOPEN_DELAY_MIN);
            sleep(pause.clamp(RESUME_DELAY_MIN, REOPEN_DELAY_MAX)).await;
            let response = http.get(decoder.last_id()).await;
            let response = response.map_err(|failure| self.failed(failure))?;
            if response.status != StatusCode::OK || !response.is_event_stream {
                let refused = self.refused(terms, http, None, response).await;
                return refused.map(Answer::Whole).map_err(Connection::unanswered);
            }
            body = response.body;
            decoder.resume();
        }
    }

    /// The error of a call that was accepted: as it may have been carried out, it must not look
    /// as if it could be made again.
    fn unanswered(error: Error) -> Error {
        let Error::SessionLost { upstream } = error else { return error };
        let reason = "did not answer: it has forgotten the session, and perhaps done the work";
        Error::Down { upstream, reason: reason.into() }
    }

    fn take_event(&self, id: u64, event: Event) -> Result<Option<Outcome>, Error> {
        let data = match event {
            Event::Message { data, .. } => data,
            Event::TooLarge { .. } => return Err(self.failed(Failure::TooLarge)),
        };
        match rpc::parse(&data) {
            Ok(Message::Response { id: theirs, outcome }) if number(&theirs) == Some(id) => {
                return Ok(Some(outcome));
            }
            // It could not read the request, and so not its id.
            Ok(Message::Response { id: theirs, outcome: outcome @ Outcome::Error(_) })
                if is_null(&theirs) =>
            {
                return Ok(Some(outcome));
            }
            Ok(message) => self.take(message, &data, Source::Answer(id)),
            Err(rejection) => {
                let guess = || guess_id(&data, &data, Direction::Answer);
                let about = rejection.id.or_else(guess).and_then(|id| number(&id));
                if about == Some(id) || about.is_none() && is_like_an_answer(&data) {
                    return Err(self.garbled(&rejection.reason));
                }
                self.complain(&rejection.reason, &data);
            }
        }
        Ok(None)
    }

    /// What a status other than 200 means.
    async fn refused(
        &self,
        terms: &Terms,
        http: &Streamable,
        id: Option<u64>,
        mut response: Reply,
    ) -> Result<Outcome, Error> {
        let upstream = self.0.upstream.clone();
        let status = response.status;
        if let Some(destination) = web::redirect(http.web().url(), &response) {
            return Err(Error::Redirect { upstream, destination });
        }
        let body = web::read_refusal(&mut response.body).await;
        if terms.has_session && is_about_the_session(status, &body) {
            self.lose(Loss::Session);
            return Err(Error::SessionLost { upstream });
        }
        if let Ok(Message::Response { id: theirs, outcome: outcome @ Outcome::Error(_) }) =
            rpc::parse(&body)
            && id.is_some()
            && number(&theirs) == id
        {
            return Ok(outcome);
        }
        if status.is_success() {
            return Err(self.garbled(&format!("HTTP status {} without a message", status.as_u16())));
        }
        let said = web::shown(&self.0.listener.veil.over_text(&body));
        Err(Error::Status { upstream, status: status.as_u16(), said })
    }

    /// Posts what is no request and waits until it is accepted.
    pub(super) async fn post(&self, http: &Streamable, frame: Bytes) -> Result<(), Error> {
        let response = timeout(POST_TIMEOUT, http.post(&frame)).await;
        let Ok(response) = response else {
            let upstream = self.0.upstream.clone();
            let (waited, setting) = (POST_TIMEOUT, TIMEOUT_SETTING);
            return Err(Error::Timeout { upstream, waited, setting });
        };
        let response = response.map_err(|failure| self.failed(failure))?;
        // Some say 200 or 204 where 202 is meant.
        if response.status.is_success() {
            response.body.leave();
            return Ok(());
        }
        self.refused(&http.terms(), http, None, response).await.map(|_| ())
    }

    pub(super) fn failed(&self, failure: Failure) -> Error {
        let upstream = self.0.upstream.clone();
        match failure {
            Failure::Unreachable(reason) => {
                let reason = format!("can't be reached: {reason}");
                self.lose(Loss::Gone(reason.clone()));
                Error::Down { upstream, reason }
            }
            Failure::Broken(reason) => {
                Error::Down { upstream, reason: format!("broke the connection: {reason}") }
            }
            Failure::Malformed(fault) => Error::Malformed { upstream, reason: fault.to_string() },
            Failure::TooLarge => Error::TooLarge { upstream, limit: LINE_BYTES_MAX },
        }
    }

    fn garbled(&self, reason: &str) -> Error {
        Error::Garbled { upstream: self.0.upstream.clone(), reason: reason.to_owned() }
    }
}

/// Whether a refusal says that the session is unknown: by the status that is prescribed, or in
/// the words of a widespread library that uses another.
fn is_about_the_session(status: StatusCode, body: &Bytes) -> bool {
    let says_so = || {
        let text = String::from_utf8_lossy(body).to_ascii_lowercase();
        text.contains("-32000") && text.contains("session")
    };
    status == StatusCode::NOT_FOUND || status == StatusCode::BAD_REQUEST && says_so()
}

/// Posts what is queued, several at a time: one that waits must not hold up an answer.
async fn post_all(http: Arc<Streamable>, mut queue: mpsc::Receiver<Bytes>) {
    let mut posts = JoinSet::new();
    while let Some(frame) = queue.recv().await {
        // A modern server takes nothing but requests.
        if http.terms().era == Era::Modern {
            continue;
        }
        if posts.len() >= POSTS_MAX {
            posts.join_next().await;
        }
        let http = Arc::clone(&http);
        posts.spawn(async move { _ = timeout(POST_TIMEOUT, http.post(&frame)).await });
        while posts.try_join_next().is_some() {}
    }
    // The last may be the cancellation of a call.
    _ = timeout(LAST_POSTS_MAX, posts.join_all()).await;
}
