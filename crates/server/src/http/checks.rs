//! What every HTTP request must show before it is looked at: host, origin, token.

use std::net::IpAddr;

use gateway::auth::{BearerToken, Caller};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::{StatusCode, Uri};

pub struct Checks {
    token: BearerToken,
    /// Whether only this machine is served: then only its names are.
    is_local: bool,
}

impl Checks {
    pub fn new(token: BearerToken, is_local: bool) -> Checks {
        Checks { token, is_local }
    }

    /// Refuses requests for foreign hosts and from foreign origins with a status.
    ///
    /// A page in the user's browser may reach us under a foreign name (DNS rebinding), so only
    /// names of this machine are served.
    pub fn check_source(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), StatusCode> {
        if headers.get_all(HOST).iter().count() > 1 {
            return Err(StatusCode::BAD_REQUEST);
        }
        let host = headers.get(HOST).map(|host| host.to_str().unwrap_or_default());
        let host = host.or_else(|| uri.authority().map(hyper::http::uri::Authority::as_str));
        let Some(host) = host else { return Err(StatusCode::BAD_REQUEST) };
        if self.is_local && !is_this_machine(host) {
            return Err(StatusCode::FORBIDDEN);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let origin = origin.split_once("://").map_or("", |(_, host)| host);
            if !is_this_machine(origin) && (self.is_local || origin != host) {
                return Err(StatusCode::FORBIDDEN);
            }
        }
        Ok(())
    }

    /// Who sends the request, if it shows the token.
    pub fn prove(&self, headers: &HeaderMap) -> Option<Caller> {
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        self.token.prove(authorization)
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_this_machine;

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
