//! What becomes of a client's message.
//!
//! Lists are answered from the client's view; calls are resolved in it and passed on as bytes.

use std::pin::pin;
use std::sync::Arc;

use catalog::error::Error as Refusal;
use catalog::policy::Subject;
use catalog::view::{Target, View};
use mcp::abilities::Abilities;
use mcp::headers::{self, ParamHeader};
use mcp::items::Kind;
use mcp::json;
use mcp::modern::Envelope;
use mcp::params::Params;
use mcp::rpc::{self, Message, Outcome, Raw};
use mcp::translate::{self, Passage};
use mcp::version::{Era, Revision};
use upstream::answer::Answer;
use upstream::connection::Call;
use upstream::relay::Relay;
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::client::{Client, Outlet, Owner};
use crate::consent::Leave;
use crate::error::Error;
use crate::memory::Question;
use crate::refresh::now;
use crate::request::{Request, Terms};
use crate::tasks;
use crate::welcome::server_info;

/// A request with who makes it, and the way back.
pub(crate) struct Asking<'a> {
    pub client: &'a Arc<Client>,
    pub request: &'a Request,
    pub outlet: &'a Outlet,
    pub era: Era,
}

impl Asking<'_> {
    /// The way back to who asks.
    fn relay(&self) -> Relay {
        let mut relay = self.outlet.relay.clone();
        if !relay.is_per_call {
            // The outlet may be older than the handshake.
            relay.abilities = self.client.abilities();
        }
        relay
    }

    /// The revision in which the answer is read.
    pub fn revision(&self) -> Revision {
        let agreed = || self.client.introduction().map(|known| known.revision);
        match self.era {
            Era::Modern => Revision::NEWEST_MODERN,
            Era::Legacy => agreed().unwrap_or(Revision::NEWEST_LEGACY),
        }
    }
}

impl Gateway {
    /// Answers a request. Messages that an upstream has for the client meanwhile go to `outlet`.
    pub async fn handle(
        &self,
        client: &Arc<Client>,
        request: &Request,
        outlet: &Outlet,
    ) -> Result<Answer, Error> {
        match &request.terms {
            Terms::Handshake => self.handle_in_session(client, request, outlet).await,
            Terms::Own(envelope) => self.handle_alone(client, request, envelope, outlet).await,
            Terms::Broken(fault) => Err(Error::Envelope(fault.clone())),
        }
    }

    async fn handle_in_session(
        &self,
        client: &Arc<Client>,
        request: &Request,
        outlet: &Outlet,
    ) -> Result<Answer, Error> {
        let params = request.params.as_ref();
        match request.method.as_str() {
            "ping" => return Ok(Answer::Whole(Outcome::Result(Raw::trusted("{}")))),
            "initialize" => {
                return Box::pin(self.initialize(client, params)).await.map(Answer::Whole);
            }
            method if !client.is_introduced().await => {
                return Err(Error::Uninitialized(method.to_owned()));
            }
            method if client.owner == Owner::Session && !client.is_ready() => {
                return Err(Error::NotReady(method.to_owned()));
            }
            "logging/setLevel" if self.any_declares(&client.view(), "logging") => {
                return self.set_log_level(client, params).map(Answer::Whole);
            }
            method @ ("resources/subscribe" | "resources/unsubscribe")
                if self.can_subscribe(&client.view()) =>
            {
                let begins = method == "resources/subscribe";
                return self.subscribe(client, begins, request).map(Answer::Whole);
            }
            _ => {}
        }
        self.answer(&Asking { client, request, outlet, era: Era::Legacy }).await
    }

    /// Answers a request that belongs to no session.
    async fn handle_alone(
        &self,
        client: &Arc<Client>,
        request: &Request,
        envelope: &Envelope,
        outlet: &Outlet,
    ) -> Result<Answer, Error> {
        let revision = self.0.spoken.parse(&envelope.version);
        if revision.map(Revision::era) != Some(Era::Modern) {
            let requested = envelope.version.clone();
            return Err(Error::Revision { requested, spoken: self.0.spoken.clone() });
        }
        self.recognise(client, request.client());
        if !self.0.awake.initialized() {
            // Nothing can be asked of a modern client yet.
            self.know_abilities(client, Abilities::NONE);
        }
        tokio::select! {
            biased;
            () = self.awake() => {}
            () = client.leaving.cancelled() => {}
        }
        self.check_log_level(envelope)?;
        let outlet = &*outlet.narrowed(envelope);
        match request.method.as_str() {
            "server/discover" => {
                let discovery = Raw::trusted(self.discovery(&client.view()));
                Ok(Answer::Whole(Outcome::Result(discovery)))
            }
            "subscriptions/listen" => {
                Box::pin(self.listen(client, request, outlet)).await.map(Answer::Whole)
            }
            _ => self.answer(&Asking { client, request, outlet, era: Era::Modern }).await,
        }
    }

    /// Answers what both eras have.
    async fn answer(&self, asking: &Asking<'_>) -> Result<Answer, Error> {
        let (has_lazy, has_unread) = {
            let members = self.0.members.load();
            (!members.lazy.is_empty(), members.has_unread)
        };
        if (has_lazy || !self.is_awake()) && asking.request.method.ends_with("/list") {
            Box::pin(self.list_when_awake(asking.client)).await;
            Box::pin(self.woken_for(asking.client)).await;
        }
        if has_unread {
            Box::pin(self.read_first(asking)).await?;
        }
        let view = asking.client.view();
        let note = self.note(asking, &view);
        let answer = match self.answer_from(asking, &view).await {
            Err(Error::Catalog(refusal @ Refusal::Unknown { .. })) => {
                Box::pin(self.answer_beyond(asking, refusal)).await
            }
            answer => answer,
        };
        match note {
            Some(note) => note.finish(answer),
            None => answer,
        }
    }

    pub(crate) async fn answer_from(
        &self,
        asking: &Asking<'_>,
        view: &View,
    ) -> Result<Answer, Error> {
        if let Some((upstream, params)) = self.beyond(asking, view) {
            return Box::pin(self.pass_unknown(asking, &upstream, &params)).await;
        }
        match asking.request.method.as_str() {
            "tools/list" => self.list(asking, view, Kind::Tool).map(Answer::Whole),
            "resources/list" => self.list(asking, view, Kind::Resource).map(Answer::Whole),
            "resources/templates/list" => {
                self.list(asking, view, Kind::Template).map(Answer::Whole)
            }
            "prompts/list" => self.list(asking, view, Kind::Prompt).map(Answer::Whole),
            "tools/call" => {
                self.note_call(asking.client);
                let params = asking.request.subject("tools/call")?;
                if view.scope().surface.control_names().contains(&params.name()) {
                    // What is chosen may be of a server of which nothing is known yet.
                    Box::pin(self.list_when_awake(asking.client)).await;
                    return Box::pin(self.control(asking, view, params)).await.map(Answer::Whole);
                }
                let target = view.resolve(Kind::Tool, params.name())?;
                let answer = self.use_item(asking, view, "tools/call", params, &target).await?;
                asking.note_links(view, &target, &answer);
                Ok(answer)
            }
            "resources/read" => {
                let params = asking.request.subject("resources/read")?;
                let target = asking.resolve_read(view, params.name())?;
                self.check_expanded(view, params.name(), &target)?;
                self.use_item(asking, view, "resources/read", params, &target).await
            }
            "prompts/get" => {
                let params = asking.request.subject("prompts/get")?;
                let target = view.resolve(Kind::Prompt, params.name())?;
                let answer = self.use_item(asking, view, "prompts/get", params, &target).await?;
                asking.note_links(view, &target, &answer);
                Ok(answer)
            }
            "completion/complete" => {
                let method = "completion/complete";
                let (kind, params) = Params::parse_reference(asking.request.params.as_ref())
                    .map_err(|fault| Error::Params { method, fault })?;
                let target = view.resolve(kind, params.name())?;
                self.pass_on(asking, method, &params, &target).await
            }
            method if tasks::has_method(asking.era, method) => {
                Box::pin(self.handle_task(asking)).await
            }
            method => Err(Error::Method(method.to_owned())),
        }
    }

    /// Takes a message of a client; gives back a request, which is to be handled.
    pub fn take(&self, client: &Client, message: Message) -> Option<Request> {
        match message {
            Message::Request { id, method, params } => {
                return Some(Request::new(id, method, params));
            }
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
                if client.owner == Owner::Process && client.abilities().roots {
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

    /// Begins or ends the watching of a resource for a session.
    fn subscribe(
        &self,
        client: &Arc<Client>,
        begins: bool,
        request: &Request,
    ) -> Result<Outcome, Error> {
        let method = if begins { "resources/subscribe" } else { "resources/unsubscribe" };
        let params = request.subject(method)?;
        if begins {
            self.watch_in_session(client, params.name())?;
        } else {
            self.unwatch_in_session(client, params.name());
        }
        Ok(Outcome::Result(Raw::trusted("{}")))
    }

    /// The header fields that a call of a tool must come with, each with the argument it repeats.
    pub fn mirrored(&self, client: &Client, request: &Request) -> Vec<(String, Option<String>)> {
        let view = client.view();
        let Ok(params) = request.subject("tools/call") else { return Vec::new() };
        if request.method != "tools/call" {
            return Vec::new();
        }
        let target = match view.resolve(Kind::Tool, params.name()) {
            Ok(target) if !target.item.param_headers.is_empty() => target,
            _ => return Vec::new(),
        };
        let arguments = params.arguments().unwrap_or("{}");
        let field = |header: &ParamHeader| (header.name.clone(), header.find(arguments));
        target.item.param_headers.iter().map(field).collect()
    }

    /// Uses an item; where the rules look at each use of it, they do so first.
    async fn use_item(
        &self,
        asking: &Asking<'_>,
        view: &View,
        method: &'static str,
        params: &Params,
        target: &Target<'_>,
    ) -> Result<Answer, Error> {
        if !view.ceiling().is_guarded(target.item) {
            return self.pass_on(asking, method, params, target).await;
        }
        Box::pin(async {
            // Nobody is asked about what may be defined otherwise by now.
            if let Some(upstream) = self.stale_origin(target.item) {
                return Box::pin(self.answer_anew(asking, &upstream)).await;
            }
            match self.leave_for(asking, view, params, target).await? {
                Leave::Given { params: own, is_sealed } => {
                    let params = own.as_ref().unwrap_or(params);
                    let answer = self.pass_on(asking, method, params, target).await?;
                    Ok(if is_sealed {
                        self.seal_state(asking, target, params, answer)
                    } else {
                        answer
                    })
                }
                Leave::Question(question) => Ok(question),
            }
        })
        .await
    }

    /// What a template stands for may be forbidden by itself.
    pub(crate) fn check_expanded(
        &self,
        view: &View,
        asked: &str,
        target: &Target<'_>,
    ) -> Result<(), Error> {
        if target.item.kind != Kind::Template || !self.0.policies.are_in_force() {
            return Ok(());
        }
        let origin = &target.item.origin;
        let subject =
            Subject::new(&origin.upstream, &origin.namespace, target.upstream_name, asked);
        if self.0.policies.forbids(&view.scope().rights, &subject, now()) {
            return Err(view.unknown(Kind::Resource, asked).into());
        }
        Ok(())
    }

    /// Passes a request on to the upstream that its item comes from.
    async fn pass_on(
        &self,
        asking: &Asking<'_>,
        method: &str,
        params: &Params,
        target: &Target<'_>,
    ) -> Result<Answer, Error> {
        let Some(upstream) = &self.upstream(&target.item.origin.upstream) else {
            return Err(asking.client.view().unknown(target.item.kind, params.name()).into());
        };
        if upstream.is_stale() {
            return Box::pin(self.answer_anew(asking, upstream)).await;
        }
        let mirrored = match target.item.param_headers.as_slice() {
            [] => Vec::new(),
            fields => headers::mirror(fields, params.arguments().unwrap_or("{}")),
        };
        let name = target.upstream_name;
        let is_call = method == "tools/call";
        if is_call && upstream.is_worker() {
            let checked = self.check_arguments(upstream, name, params.arguments());
            checked.map_err(|error| error.of(target.item))?;
        }
        let remembers = is_call && self.0.pace.remembers.is_some();
        let question = remembers.then(|| self.question(asking, params, upstream, target)).flatten();
        if let Some(known) = question.as_ref().and_then(|question| self.0.memory.recall(question)) {
            return Ok(known);
        }
        let answer = self.forward(asking, method, params, upstream, name, &mirrored).await;
        let answer = answer.map_err(|error| error.of(target.item))?;
        if let Some(question) = question {
            self.0.memory.note(question, &answer);
        }
        if is_call {
            self.note_task(asking, upstream, &answer);
        }
        Ok(answer)
    }

    /// What a call asks, if its answer may be remembered.
    fn question(
        &self,
        asking: &Asking<'_>,
        params: &Params,
        upstream: &Upstream,
        target: &Target<'_>,
    ) -> Option<Question> {
        // A task is begun anew, whatever it is about.
        let plain = matches!(params.raw().members(["task", "requestState"]), Ok([None, None]));
        let arguments = params.arguments().unwrap_or("{}");
        plain
            .then(|| self.0.memory.question(target.item, upstream, arguments, asking.revision()))?
    }

    /// Makes a request of a client to an upstream, about what is called `subject` there.
    pub(crate) async fn forward(
        &self,
        asking: &Asking<'_>,
        method: &str,
        params: &Params,
        upstream: &Upstream,
        subject: &str,
        mirrored: &[(String, String)],
    ) -> Result<Answer, Error> {
        let Asking { client, request, outlet, .. } = asking;
        let underway = client.begin(&request.id)?;
        let client_says = says_of(asking, upstream.era());
        let passage = Passage {
            client: asking.revision(),
            upstream: upstream.era(),
            client_says: &client_says,
        };
        let mut call = Call {
            method,
            subject: Some(subject),
            params: &|token| Some(params.translate(&passage, subject, token)),
            mirrored,
            // What is to be changed on its way must be there first.
            may_come: outlet.takes_pieces && passage.takes_pieces(),
            relay: Some(asking.relay()),
            progress_token: params.progress_token(),
            timeout: upstream.settings().call_timeout,
        };
        // Where it stands: it is large, and would be moved otherwise.
        let answered = pin!(async {
            let successor;
            let upstream = if upstream.is_provisional() {
                (successor, call.timeout) = Box::pin(self.successor(upstream)).await?;
                &successor
            } else {
                upstream
            };
            let _turn = client.turns.acquire().await;
            let timing = self.metrics().begin(upstream.name());
            let answer = upstream.call(call).await;
            if let Some(timing) = timing {
                timing.finish(&answer);
            }
            answer
        });
        tokio::select! {
            biased;
            answer = answered => Ok(match answer? {
                Answer::Whole(outcome) => Answer::Whole(passage.answer(method, outcome)),
                coming @ Answer::Coming(_) => coming,
            }),
            () = underway.cancelled() => Err(Error::Cancelled),
        }
    }

    fn tell_all(&self, method: &str) {
        for (_, upstream) in self.upstreams() {
            upstream.notify(rpc::notification(method, None));
        }
    }
}

/// What an upstream that keeps no session is told of a client that has one.
fn says_of(asking: &Asking<'_>, upstream: Era) -> String {
    if asking.era == upstream || upstream == Era::Legacy {
        return String::new();
    }
    // What it would ask for can't be carried back, so it is told that nothing can be asked.
    let log_level = asking.client.log_level().map(|level| json::quote(level.as_str()));
    translate::request_members("{}", &server_info(), log_level.as_deref())
}
