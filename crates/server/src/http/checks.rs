//! What every HTTP request must show before it is looked at: host, origin, token.

use std::net::IpAddr;

use gateway::auth::{BearerToken, Caller};
use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, StatusCode, Uri};

use super::cors::CrossOrigin;

pub struct Checks {
    pub token: BearerToken,
    /// Whether only this machine is served: then only its names are, and those that are listed.
    pub is_local: bool,
    /// Hosts that are served, with or without a port. None: all, unless it is local.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests, as a browser writes them.
    pub origins: Vec<String>,
}

impl Checks {
    /// Refuses requests for foreign hosts and from foreign origins with a status.
    ///
    /// A page in the user's browser may reach us under a foreign name (DNS rebinding), so only
    /// names of this machine are served.
    pub fn check_source(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), StatusCode> {
        let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
        let host = host.or_else(|| uri.authority().map(hyper::http::uri::Authority::as_str));
        let Some(host) = host else { return Err(StatusCode::BAD_REQUEST) };
        let is_open = !self.is_local && self.hosts.is_empty();
        if !is_open && !is_this_machine(host) && !self.lists_host(host) {
            return Err(StatusCode::FORBIDDEN);
        }
        if let Some(origin) = headers.get(ORIGIN) {
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
    pub fn cross_origin<B>(&self, request: &Request<B>) -> Option<CrossOrigin> {
        let headers = request.headers();
        let origin = headers.get(ORIGIN)?;
        let is_allowed = origin.to_str().is_ok_and(|origin| self.lists_origin(origin))
            && self.check_source(request.uri(), headers).is_ok();
        is_allowed.then(|| CrossOrigin {
            origin: origin.clone(),
            is_preflight: request.method() == Method::OPTIONS
                && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD),
        })
    }

    fn lists_host(&self, host: &str) -> bool {
        let name = without_port(host);
        self.hosts
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name))
    }

    fn lists_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|listed| listed.eq_ignore_ascii_case(origin))
    }

    /// Who sends the request, if it shows the token.
    pub fn prove(&self, headers: &HeaderMap) -> Option<Caller> {
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.token.prove(authorization)
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
    use gateway::auth::BearerToken;
    use hyper::Uri;
    use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};

    use super::{Checks, is_this_machine};

    #[track_caller]
    fn check(hosts: &[&str], host: &'static str, origin: Option<&'static str>, is_served: bool) {
        let checks = Checks {
            token: BearerToken::new("s3cret"),
            is_local: false,
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            origins: Vec::new(),
        };
        let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        headers.extend(origin.map(|origin| (ORIGIN, HeaderValue::from_static(origin))));
        let source = checks.check_source(&Uri::from_static("/mcp"), &headers);
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
