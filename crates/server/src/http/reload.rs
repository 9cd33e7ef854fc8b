//! `POST /reload`: reading again what is served, on the word of the manager alone. TD-76, TD-113

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use gateway::auth::is_same_secret;
use hyper::{Method, Response, StatusCode};

use super::checks::Proof;
use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::{Refused, json, refuse};
use super::head::{Field, Head};
use super::traffic::Traffic;

/// What is done, and who may ask for it.
#[derive(Clone)]
pub struct Reload {
    /// What the manager shows besides the token.
    pub manager_token: String,
    /// What proves by itself that somebody may read our data directory, where both tokens could lie as well.
    pub own_token: Option<String>,
    /// Whether the manager may be at an address.
    pub is_allowed: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Reads again; what was done, as JSON.
    pub run: Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>,
}

impl Endpoint {
    /// All three proofs are needed, and nobody is told which one is missing.
    pub(super) async fn reload(
        &self,
        traffic: &Traffic,
        proof: Option<&Proof>,
        head: &Head<'_>,
    ) -> Result<Response<Body>, Refused> {
        let shown = Field::find(head.fields, "x-manager-token").once().unwrap_or_default();
        let allowed = self.reload.as_ref().filter(|reload| {
            let is_manager = is_same_secret(shown.as_bytes(), reload.manager_token.as_bytes());
            let is_own = reload
                .own_token
                .as_ref()
                .is_some_and(|own| is_same_secret(shown.as_bytes(), own.as_bytes()));
            let is_near = traffic.address().is_some_and(|address| (reload.is_allowed)(address));
            let is_operator = proof.is_some_and(|proof| proof.caller.is_operator());
            is_near && (is_operator && is_manager || is_own)
        });
        let Some(reload) = allowed else {
            return refuse(StatusCode::FORBIDDEN, "only the manager may ask for this");
        };
        if *head.method != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "use POST");
        }
        Ok(json(StatusCode::OK, (reload.run)().await.into()))
    }
}
