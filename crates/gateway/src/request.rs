//! A request of a client: what it is about, and by which rules it is made.

use bytes::Bytes;
use mcp::json::Fault;
use mcp::modern::Envelope;
use mcp::params::{Params, subject_of};
use mcp::rpc::Raw;
use mcp::version::Era;

use crate::error::Error;

/// A request of a client, its parameters read once.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: Raw,
    pub method: String,
    pub params: Option<Raw>,
    pub terms: Terms,
    /// The parameters with what they are about, where the method has such.
    subject: Option<Result<Params, Fault>>,
}

/// By which rules a request is made.
#[derive(Clone, Debug)]
pub enum Terms {
    /// Those that the client's handshake has settled.
    Handshake,
    /// Its own: it says in itself who asks, and what for.
    Own(Envelope),
    /// It means to bring its own, but they can't be used.
    Broken(Fault),
}

impl Request {
    /// A request as its parameters say it is meant.
    pub fn new(id: Raw, method: String, params: Option<Raw>) -> Request {
        let read = subject_of(&method).map(|key| Params::read(params.as_ref(), key));
        let (subject, envelope) = match (read, &params) {
            (Some(Ok((subject, envelope))), _) => (Some(Ok(subject)), envelope),
            (read, Some(params)) => {
                let meta = params.members(["_meta"]).ok().and_then(|[meta]| meta);
                let envelope = meta.and_then(|meta| Envelope::find(params, meta));
                (read.map(|read| read.map(|(subject, _)| subject)), envelope)
            }
            (read, None) => (read.map(|read| read.map(|(subject, _)| subject)), None),
        };
        let terms = match envelope {
            None => Terms::Handshake,
            Some(Ok(envelope)) => Terms::Own(envelope),
            Some(Err(fault)) => Terms::Broken(fault),
        };
        Request { id, method, params, terms, subject }
    }

    /// A request by the rules of a session, whatever its parameters say.
    pub fn in_session(self) -> Request {
        Request { terms: Terms::Handshake, ..self }
    }

    /// A request that is known to bring its own terms.
    ///
    /// One that may be under way for long gets memory of its own: what it was read from holds
    /// room that others need.
    pub fn alone(self) -> Request {
        let copy = |raw: Raw| Raw::trusted(Bytes::copy_from_slice(raw.as_bytes()));
        if self.method == "subscriptions/listen" {
            let params = self.params.map(copy);
            let terms = Terms::of(params.as_ref());
            return Request { id: copy(self.id), params, terms, ..self };
        }
        let terms = match self.terms {
            Terms::Handshake => Terms::of(self.params.as_ref()),
            terms => terms,
        };
        Request { terms, ..self }
    }

    /// What the request is about.
    pub(crate) fn subject(&self, method: &'static str) -> Result<&Params, Error> {
        match &self.subject {
            Some(Ok(subject)) => Ok(subject),
            Some(Err(fault)) => Err(Error::Params { method, fault: fault.clone() }),
            None => Err(Error::Method(self.method.clone())),
        }
    }

    /// The name or URI of what the request is about, if it says so.
    pub fn subject_name(&self) -> Option<&str> {
        Some(self.subject.as_ref()?.as_ref().ok()?.name())
    }

    /// What the client calls itself, where the request says it.
    pub fn client(&self) -> Option<&str> {
        let Terms::Own(envelope) = &self.terms else { return None };
        std::str::from_utf8(envelope.client.as_ref()?.as_bytes()).ok()
    }

    pub fn era(&self) -> Era {
        match self.terms {
            Terms::Handshake => Era::Legacy,
            Terms::Own(_) | Terms::Broken(_) => Era::Modern,
        }
    }
}

impl Terms {
    /// The terms of a request that brings its own.
    pub fn of(params: Option<&Raw>) -> Terms {
        Envelope::parse(params).map_or_else(Terms::Broken, Terms::Own)
    }
}
