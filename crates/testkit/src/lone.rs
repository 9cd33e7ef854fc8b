//! An upstream by itself, without a gateway: what it is asked and what it tells.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp::abilities::Abilities;
use mcp::items::Kind;
use mcp::rpc::Outcome;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use upstream::connection::Call;
use upstream::launch::Spawner;
use upstream::relay::{Relay, Who};
use upstream::supervisor::{Event, Phase, Upstream};

use crate::client::PATIENCE;
use crate::world::Plan;

pub struct Lone {
    pub upstream: Upstream,
    events: mpsc::Receiver<Event>,
}

impl Lone {
    /// Starts the first upstream of a plan and waits until it is ready.
    pub async fn start(plan: Plan) -> Lone {
        let (sender, events) = mpsc::channel(100);
        let settings = plan.into_settings().upstreams.remove(0).upstream;
        let upstream = Upstream::start(settings, Spawner::new("no guard"), sender, None);
        upstream.settled().await;
        assert!(matches!(upstream.status().phase, Phase::Ready), "{:?}", upstream.status());
        Lone { upstream, events }
    }

    pub fn watch(&self, uris: &[&str]) {
        self.upstream.watch(uris.iter().map(|&uri| uri.to_owned()).collect::<BTreeSet<_>>());
    }

    /// Calls a tool as the modern era wants it.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.call_as(None, tool, arguments, &[]).await
    }

    /// The same for a client, with these arguments mirrored.
    pub async fn call_as(
        &self,
        client: Option<u64>,
        tool: &str,
        arguments: Value,
        mirrored: &[(String, String)],
    ) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta}).to_string();
        let deliver = Arc::new(|_| false);
        let relay = |client| {
            let who = Who { client, program: 0 };
            let abilities = Abilities::ALL;
            Relay { who, abilities, context: None, is_per_call: false, deliver }
        };
        let call = Call {
            method: "tools/call",
            subject: Some(tool),
            params: &|_| Some(params.clone().into_bytes()),
            mirrored,
            may_come: false,
            relay: client.map(relay),
            progress_token: None,
            timeout: PATIENCE,
        };
        let (Outcome::Result(answer) | Outcome::Error(answer)) =
            self.upstream.call(call).await.unwrap().whole().await.unwrap();
        serde_json::from_slice(answer.as_bytes()).unwrap()
    }

    /// Waits until the server has got a message that holds all of these.
    pub async fn until_seen(&self, parts: &[&str]) {
        self.until_seen_for(None, parts).await;
    }

    /// The same for the server that stands behind a client's own conversation.
    pub async fn until_seen_for(&self, client: Option<u64>, parts: &[&str]) {
        let waiting = async {
            loop {
                let seen = self.call_as(client, "seen", json!({}), &[]).await;
                let seen = seen["structuredContent"]["seen"].clone();
                let seen: Vec<String> = serde_json::from_value(seen).unwrap();
                if seen.iter().any(|line| parts.iter().all(|part| line.contains(part))) {
                    return;
                }
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until so many tools are offered.
    pub async fn until_tools(&mut self, count: usize) {
        while self.upstream.inventory().of(Kind::Tool).len() != count {
            timeout(PATIENCE, self.events.recv()).await.unwrap().unwrap();
        }
    }

    /// The URI of the next resource that is said to have changed.
    pub async fn next_updated(&mut self) -> String {
        loop {
            let event = timeout(PATIENCE, self.events.recv()).await.unwrap().unwrap();
            if let Event::Updated { upstream, params } = event {
                assert_eq!(upstream.to_string(), "a");
                let params: Value = serde_json::from_slice(params.as_bytes()).unwrap();
                return params["uri"].as_str().unwrap().to_owned();
            }
        }
    }
}
