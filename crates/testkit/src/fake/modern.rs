//! What a fake server of the modern era answers besides what both eras have.

use mcp::json;
use mcp::modern::{SERVER_INFO, SUBSCRIPTION_ID};
use mcp::rpc::{self, Raw};
use serde_json::{Value, json};

use super::{Script, Server, introduction};

/// The answer to `server/discover`.
pub fn discovery(script: &Script) -> Value {
    let introduction = introduction(script);
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": introduction["capabilities"], "ttlMs": 0, "cacheScope": "private",
        "instructions": introduction.get("instructions").cloned().unwrap_or_default(),
        "_meta": {SERVER_INFO: introduction["serverInfo"]},
    })
}

impl Server {
    /// Opens a stream of changes; it is never answered.
    pub(super) fn listen(&self, id: &Raw, params: Option<&Raw>) {
        self.note("subscriptions/listen", params);
        let id = String::from_utf8_lossy(id.as_bytes()).into_owned();
        self.listeners.lock().unwrap().push(id.clone());
        let [wanted] = params.unwrap().members(["notifications"]).unwrap();
        let params = format!(
            r#"{{"_meta":{{"{SUBSCRIPTION_ID}":{id}}},"notifications":{}}}"#,
            wanted.unwrap()
        );
        let method = "notifications/subscriptions/acknowledged";
        self.send(rpc::notification(method, Some(params.as_bytes())));
    }

    /// Tells of a change: in the modern era to each that listens, else to all.
    pub(super) fn tell(&self, method: &str, members: &str) {
        if !self.script.lock().unwrap().is_modern {
            let params = (!members.is_empty()).then(|| format!("{{{members}}}"));
            return self.send(rpc::notification(method, params.as_deref().map(str::as_bytes)));
        }
        let listeners = self.listeners.lock().unwrap().clone();
        for id in listeners {
            let comma = if members.is_empty() { "" } else { "," };
            let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_ID}":{id}}}{comma}{members}}}"#);
            self.send(rpc::notification(method, Some(params.as_bytes())));
        }
    }

    /// Says that the resource in the arguments has changed.
    pub(super) fn touch(&self, arguments: &str) {
        let [uri] = json::members(arguments.as_bytes(), ["uri"]).unwrap();
        self.tell("notifications/resources/updated", &format!(r#""uri":{}"#, uri.unwrap()));
    }
}
