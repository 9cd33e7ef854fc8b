//! Streamable HTTP as each revision wants it: which header fields every request carries.
//!
//! A session is a header field here; when one begins and ends is its connection's matter.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Uri};
use mcp::headers;
use mcp::version::{Era, Revision};

use crate::connection::Call;
use crate::remote::{Remote, Url};
use crate::web::{Failure, Fields, Reply, Request, SESSION_ID, Web, target};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const ANY_ANSWER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OURSELVES: HeaderValue =
    HeaderValue::from_static(concat!("toolman/", env!("CARGO_PKG_VERSION")));

/// The way to one server.
pub struct Streamable {
    web: Web,
    /// What every request carries before anything is agreed upon.
    plain: HeaderMap,
    terms: ArcSwap<Terms>,
    session: Mutex<Option<HeaderValue>>,
}

/// What is agreed upon.
pub struct Terms {
    pub era: Era,
    pub has_session: bool,
    fields: Fields,
}

impl Streamable {
    pub fn new(remote: &Remote) -> Result<Arc<Streamable>, String> {
        let web = Web::new(&remote.url)?;
        let mut plain = web.headers();
        plain.extend([(USER_AGENT, OURSELVES), (ACCEPT, ANY_ANSWER), (CONTENT_TYPE, JSON)]);
        plain.extend(remote.headers.map().clone());
        let fields = Fields::new(plain.clone());
        let terms = Terms { era: Era::Legacy, has_session: false, fields };
        Ok(Arc::new(Streamable {
            web,
            plain,
            terms: ArcSwap::from_pointee(terms),
            session: Mutex::default(),
        }))
    }

    pub fn web(&self) -> &Web {
        &self.web
    }

    pub fn terms(&self) -> Arc<Terms> {
        self.terms.load_full()
    }

    /// Speaks as this revision demands from now on; before a handshake as `None` does.
    pub fn speak(&self, revision: Option<Revision>) {
        let mut headers = self.plain.clone();
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let era = revision.map_or(Era::Legacy, Revision::era);
        if revision.is_none() || era == Era::Modern {
            *session = None;
        }
        if let Some(revision) = revision.filter(|revision| revision.is_named_in_headers()) {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        if let Some(session) = &*session {
            headers.insert(SESSION_ID, session.clone());
        }
        let (has_session, fields) = (session.is_some(), Fields::new(headers));
        self.terms.store(Arc::new(Terms { era, has_session, fields }));
    }

    /// Keeps the session that the answer to a handshake opens.
    pub fn keep_session(&self, reply: &Reply) {
        let session = reply.session.as_ref().and_then(|id| HeaderValue::from_bytes(id).ok());
        let session = session.map(|mut session| {
            session.set_sensitive(true);
            session
        });
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Posts a request.
    pub async fn post_call(
        &self,
        terms: &Terms,
        call: &Call<'_>,
        frame: &Bytes,
    ) -> Result<Reply, Failure> {
        let more = match terms.era {
            Era::Legacy => Vec::new(),
            Era::Modern => describe(call),
        };
        self.send(Method::POST, self.web.target(), &terms.fields, &more, frame).await
    }

    /// Posts what is no request.
    pub async fn post(&self, frame: &Bytes) -> Result<Reply, Failure> {
        let terms = self.terms();
        self.send(Method::POST, self.web.target(), &terms.fields, &[], frame).await
    }

    /// Posts any message to a place that the server has named.
    pub async fn post_to(&self, url: &Url, frame: &Bytes) -> Result<Reply, Failure> {
        let terms = self.terms();
        self.send(Method::POST, &target(url), &terms.fields, &[], frame).await
    }

    /// Opens a stream of events, or one again from where it broke off.
    pub async fn get(&self, last_id: Option<&Bytes>) -> Result<Reply, Failure> {
        let mut headers = self.terms.load().fields.map.clone();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, EVENT_STREAM);
        if let Some(last_id) = last_id.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            headers.insert(LAST_EVENT_ID, last_id);
        }
        let fields = Fields::new(headers);
        self.send(Method::GET, self.web.target(), &fields, &[], &Bytes::new()).await
    }

    /// Ends the session.
    pub async fn delete(&self) -> Result<Reply, Failure> {
        let terms = self.terms();
        self.send(Method::DELETE, self.web.target(), &terms.fields, &[], &Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        target: &Uri,
        fields: &Fields,
        more: &[(HeaderName, HeaderValue)],
        body: &Bytes,
    ) -> Result<Reply, Failure> {
        self.web.send(&Request { method, target, fields, more, body }).await
    }
}

/// Says in header fields what the body says, so that intermediaries need not read it.
fn describe(call: &Call<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let mut fields = Vec::with_capacity(2 + call.mirrored.len());
    if let Ok(method) = HeaderValue::from_str(call.method) {
        fields.push((METHOD, method));
    }
    if let Some(name) = call.subject.filter(|_| headers::named_by(call.method).is_some())
        && let Ok(name) = HeaderValue::try_from(headers::encode(name))
    {
        fields.push((NAME, name));
    }
    for (name, value) in call.mirrored {
        let name = HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(headers::encode(value))) {
            fields.push((name, value));
        }
    }
    fields
}
