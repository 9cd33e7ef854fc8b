//! How the upstreams are: for probes in numbers, for the operator each by itself. TD-74

use gateway::condition::Condition;
use hyper::{Response, StatusCode};
use mcp::names::{Namespace, UpstreamName};
use serde_json::{Map, Value};

use super::checks::Proof;
use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::json as json_body;

impl Endpoint {
    /// How many upstreams are ready, which is no secret, so that probes need no token; and to the operator, what
    /// is wrong with the others.
    pub(super) fn health(&self, path: &str, proof: Option<&Proof>) -> Response<Body> {
        let health = self.gateway.health();
        // Those that run only while they are needed are not waited for.
        let is_ready = health.ready == health.total || !self.awaits_all && health.ready > 0;
        let status = match path {
            "/readyz" if !is_ready => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        let word = match (health.is_settled, health.ready == health.total) {
            (false, _) => "starting",
            (true, true) => "ok",
            (true, false) => "degraded",
        };
        let mut text = format!(
            r#"{{"status":"{word}","upstreams":{{"ready":{},"total":{}}}"#,
            health.ready, health.total
        );
        if proof.is_some_and(|proof| proof.caller.is_operator()) {
            let server = |(namespace, name, condition): (Namespace, UpstreamName, Condition)| {
                let mut server = described(condition);
                server.insert("name".to_owned(), name.as_str().into());
                server.insert("namespace".to_owned(), namespace.as_str().into());
                Value::Object(server)
            };
            let servers: Vec<_> = self.gateway.conditions().into_iter().map(server).collect();
            text += &format!(r#","servers":{}"#, Value::Array(servers));
        }
        json_body(status, (text + "}").into())
    }

    /// How the namespaces of folders are, by their names, for the operator.
    pub(super) fn namespace_details(&self, names: &[Namespace]) -> Map<String, Value> {
        let mut details = Map::new();
        for (namespace, _, condition) in self.gateway.conditions() {
            if condition.is_worker && names.contains(&namespace) {
                details.insert(namespace.as_str().to_owned(), described(condition).into());
            }
        }
        details
    }
}

fn described(condition: Condition) -> Map<String, Value> {
    let Condition { state, problem, sandbox, making, restarts, .. } = condition;
    let mut text = Map::new();
    text.insert("state".to_owned(), state.into());
    text.insert("restarts".to_owned(), restarts.into());
    for (key, value) in [("problem", problem), ("sandbox", sandbox), ("making", making)] {
        if let Some(value) = value {
            text.insert(key.to_owned(), value.into());
        }
    }
    text
}
