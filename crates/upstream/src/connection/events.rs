//! The transport of 2024-11-05: a stream of events in, POSTs out.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use mcp::json;
use mcp::names::UpstreamName;
use mcp::rpc::{self, Message};
use mcp::text::shorten;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Connection, Listener, Loss, Wire, number};
use crate::conversation::Problem;
use crate::error::Error;
use crate::limits::{ENDPOINT_TIMEOUT, LINE_BYTES_MAX, POST_TIMEOUT, POSTS_MAX, TIMEOUT_SETTING};
use crate::remote::Url;
use crate::sse::{Decoder, Event};
use crate::streamable::Streamable;
use crate::web::{self, Body, Failure, Reply};

impl Connection {
    /// Opens the stream and waits until the server has said where to post to.
    pub async fn open_events(
        upstream: UpstreamName,
        http: Arc<Streamable>,
        listener: Listener,
    ) -> Result<Connection, Problem> {
        let opening = async {
            let response = http.get(None).await.map_err(problem)?;
            if response.status != StatusCode::OK || !response.is_event_stream {
                let status = response.status.as_u16();
                return Err(Problem::Status { method: "GET".into(), status, said: String::new() });
            }
            let mut body = response.body;
            let mut decoder = Decoder::new(LINE_BYTES_MAX);
            let endpoint = find_endpoint(&mut body, &mut decoder).await?;
            let endpoint = http.web().url().join(&endpoint).ok_or_else(|| {
                Problem::Unusable(format!(
                    "it sends us to another origin, `{}`",
                    shorten(&endpoint)
                ))
            })?;
            Ok((body, decoder, endpoint))
        };
        let silent = |_| Problem::Silent { method: "GET".into(), waited: ENDPOINT_TIMEOUT };
        let (body, decoder, endpoint) =
            timeout(ENDPOINT_TIMEOUT, opening).await.map_err(silent)??;
        let (connection, queue) = Connection::new(upstream, Wire::Queue, listener);
        tokio::spawn(post_all(connection.clone(), http, endpoint, queue));
        connection.0.reading.spawn(read_events(connection.clone(), body, decoder));
        connection.0.reading.close();
        Ok(connection)
    }
}

impl Connection {
    /// Fails the call whose request was not accepted: no answer to it will come.
    async fn note_posted(&self, frame: &Bytes, posted: Option<Posted>) {
        let upstream = self.0.upstream.clone();
        let error = match posted {
            Some(Ok(response)) if response.status.is_success() => {
                return response.body.leave();
            }
            Some(Ok(mut response)) => {
                let body = web::read_refusal(&mut response.body).await;
                let said = web::shown(&self.0.listener.veil.over_text(&body));
                Error::Status { upstream, status: response.status.as_u16(), said }
            }
            Some(Err(failure)) => self.failed(failure),
            None => Error::Timeout { upstream, waited: POST_TIMEOUT, setting: TIMEOUT_SETTING },
        };
        if let Ok(Message::Request { id, .. }) = rpc::parse(frame)
            && let Some(id) = number(&id)
        {
            self.settle(id, Err(error));
        }
    }
}

type Posted = Result<Reply, Failure>;

async fn find_endpoint(body: &mut Body, decoder: &mut Decoder) -> Result<String, Problem> {
    loop {
        while let Some(event) = decoder.next_event() {
            match event {
                Event::Message { name, data } if name == "endpoint" => {
                    return Ok(String::from_utf8_lossy(&data).into_owned());
                }
                _ => {}
            }
        }
        match body.next().await.map_err(problem)? {
            Some(chunk) => decoder.push(&chunk),
            None => return Err(Problem::Unusable("it does not say where to post to".into())),
        }
    }
}

fn problem(failure: Failure) -> Problem {
    match failure {
        Failure::Unreachable(reason) => Problem::Gone(format!("can't be reached: {reason}")),
        Failure::Broken(reason) => Problem::Lost(reason),
        Failure::Malformed(fault) => Problem::Lost(fault.to_string()),
        Failure::TooLarge => Problem::Unusable("its stream is over the bound".into()),
    }
}

/// Reads until the stream ends, which is the end of the conversation, or until it is closed.
async fn read_events(connection: Connection, mut body: Body, mut decoder: Decoder) {
    let closed = connection.0.closed.clone();
    let reading = async {
        loop {
            while let Some(event) = decoder.next_event() {
                match event {
                    Event::Message { data, .. } => connection.receive(&data),
                    Event::TooLarge { head } => connection.receive_oversized(&head, b""),
                }
            }
            match body.next().await {
                Ok(Some(chunk)) => decoder.push(&chunk),
                Ok(None) => return "has ended its stream".to_owned(),
                Err(failure) => return connection.failed(failure).to_string(),
            }
        }
    };
    tokio::select! {
        reason = reading => connection.lose(Loss::Gone(reason)),
        () = closed.cancelled() => {}
    }
}

/// Posts what is queued, several at a time, until the conversation is over.
///
/// What follows a notification waits until that is taken: a request that overtakes
/// `notifications/initialized` is refused, and ends the session of some servers.
async fn post_all(
    connection: Connection,
    http: Arc<Streamable>,
    endpoint: Url,
    mut queue: mpsc::Receiver<Bytes>,
) {
    let mut posts = JoinSet::new();
    let closed = connection.0.closed.clone();
    let posting = async {
        while let Some(frame) = queue.recv().await {
            if posts.len() >= POSTS_MAX {
                posts.join_next().await;
            }
            let (connection, http) = (connection.clone(), Arc::clone(&http));
            let endpoint = endpoint.clone();
            let is_notification = matches!(json::members(&frame, ["id"]), Ok([None]));
            let post = async move {
                let posted = timeout(POST_TIMEOUT, http.post_to(&endpoint, &frame)).await;
                connection.note_posted(&frame, posted.ok()).await;
            };
            if is_notification {
                post.await;
            } else {
                posts.spawn(post);
            }
            while posts.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = posting => {}
        () = closed.cancelled() => {}
    }
}
