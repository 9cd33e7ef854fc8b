//! What becomes of a client's message.
//!
//! Lists are answered from the client's view; calls are resolved in it and passed on as bytes.

use std::sync::Arc;

use catalog::surface::activate;
use catalog::view::{Target, View};
use mcp::items::Kind;
use mcp::json;
use mcp::params::Params;
use mcp::rpc::{self, Message, Outcome, Raw};
use mcp::verdict;
use mcp::version::{Revision, Spoken};
use upstream::connection::Call;

use crate::Gateway;
use crate::client::{Client, Introduction, Outlet, Owner};
use crate::error::Error;
use crate::limits::INSTRUCTIONS_CHARS_MAX;
use crate::refresh::changed_lists;

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Request {
    pub id: Raw,
    pub method: String,
    pub params: Option<Raw>,
}

const INSTRUCTIONS: &str = "Toolman gathers the tools, resources and prompts of several servers. \
    Only what is switched on is listed and can be used. The description of `toolman_activate` \
    holds the catalog of everything there is; call it to switch on what the task needs, and to \
    switch off what it no longer needs.";

impl Gateway {
    /// Answers a request. Messages that an upstream has for the client meanwhile go to `outlet`.
    pub async fn handle(
        &self,
        client: &Arc<Client>,
        request: &Request,
        outlet: &Outlet,
    ) -> Result<Outcome, Error> {
        match request.method.as_str() {
            "ping" => return Ok(Outcome::Result(Raw::trusted("{}"))),
            "initialize" => return self.initialize(client, request.params.as_ref()).await,
            method if !client.is_introduced().await => {
                return Err(Error::Uninitialized(method.to_owned()));
            }
            method if client.owner == Owner::Session && !client.is_ready() => {
                return Err(Error::NotReady(method.to_owned()));
            }
            _ => {}
        }
        let view = client.view();
        let params = request.params.as_ref();
        match request.method.as_str() {
            "tools/list" => list(&view, Kind::Tool, params),
            "resources/list" => list(&view, Kind::Resource, params),
            "resources/templates/list" => list(&view, Kind::Template, params),
            "prompts/list" => list(&view, Kind::Prompt, params),
            "tools/call" => {
                let params = named(params, "tools/call", "name")?;
                if params.name() == activate::NAME {
                    return self.activate(client, &params);
                }
                let target = view.resolve(Kind::Tool, params.name())?;
                self.pass_on(client, request, "tools/call", &params, &target, outlet).await
            }
            "resources/read" => {
                let params = named(params, "resources/read", "uri")?;
                let target = view.resolve_uri(params.name())?;
                self.pass_on(client, request, "resources/read", &params, &target, outlet).await
            }
            "prompts/get" => {
                let params = named(params, "prompts/get", "name")?;
                let target = view.resolve(Kind::Prompt, params.name())?;
                self.pass_on(client, request, "prompts/get", &params, &target, outlet).await
            }
            "completion/complete" => {
                let method = "completion/complete";
                let (kind, params) = Params::parse_reference(params)
                    .map_err(|fault| Error::Params { method, fault })?;
                let target = view.resolve(kind, params.name())?;
                self.pass_on(client, request, method, &params, &target, outlet).await
            }
            "logging/setLevel" if self.any_declares("logging") => {
                self.set_log_level(params);
                Ok(Outcome::Result(Raw::trusted("{}")))
            }
            method => Err(Error::Method(method.to_owned())),
        }
    }

    /// Takes a message of a client; gives back a request, which is to be handled.
    pub fn take(&self, client: &Client, message: Message) -> Option<Request> {
        match message {
            Message::Request { id, method, params } => return Some(Request { id, method, params }),
            Message::Notification { method, params } => {
                self.notice(client, &method, params.as_ref());
            }
            // The answer to what an upstream asked.
            Message::Response { id, outcome } => client.answer(&id, outcome),
        }
        None
    }

    /// Takes note of a client's notification.
    fn notice(&self, client: &Client, method: &str, params: Option<&Raw>) {
        match method {
            "notifications/initialized" => {
                client.mark_ready();
                if client.owner == Owner::Process && client.can_answer("roots/list") {
                    // Servers that have asked before anybody could answer will ask again.
                    self.tell_all("notifications/roots/list_changed");
                }
            }
            "notifications/roots/list_changed" if client.owner == Owner::Process => {
                self.tell_all(method);
            }
            "notifications/cancelled" => {
                if let Some(Ok([Some(id)])) = params.map(|params| params.members(["requestId"])) {
                    client.cancel(&Raw::trusted(id.to_owned()));
                }
            }
            "notifications/progress" => {
                if let Some(params) = params {
                    client.progress(params);
                }
            }
            _ => {}
        }
    }

    /// The revisions that are switched on.
    pub fn spoken(&self) -> &Spoken {
        &self.0.spoken
    }

    /// The revision that an `initialize` with these parameters will agree on.
    pub fn revision_asked(&self, params: Option<&Raw>) -> Revision {
        read_introduction(params, &self.0.spoken).map_or(Revision::NEWEST, |known| known.revision)
    }

    /// Takes a client that asks without a handshake for one of the oldest revision.
    pub fn assume_introduced(&self, client: &Client) {
        if let Ok(introducing) = client.begin_introduction() {
            let revision = Revision::V2024_11_05;
            introducing.finish(Introduction { revision, capabilities: Raw::trusted("{}") });
            client.mark_ready();
        }
    }

    async fn initialize(
        &self,
        client: &Arc<Client>,
        params: Option<&Raw>,
    ) -> Result<Outcome, Error> {
        let introduction = read_introduction(params, &self.0.spoken)
            .map_err(|fault| Error::Params { method: "initialize", fault })?;
        let introducing = client.begin_introduction()?;
        tokio::select! {
            () = self.settled() => {}
            () = client.leaving.cancelled() => {}
        }
        let revision = introduction.revision;
        introducing.finish(introduction);
        let optional = |capability: &'static str, declared: &'static str| {
            if self.any_declares(capability) { declared } else { "" }
        };
        Ok(Outcome::Result(Raw::trusted(format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{{{}{}"tools":{{"listChanged":true}},"resources":{{"listChanged":true}},"prompts":{{"listChanged":true}}}},"serverInfo":{{"name":"toolman","title":"Toolman","version":"{}"}},"instructions":{}}}"#,
            optional("completions", r#""completions":{},"#),
            optional("logging", r#""logging":{},"#),
            env!("CARGO_PKG_VERSION"),
            json::quote(&self.instructions()),
        ))))
    }

    /// Our own instructions, and what the upstreams say of themselves.
    fn instructions(&self) -> String {
        let mut text = INSTRUCTIONS.to_owned();
        for (_, upstream) in self.upstreams() {
            let introduction = upstream.status().introduction;
            if let Some(instructions) = introduction.and_then(|known| known.instructions) {
                let cut: String = instructions.chars().take(INSTRUCTIONS_CHARS_MAX).collect();
                text.push_str(&format!("\n\n# {}\n\n{}", upstream.name(), cut.trim()));
            }
        }
        text
    }

    fn any_declares(&self, capability: &'static str) -> bool {
        self.upstreams().any(|(_, upstream)| {
            upstream.status().introduction.is_some_and(|known| known.declares(capability))
        })
    }

    fn activate(&self, client: &Arc<Client>, params: &Params) -> Result<Outcome, Error> {
        let [arguments] = params
            .raw()
            .members(["arguments"])
            .map_err(|fault| Error::Params { method: "tools/call", fault })?;
        let arguments = arguments.map(str::as_bytes);
        let (activation, kinds) = client
            .change_view(|view| {
                let activation = activate::apply(view.catalog(), view.selection(), arguments)?;
                let new = View::new(
                    Arc::clone(view.catalog()),
                    activation.selection.clone(),
                    self.0.surface,
                );
                let kinds = changed_lists(view, &new);
                *view = Arc::new(new);
                Ok((activation, kinds))
            })
            .map_err(Error::Control)?;
        client.announce(&kinds);
        let result = Ok(activation.confirmation.as_str());
        let result = verdict::tool_result(result, activation.definitions.as_deref());
        Ok(Outcome::Result(Raw::trusted(result)))
    }

    /// Passes a request on to the upstream that its item comes from.
    async fn pass_on(
        &self,
        client: &Arc<Client>,
        request: &Request,
        method: &'static str,
        params: &Params,
        target: &Target<'_>,
        outlet: &Outlet,
    ) -> Result<Outcome, Error> {
        let underway = client.begin(&request.id)?;
        let upstream = self.0.by_name.get(&target.item.origin.upstream);
        let upstream = upstream.expect("the catalog holds items of our upstreams only");
        let call = Call {
            method,
            params: &|token| Some(params.forward(target.upstream_name, token)),
            relay: Some(outlet.relay.clone()),
            progress_token: params.progress_token(),
            timeout: upstream.settings().call_timeout,
        };
        let answered = async {
            let _turn = client.turns.acquire().await;
            let timing = self.metrics().begin(upstream.name());
            let outcome = upstream.call(call).await;
            if let Some(timing) = timing {
                timing.finish(&outcome);
            }
            outcome
        };
        tokio::select! {
            outcome = answered => Ok(outcome?),
            () = underway.cancelled.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Tells all upstreams that log. Their answers are not waited for: one may be slow.
    fn set_log_level(&self, params: Option<&Raw>) {
        for (_, upstream) in self.upstreams() {
            let introduction = upstream.status().introduction;
            if !introduction.is_some_and(|known| known.declares("logging")) {
                continue;
            }
            let (upstream, params) = (upstream.clone(), params.cloned());
            tokio::spawn(async move {
                let params = |_: &str| params.as_ref().map(|params| params.as_bytes().to_vec());
                let call = Call {
                    method: "logging/setLevel",
                    params: &params,
                    relay: None,
                    progress_token: None,
                    timeout: upstream.settings().call_timeout,
                };
                if let Err(error) = upstream.call(call).await {
                    tracing::warn!(%error, "could not set the log level");
                }
            });
        }
    }

    fn tell_all(&self, method: &str) {
        for (_, upstream) in self.upstreams() {
            upstream.notify(rpc::notification(method, None));
        }
    }
}

fn read_introduction(params: Option<&Raw>, spoken: &Spoken) -> Result<Introduction, json::Fault> {
    let params = params.ok_or(json::Fault::Missing("protocolVersion"))?;
    let [version, capabilities] = params.members(["protocolVersion", "capabilities"])?;
    let version = version.ok_or(json::Fault::Missing("protocolVersion"))?;
    let version = json::string(version)
        .ok_or(json::Fault::WrongType { member: "protocolVersion", expected: "a string" })?;
    // A copy: a part would keep the whole message for as long as the session lives.
    let capabilities = capabilities.unwrap_or("{}").to_owned();
    Ok(Introduction {
        revision: spoken.negotiate(&version),
        capabilities: Raw::trusted(capabilities),
    })
}

fn named(raw: Option<&Raw>, method: &'static str, key: &'static str) -> Result<Params, Error> {
    Params::parse(raw, key).map_err(|fault| Error::Params { method, fault })
}

/// A list; there is one page only.
fn list(view: &View, kind: Kind, params: Option<&Raw>) -> Result<Outcome, Error> {
    let method = kind.list_method();
    let cursor = params.map(|params| params.members(["cursor"])).transpose();
    match cursor.map_err(|fault| Error::Params { method, fault })? {
        None | Some([None | Some("null")]) => {
            Ok(Outcome::Result(Raw::trusted(view.list(kind).clone())))
        }
        Some([Some(_)]) => Err(Error::Cursor),
    }
}
