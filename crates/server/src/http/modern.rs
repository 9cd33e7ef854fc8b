//! Requests of the modern era at `/mcp`: each stands alone and says in itself what it needs.
//!
//! What its headers say must be what it says; the answer ends when its client leaves.

use std::future::ready;

use gateway::answer::Answer;
use gateway::error::{Class, Error};
use gateway::outbox;
use gateway::place::Place;
use gateway::request::{Request, Terms};
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use mcp::headers;
use mcp::rpc::{self, Code, Outcome};
use mcp::version::Revision;

use super::checks::Proof;
use super::endpoint::Endpoint;
use super::events::{self, Body};
use super::exchange::{Refused, Streaming, Work, first_of, json, plain, replied, stream};
use super::head::{Field, Head, text_of};
use crate::reply::Reply;

impl Endpoint {
    pub(super) async fn post_alone(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
        request: Request,
    ) -> Result<Response<Body>, Refused> {
        head.check_accept(Revision::NEWEST_MODERN)?;
        // What a tool wants in headers is known when its upstream is there.
        self.gateway.awake().await;
        let client = self.principal(proof, place, request.client());
        let mirrored = self.gateway.mirrored(&client, &request);
        if let Err(problem) = check_headers(head, &request, &mirrored) {
            let object = rpc::error_object(Code::HEADER_MISMATCH, &problem, None);
            let frame = rpc::error(Some(&request.id), object.as_bytes());
            return Ok(json(StatusCode::BAD_REQUEST, frame));
        }
        let (outbox, mut queue) = outbox::channel();
        let streaming = head.streaming();
        let outlet = client.outlet_for(&request, outbox).taking_pieces(streaming.takes_pieces());
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        let mut work: Work = Box::pin(async move {
            let answer = gateway.handle(&client, &request, &outlet).await;
            (status(&answer), Reply::new(&request, answer))
        });
        if streaming == Streaming::Refused {
            drop(queue);
            return Ok(plain(work, under_way).await);
        }
        let first = match first_of(&mut queue, &mut work).await {
            Ok(first) => Some(first),
            // The status says what went wrong, so an error is never streamed alone.
            Err((StatusCode::OK, reply)) if streaming == Streaming::Preferred => {
                work = Box::pin(ready((StatusCode::OK, reply)));
                None
            }
            Err((status, reply)) => return Ok(replied(status, reply, under_way)),
        };
        Ok(stream(events::live(first, queue, work).with(under_way)))
    }
}

/// Whether the headers say what the message says; the error is what does not fit.
fn check_headers(
    head: &Head<'_>,
    request: &Request,
    mirrored: &[(String, Option<String>)],
) -> Result<(), String> {
    // What is broken is refused for that.
    let Terms::Own(envelope) = &request.terms else { return Ok(()) };
    expect("mcp-protocol-version", head.protocol, &envelope.version)?;
    expect("mcp-method", head.mcp_method, &request.method)?;
    if headers::named_by(&request.method).is_some()
        && let Some(subject) = request.subject_name()
    {
        expect("mcp-name", head.mcp_name, subject)?;
    }
    for (name, value) in mirrored {
        let field = visible(name, Field::find(head.fields, name))?;
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

fn expect(name: &str, field: Field<'_>, value: &str) -> Result<(), String> {
    let found = visible(name, field)?;
    if found == Some(value) && headers::is_plain(value) {
        return Ok(());
    }
    let found = found.and_then(headers::decode);
    if found.as_deref() == Some(value) {
        return Ok(());
    }
    let state = if found.is_some() { "says something else than" } else { "must repeat" };
    Err(format!("the header `{name}` {state} the message"))
}

/// The one value of a field.
fn visible<'h>(name: &str, field: Field<'h>) -> Result<Option<&'h str>, String> {
    if field.is_repeated {
        return Err(format!("the header `{name}` is there twice"));
    }
    let read = |value: &'h HeaderValue| {
        let value = text_of(value).ok_or_else(|| format!("the header `{name}` can't be read"))?;
        Ok(value.trim_matches([' ', '\t']))
    };
    field.value().map(read).transpose()
}

/// The status that the revision prescribes for an outcome.
fn status(answer: &Result<Answer, Error>) -> StatusCode {
    match answer {
        Ok(Answer::Whole(Outcome::Error(error))) => match error.members(["code"]) {
            Ok([Some("-32601")]) => StatusCode::NOT_FOUND,
            Ok([Some("-32020" | "-32021" | "-32022")]) => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        },
        Ok(_) => StatusCode::OK,
        Err(error) => match error.class() {
            Class::Method => StatusCode::NOT_FOUND,
            Class::Envelope | Class::Revision | Class::Capability | Class::Protocol => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        },
    }
}
