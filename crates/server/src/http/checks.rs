//! What every HTTP request must show before it is looked at: host, origin, token.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use gateway::auth::{Caller, Credentials, Keys, is_same_secret};
use gateway::client::Client;
use gateway::place::Place;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};

use super::cors::CrossOrigin;
use super::head::{Field, Head};

pub struct Checks {
    pub keys: Keys,
    /// Whether only this machine is served: then only its names are, and those that are listed.
    pub is_local: bool,
    /// Hosts that are served, with or without a port. None: all, unless it is local.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, as a browser writes them; `*` is any.
    pub origins: Vec<String>,
}

impl Checks {
    /// Refuses requests for foreign hosts and from foreign origins with a status.
    ///
    /// A page in the user's browser may reach us under a foreign name (DNS rebinding), so only
    /// names of this machine are served.
    pub fn check_source(&self, head: &Head<'_>) -> Result<(), StatusCode> {
        let host = head.named_host().map(|host| std::str::from_utf8(host).unwrap_or_default());
        let Some(host) = host else { return Err(StatusCode::BAD_REQUEST) };
        let is_open = !self.is_local && self.hosts.is_empty();
        if !is_open && !is_this_machine(host) && !self.lists_host(host) {
            return Err(StatusCode::FORBIDDEN);
        }
        if let Some(origin) = head.origin.value() {
            let origin = origin.to_str().unwrap_or_default();
            let name = origin.split_once("://").map_or("", |(_, host)| host);
            let is_own = is_this_machine(name) || !self.is_local && name == host;
            if !is_own && !self.lists_origin(origin) {
                return Err(StatusCode::FORBIDDEN);
            }
        }
        Ok(())
    }

    /// Whether pages of some other origins may read answers.
    pub fn serves_pages(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The origin of a request, if it is one that was allowed by name.
    pub fn cross_origin(&self, head: &Head<'_>) -> Option<CrossOrigin> {
        let origin = head.origin.value()?;
        let is_allowed = origin.to_str().is_ok_and(|origin| self.lists_origin(origin))
            && self.check_source(head).is_ok();
        is_allowed.then(|| CrossOrigin {
            origin: origin.clone(),
            is_preflight: head.method == Method::OPTIONS && head.asks_for_method,
        })
    }

    fn lists_host(&self, host: &str) -> bool {
        let name = without_port(host);
        self.hosts
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name))
    }

    fn lists_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed == "*" || listed.eq_ignore_ascii_case(origin))
    }

    /// Who sends the request, if it shows a token.
    pub fn prove(&self, head: &Head<'_>, address: Option<IpAddr>) -> Option<Arc<Proof>> {
        let caller = self.keys.prove(Credentials {
            authorization: head.authorization.text(),
            agent: head.agent.once(),
            client: head.client.once(),
            permissions: head.permissions.once(),
            address,
        })?;
        Some(Arc::new(Proof {
            host: head.named_host().map(Into::into),
            token: head.authorization.value()?.as_bytes().into(),
            claims: claims(head).map(|claim| claim.map(Into::into)),
            caller,
            standing: OnceLock::new(),
            principal: OnceLock::new(),
        }))
    }
}

/// What a request of a connection has shown; the next one mostly shows the same.
pub struct Proof {
    host: Option<Box<[u8]>>,
    token: Box<[u8]>,
    claims: [Option<Box<[u8]>>; 3],
    pub caller: Caller,
    /// What its first request has asked for, and where that led.
    standing: OnceLock<Standing>,
    /// The client that the caller is by its first request that stood alone.
    pub principal: OnceLock<Known>,
}

/// A client, with the place of its requests and its `clientInfo` in them.
pub struct Known {
    pub place: Place,
    pub info: Option<Box<str>>,
    pub client: Arc<Client>,
}

/// A place as a caller may see it, by what was asked for.
pub struct Standing {
    base: Place,
    asked: Asked<Box<[u8]>>,
    place: Place,
    /// How often upstreams had been exchanged by then: afterwards it may lead elsewhere.
    exchanges: u64,
}

/// What a request says of its place: in its path, its query, and four header fields.
type Asked<T> = [Option<T>; 6];

/// What a path names, and the header field that a client may say something in for servers of its own.
#[derive(Clone, Copy)]
pub struct Ways<'h> {
    pub toolset: Option<&'h str>,
    pub context: Option<&'h str>,
}

fn asked<'h>(head: &Head<'h>, ways: Ways<'h>) -> Asked<&'h [u8]> {
    let context = ways.context.map(|name| Field::find(head.fields, name));
    [
        ways.toolset.map(str::as_bytes),
        head.uri.query().map(str::as_bytes),
        told(head.namespace),
        told(head.toolsets),
        told(head.tools),
        context.and_then(told),
    ]
}

impl Proof {
    /// Where a request that asks for the same has led.
    pub fn place(
        &self,
        base: &Place,
        head: &Head<'_>,
        ways: Ways<'_>,
        exchanges: u64,
    ) -> Option<Place> {
        let known = self.standing.get()?;
        let is_same = known.exchanges == exchanges
            && known.base == *base
            && known.asked.each_ref().map(Option::as_deref) == asked(head, ways);
        is_same.then(|| known.place.clone())
    }

    /// Keeps where a request has led, if it is the first.
    pub fn keep_place(
        &self,
        base: Place,
        head: &Head<'_>,
        ways: Ways<'_>,
        place: Place,
        exchanges: u64,
    ) {
        let asked = asked(head, ways).map(|part| part.map(Into::into));
        _ = self.standing.set(Standing { base, asked, place, exchanges });
    }

    /// Whether a request shows the same, so that it needs no closer look.
    pub fn holds_for(&self, head: &Head<'_>) -> bool {
        // Several clients may share a connection, so that none may guess what another has shown.
        let is_token = |shown: &HeaderValue| is_same_secret(shown.as_bytes(), &self.token);
        head.origin.value().is_none()
            && head.named_host() == self.host.as_deref()
            && claims(head) == self.claims.each_ref().map(Option::as_deref)
            && head.authorization.value().is_some_and(is_token)
    }
}

/// What a request says of its caller.
fn claims<'h>(head: &Head<'h>) -> [Option<&'h [u8]>; 3] {
    [told(head.agent), told(head.client), told(head.permissions)]
}

fn told(field: Field<'_>) -> Option<&[u8]> {
    let value = field.value().map(HeaderValue::as_bytes);
    if field.is_repeated { Some(&b""[..]) } else { value }
}

impl fmt::Debug for Proof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Proof")
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = without_port(host);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use gateway::auth::Keys;
    use hyper::Request;
    use hyper::header::{HOST, ORIGIN};

    use super::{Checks, is_this_machine};
    use crate::http::head::Head;

    #[track_caller]
    fn check(hosts: &[&str], host: &'static str, origin: Option<&'static str>, is_served: bool) {
        let checks = Checks {
            keys: Keys::new("s3cret"),
            is_local: false,
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            origins: Vec::new(),
        };
        let mut request = Request::builder().uri("/mcp").header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let source = checks.check_source(&Head::of(&parts));
        assert_eq!(source.is_ok(), is_served, "{host} {origin:?}");
    }

    #[test]
    fn door_that_others_can_reach_serves_every_host_unless_some_are_named() {
        check(&[], "gateway.example", None, true);
        check(&[], "gateway.example", Some("https://gateway.example"), true);
        check(&[], "gateway.example", Some("https://evil.example"), false);
        check(&["gateway.example"], "gateway.example:8000", None, true);
        check(&["gateway.example"], "127.0.0.1:8000", None, true);
        check(&["gateway.example"], "evil.example", None, false);
        check(&["gateway.example:443"], "gateway.example", None, false);
    }

    #[test]
    fn only_names_of_this_machine_are_served() {
        for host in
            ["127.0.0.1:8000", "127.0.0.2", "localhost", "LOCALHOST:1", "[::1]:8000", "[::1]"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "", "[::2]:1"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
