//! What a file says of the HTTP door.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use mcp::version::Spoken;

use crate::limits::TOKEN_CHARS_MIN;

/// The section `[http]`; what is absent is left to others.
#[derive(Clone, Debug, Default)]
pub struct Http {
    pub listen: Option<SocketAddr>,
    pub token: Option<TokenSource>,
    /// The files of the certificate and of its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub allowed_origins: Vec<String>,
    pub allowed_hosts: Vec<String>,
    /// What may stand before every path.
    pub base_path: Option<String>,
    pub legacy_sse: Option<bool>,
    pub session_ttl: Option<Duration>,
    /// Whether the door counts as ready only while all servers are; else one is enough.
    pub awaits_all: bool,
    pub supported_versions: Option<Spoken>,
    /// Tokens that prove agents.
    pub tokens: Vec<AgentToken>,
    /// Addresses whose word on agents and clients is believed.
    pub trusted_peers: Vec<IpNet>,
}

/// A token that proves an agent.
#[derive(Clone)]
pub struct AgentToken {
    pub secret: Secret,
    pub agent: String,
}

/// How a token is written.
#[derive(Clone)]
pub enum Secret {
    Sha256([u8; 32]),
    Text(String),
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgentToken({})", self.agent)
    }
}

/// Where the token is.
#[derive(Clone)]
pub enum TokenSource {
    Text(String),
    File(PathBuf),
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSource::Text(_) => formatter.write_str("Text(…)"),
            TokenSource::File(path) => formatter.debug_tuple("File").field(path).finish(),
        }
    }
}

/// What is wrong with a token, if it can be guessed or can't be sent.
pub fn weakness(token: &str) -> Option<String> {
    let is_strong =
        token.len() >= TOKEN_CHARS_MIN && token.bytes().all(|byte| byte.is_ascii_graphic());
    (!is_strong)
        .then(|| format!("is too weak; use at least {TOKEN_CHARS_MIN} visible ASCII characters"))
}
