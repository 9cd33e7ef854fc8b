//! What the rules want of single calls: arguments as they should be, and the consent of a person.
//!
//! A client with a session is asked at once. One whose requests stand alone gets a question as its answer
//! and asks again; what it brings back is sealed, so that consent to one call is no consent to another.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::policy::Subject;
use catalog::view::{Target, View};
use foldhash::{HashMap, HashMapExt as _};
use mcp::json;
use mcp::params::Params;
use mcp::rpc::{Outcome, Raw};
use mcp::text::{shorten, tame};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use upstream::answer::Answer;
use upstream::relay::{Ask, Upcall};

use crate::Gateway;
use crate::auth::unguessable;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::limits::{CONSENT_MAX, CONSENTS_MAX, SHOWN_ARGUMENTS_CHARS_MAX};
use crate::refresh::now;
use crate::request::Terms;

/// Under this key a question stands among those of a call.
const KEY: &str = "toolman-consent";

/// What seals questions, and the calls that were consented to.
pub struct Consents {
    seal: hmac::Key,
    given: Mutex<HashMap<String, Instant>>,
}

/// What becomes of a call that the rules look at.
pub(crate) enum Leave {
    /// It may be made, with these parameters if not its own.
    Given(Option<Params>),
    /// The client has to ask a person first.
    Question(Answer),
}

impl Consents {
    pub fn new() -> Consents {
        let seal = hmac::Key::new(hmac::HMAC_SHA256, unguessable().as_bytes());
        Consents { seal, given: Mutex::new(HashMap::new()) }
    }

    /// What only this call of this caller has.
    fn mark(&self, asking: &Asking<'_>, target: &Target<'_>, arguments: &str) -> String {
        let identity = &asking.client.caller.identity;
        let mut context = hmac::Context::with_key(&self.seal);
        for part in [
            identity.agent.as_deref().unwrap_or_default(),
            identity.client.as_deref().unwrap_or_default(),
            target.item.origin.upstream.as_str(),
            &target.item.origin.name,
            arguments,
        ] {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
        URL_SAFE_NO_PAD.encode(context.sign())
    }

    fn give(&self, mark: String) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() >= CONSENTS_MAX {
            given.retain(|_, since| since.elapsed() < CONSENT_MAX);
        }
        if given.len() < CONSENTS_MAX {
            given.insert(mark, Instant::now());
        }
    }

    /// Whether a call was consented to; it may go on in several steps, for a while.
    fn is_given(&self, mark: &str) -> bool {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.get(mark).is_some_and(|since| since.elapsed() < CONSENT_MAX)
    }
}

impl Gateway {
    /// Looks at a call of a guarded tool before it is made.
    pub(crate) async fn leave_for(
        &self,
        asking: &Asking<'_>,
        view: &View,
        params: &Params,
        target: &Target<'_>,
    ) -> Result<Leave, Error> {
        let (rights, subject) = (&view.scope().rights, Subject::of(target.item));
        let policies = &self.0.policies;
        let arguments = params.raw().members(["arguments"]).ok().and_then(|[found]| found);
        let arguments = arguments.unwrap_or("{}");
        let name = target.item.name.as_str();
        policies.check_arguments(rights, &subject, arguments).map_err(|problem| {
            Error::Denied(format!("`{name}` may not be called with these arguments: {problem}"))
        })?;
        let Some(by) = policies.decide(rights, &subject, now(), &mut |_| {}) else {
            // A rule that holds at certain times has just ended.
            return Err(view.unknown(target.item.kind, params.name()).into());
        };
        if !policies.needs_consent(rights, &subject, by) {
            return Ok(Leave::Given(None));
        }
        let question = question(asking, target, arguments);
        match &asking.request.terms {
            Terms::Own(envelope) => {
                let can_ask =
                    matches!(envelope.capabilities.members(["elicitation"]), Ok([Some(_)]));
                let mark = self.0.consents.mark(asking, target, arguments);
                self.leave_alone(params, name, &mark, can_ask, &question)
            }
            _ => self.ask_person(asking, name, &question).await.map(|()| Leave::Given(None)),
        }
    }

    /// The leave for a request that stands alone: it brings the consent along or has to ask for it.
    fn leave_alone(
        &self,
        params: &Params,
        name: &str,
        mark: &str,
        can_ask: bool,
        question: &str,
    ) -> Result<Leave, Error> {
        let brought = params.raw().members(["inputResponses", "requestState"]);
        let [responses, state] = brought.unwrap_or_default();
        let state = state.and_then(json::string);
        if state.as_deref() == Some(mark) {
            let response = responses.and_then(|responses| {
                let [response] = json::members(responses.as_bytes(), [KEY]).ok()?;
                let [action] = json::members(response?.as_bytes(), ["action"]).ok()?;
                action.and_then(json::string)
            });
            if response.as_deref() != Some("accept") {
                return Err(refused(name));
            }
            self.0.consents.give(mark.to_owned());
            return Ok(Leave::Given(without_consent(params)));
        }
        // A server may have questions of its own after ours.
        if state.is_some() && self.0.consents.is_given(mark) {
            return Ok(Leave::Given(None));
        }
        if !can_ask {
            return Err(cannot_ask(name));
        }
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{{"method":"elicitation/create","params":{question}}}}},"requestState":"{mark}"}}"#
        );
        Ok(Leave::Question(Answer::Whole(Outcome::Result(Raw::trusted(result)))))
    }

    /// Asks the person behind a client that has a session, and waits.
    async fn ask_person(
        &self,
        asking: &Asking<'_>,
        name: &str,
        question: &str,
    ) -> Result<(), Error> {
        let method = "elicitation/create".to_owned();
        if !asking.client.can_answer(&method) {
            return Err(cannot_ask(name));
        }
        let underway = asking.client.begin(&asking.request.id)?;
        let (answer, answered) = oneshot::channel();
        let (notices, _) = mpsc::channel(1);
        let params = Some(Raw::trusted(question.to_owned()));
        let ask = Ask { method, params, answer, notices };
        if !(asking.outlet.relay.deliver)(Upcall::Ask(ask)) {
            return Err(cannot_ask(name));
        }
        let outcome = tokio::select! {
            outcome = timeout(CONSENT_MAX, answered) => outcome,
            () = underway.cancelled() => return Err(Error::Cancelled),
        };
        let Ok(Ok(Outcome::Result(result))) = outcome else { return Err(refused(name)) };
        let action = result.members(["action"]).ok().and_then(|[action]| action);
        match action.and_then(json::string).as_deref() {
            Some("accept") => Ok(()),
            _ => Err(refused(name)),
        }
    }
}

/// The parameters of the question, in words for a person.
fn question(asking: &Asking<'_>, target: &Target<'_>, arguments: &str) -> String {
    let agent = asking.client.caller.identity.agent.as_deref();
    let agent = agent.map_or("The agent".to_owned(), |name| format!("Agent `{}`", shorten(name)));
    let shown: String = tame(arguments).chars().take(SHOWN_ARGUMENTS_CHARS_MAX).collect();
    let cut = if shown.len() < arguments.len() { " … (cut)" } else { "" };
    let (name, server) = (&target.item.name, &target.item.origin.upstream);
    let message = format!("{agent} wants to call `{name}` of server `{server}` with {shown}{cut}");
    let message = json::quote(&message);
    format!(r#"{{"message":{message},"requestedSchema":{{"type":"object","properties":{{}}}}}}"#)
}

/// The parameters without what was meant for us.
fn without_consent(params: &Params) -> Option<Params> {
    let raw = std::str::from_utf8(params.raw().as_bytes()).ok()?;
    let kept: Vec<_> = json::entries(raw)
        .ok()?
        .into_iter()
        .filter(|(key, _)| key != "inputResponses" && key != "requestState")
        .map(|(key, value)| format!("{}:{value}", json::quote(&key)))
        .collect();
    let raw = Raw::trusted(format!("{{{}}}", kept.join(",")));
    Params::parse(Some(&raw), "name").ok()
}

fn refused(name: &str) -> Error {
    Error::Denied(format!(
        "`{name}` was not called: the person did not allow it; go on without it, or ask them"
    ))
}

fn cannot_ask(name: &str) -> Error {
    Error::Denied(format!(
        "`{name}` needs the consent of a person before each call, and this client can't be asked; \
         use a client that supports elicitation, or do without this tool"
    ))
}
