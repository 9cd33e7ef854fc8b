//! Requests of the modern era at `/mcp`: each stands alone and says in itself what it needs.
//!
//! What its headers say must be what it says; the answer ends when its client leaves.

use std::future::ready;

use gateway::auth::Caller;
use gateway::dispatch::{Request, Terms};
use gateway::error::{Class, Error};
use gateway::outbox;
use gateway::place::Place;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use mcp::headers;
use mcp::json as text;
use mcp::modern;
use mcp::rpc::{self, Code, Message, Outcome};
use mcp::version::{Era, Revision};

use super::endpoint::{Endpoint, VERSION};
use super::events::{self, Body};
use super::exchange::{
    Refused, Streaming, Work, check_accept, empty, first_of, json, plain, refuse, stream,
};
use crate::reply;

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Whether a message is to be taken for one of the modern era.
pub fn is_meant(headers: &HeaderMap, message: &Message) -> bool {
    let params = match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params.as_ref(),
        Message::Response { .. } => None,
    };
    is_named(headers) || modern::is_modern(params)
}

/// Whether the header names a revision of the modern era.
pub fn is_named(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
    version.and_then(Revision::parse).is_some_and(|version| version.era() == Era::Modern)
}

impl Endpoint {
    pub(super) async fn post_alone(
        &self,
        caller: &Caller,
        place: &Place,
        headers: &HeaderMap,
        message: Message,
    ) -> Result<Response<Body>, Refused> {
        check_accept(headers, Revision::NEWEST_MODERN)?;
        let (id, method, params) = match message {
            Message::Request { id, method, params } => (id, method, params),
            // Nothing that is under way can be spoken of here: it ends when its stream does.
            Message::Notification { .. } => return Ok(empty(StatusCode::ACCEPTED)),
            Message::Response { .. } => {
                return refuse(StatusCode::BAD_REQUEST, "nobody has asked for this answer");
            }
        };
        let terms = Terms::of(params.as_ref());
        let request = Request { id, method, params, terms }.detached();
        // What a tool wants in headers is known when its upstream is there.
        self.gateway.awake().await;
        let client = self.gateway.principal(caller, place);
        let mirrored = self.gateway.mirrored(&client, &request);
        if let Err(problem) = check_headers(headers, &request, &mirrored) {
            let object = rpc::error_object(Code::HEADER_MISMATCH, &problem, None);
            let frame = rpc::error(Some(&request.id), object.as_bytes());
            return Ok(json(StatusCode::BAD_REQUEST, frame));
        }
        let (outbox, mut queue) = outbox::channel();
        let outlet = client.outlet(outbox);
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        let mut work: Work = Box::pin(async move {
            let outcome = gateway.handle(&client, &request, &outlet).await;
            let status = status(&outcome);
            drop(under_way);
            (status, reply::to_request(&request, outcome))
        });
        let streaming = Streaming::wanted(headers);
        if streaming == Streaming::Refused {
            drop(queue);
            return Ok(plain(work).await);
        }
        let first = match first_of(&mut queue, &mut work).await {
            Ok(first) => Some(first),
            // The status says what went wrong, so an error is never streamed alone.
            Err((StatusCode::OK, frame)) if streaming == Streaming::Preferred => {
                work = Box::pin(ready((StatusCode::OK, frame)));
                None
            }
            Err((status, frame)) => return Ok(json(status, frame)),
        };
        Ok(stream(events::live(first, queue, work)))
    }
}

/// Whether the headers say what the message says; the error is what does not fit.
fn check_headers(
    headers: &HeaderMap,
    request: &Request,
    mirrored: &[(String, Option<String>)],
) -> Result<(), String> {
    // What is broken is refused for that.
    let Terms::Own(envelope) = &request.terms else { return Ok(()) };
    expect(headers, VERSION, &envelope.version)?;
    expect(headers, METHOD, &request.method)?;
    if let Some(key) = headers::named_by(&request.method)
        && let Some(Ok([Some(subject)])) =
            request.params.as_ref().map(|params| params.members([key]))
        && let Some(subject) = text::string(subject)
    {
        expect(headers, NAME, &subject)?;
    }
    for (name, value) in mirrored {
        let field = field(headers, name)?;
        let is_same = match (field, value) {
            (None, None) => true,
            (Some(field), Some(value)) => headers::matches(field, value),
            _ => false,
        };
        if !is_same {
            return Err(format!("the header `{name}` must say what the argument says"));
        }
    }
    Ok(())
}

fn expect(headers: &HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let found = field(headers, name)?.and_then(headers::decode);
    if found.as_deref() == Some(value) {
        return Ok(());
    }
    let state = if found.is_some() { "says something else than" } else { "must repeat" };
    Err(format!("the header `{name}` {state} the message"))
}

/// The one value of a header.
fn field<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(format!("the header `{name}` is there twice"));
    }
    let visible = |value: &'h hyper::header::HeaderValue| {
        let value = value.to_str().map_err(|_| format!("the header `{name}` can't be read"))?;
        Ok(value.trim_matches([' ', '\t']))
    };
    first.map(visible).transpose()
}

/// The status that the revision prescribes for an outcome.
fn status(outcome: &Result<Outcome, Error>) -> StatusCode {
    match outcome {
        Ok(Outcome::Error(error)) => match error.members(["code"]) {
            Ok([Some("-32601")]) => StatusCode::NOT_FOUND,
            Ok([Some("-32020" | "-32021" | "-32022")]) => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        },
        Ok(Outcome::Result(_)) => StatusCode::OK,
        Err(error) => match error.class() {
            Class::Method => StatusCode::NOT_FOUND,
            Class::Envelope | Class::Revision | Class::Capability | Class::Protocol => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        },
    }
}
