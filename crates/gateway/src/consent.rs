//! What the rules want of single calls: arguments as they should be, and the consent of a person.
//!
//! A client with a session is asked at once. One whose requests stand alone gets a question as its answer
//! and asks again; what it brings back is sealed, so that consent to one call is no consent to another, nor
//! to the same one again.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catalog::error::Error as Refusal;
use catalog::policy::Subject;
use catalog::view::{Target, View};
use foldhash::{HashMap, HashMapExt as _};
use mcp::items::Kind;
use mcp::json;
use mcp::params::Params;
use mcp::rpc::{Outcome, Raw};
use mcp::text::{shorten, tame};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use upstream::answer::Answer;
use upstream::relay::{Ask, Upcall};

use crate::Gateway;
use crate::auth::{Identity, is_same_secret, unguessable};
use crate::dispatch::Asking;
use crate::error::Error;
use crate::limits::{CONSENT_MAX, CONSENTS_MAX, SHOWN_ARGUMENTS_CHARS_MAX};
use crate::refresh::now;
use crate::request::Terms;

/// Under this key a question stands among those of a call.
const KEY: &str = "toolman-consent";

/// What seals questions, and the seals that were used.
pub struct Consents {
    seal: hmac::Key,
    spent: Mutex<HashMap<Box<str>, Instant>>,
}

/// What becomes of a use that the rules look at.
pub(crate) enum Leave {
    /// It may go on, with these parameters if not its own. Where consent was brought along, what the
    /// upstream asks in turn is sealed as well.
    Given { params: Option<Params>, is_sealed: bool },
    /// The client has to ask a person first.
    Question(Answer),
}

/// One use of one item with these arguments, by one caller.
struct Deed<'a> {
    identity: &'a Identity,
    target: &'a Target<'a>,
    arguments: &'a str,
}

impl Consents {
    pub fn new() -> Consents {
        let seal = hmac::Key::new(hmac::HMAC_SHA256, unguessable().as_bytes());
        Consents { seal, spent: Mutex::new(HashMap::new()) }
    }

    /// A state that only we can make, for this deed only, for once and for a while; `inner` travels in
    /// it.
    fn seal(&self, deed: &Deed<'_>, inner: &str) -> String {
        let expiry = unix_seconds() + CONSENT_MAX.as_secs();
        let nonce = unguessable();
        let mark = self.mark(deed, expiry, &nonce, inner);
        format!("toolman.{expiry}.{nonce}.{mark}.{inner}")
    }

    /// What travels in a state of ours, if it is for this deed, in time, and not used before.
    fn open<'s>(&self, deed: &Deed<'_>, state: &'s str) -> Option<&'s str> {
        let mut parts = state.strip_prefix("toolman.")?.splitn(4, '.');
        let expiry = parts.next()?.parse().ok()?;
        let (nonce, mark, inner) = (parts.next()?, parts.next()?, parts.next()?);
        let expected = self.mark(deed, expiry, nonce, inner);
        let is_ours = is_same_secret(expected.as_bytes(), mark.as_bytes());
        (is_ours && expiry > unix_seconds() && self.spend(nonce)).then_some(inner)
    }

    fn mark(&self, deed: &Deed<'_>, expiry: u64, nonce: &str, inner: &str) -> String {
        let origin = &deed.target.item.origin;
        let mut context = hmac::Context::with_key(&self.seal);
        for part in [
            deed.identity.agent.as_deref().unwrap_or_default(),
            deed.identity.client.as_deref().unwrap_or_default(),
            origin.upstream.as_str(),
            deed.target.upstream_name,
            deed.arguments,
            &expiry.to_string(),
            nonce,
            inner,
        ] {
            context.update(&part.len().to_le_bytes());
            context.update(part.as_bytes());
        }
        URL_SAFE_NO_PAD.encode(context.sign())
    }

    /// Uses a seal up; whether it was unused. Where too many were used lately, none is believed.
    fn spend(&self, nonce: &str) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.len() >= CONSENTS_MAX {
            spent.retain(|_, since| since.elapsed() < CONSENT_MAX);
        }
        spent.len() < CONSENTS_MAX && spent.insert(nonce.into(), Instant::now()).is_none()
    }
}

fn unix_seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

impl Gateway {
    /// Looks at a use of a guarded item before it is made.
    pub(crate) async fn leave_for(
        &self,
        asking: &Asking<'_>,
        view: &View,
        params: &Params,
        target: &Target<'_>,
    ) -> Result<Leave, Error> {
        let (rights, subject) = (&view.scope().rights, Subject::of(target.item));
        let policies = &self.0.policies;
        let name = target.item.name.as_str();
        // In the one form that all readers read alike.
        let arguments = params.arguments().unwrap_or("{}");
        let arguments = match json::canonical::canonical(arguments) {
            Ok(arguments) if arguments.starts_with('{') => arguments,
            Ok(_) => return Err(unfit(name, "they must be an object")),
            Err(fault) => return Err(unfit(name, &fault.to_string())),
        };
        let checked = policies.check_arguments(rights, &subject, &arguments);
        checked.map_err(|problem| unfit(name, &problem))?;
        let Some(by) = policies.decide(rights, &subject, now(), &mut |_| {}) else {
            // A rule that holds at certain times has just ended.
            return Err(view.unknown(target.item.kind, params.name()).into());
        };
        if !policies.needs_consent(rights, &subject, by) {
            return Ok(Leave::Given { params: None, is_sealed: false });
        }
        let identity = &asking.client.caller.identity;
        let deed = Deed { identity, target, arguments: &arguments };
        let question = question(&deed);
        match &asking.request.terms {
            Terms::Own(envelope) => {
                let can_ask =
                    matches!(envelope.capabilities.members(["elicitation"]), Ok([Some(_)]));
                self.leave_alone(&deed, params, can_ask, &question)
            }
            _ => {
                self.ask_person(asking, name, &question).await?;
                // Meanwhile the right to it may have ended.
                let now = asking.client.view();
                let is_same = |found: Target<'_>| found.item.origin == target.item.origin;
                if !found(&now, target.item.kind, params.name()).is_ok_and(is_same) {
                    return Err(view.unknown(target.item.kind, params.name()).into());
                }
                Ok(Leave::Given { params: None, is_sealed: false })
            }
        }
    }

    /// The leave for a request that stands alone: it brings the consent along or has to ask for it.
    fn leave_alone(
        &self,
        deed: &Deed<'_>,
        params: &Params,
        can_ask: bool,
        question: &str,
    ) -> Result<Leave, Error> {
        let name = deed.target.item.name.as_str();
        let brought = params.raw().members(["inputResponses", "requestState"]);
        let fault = |fault| Error::Params { method: "tools/call", fault };
        let [responses, state] = brought.map_err(fault)?;
        let state = state.and_then(json::string);
        let inner = state.as_deref().and_then(|state| self.0.consents.open(deed, state));
        let consented = responses.and_then(|responses| {
            let [response] = json::members(responses.as_bytes(), [KEY]).ok()?;
            let [action] = json::members(response?.as_bytes(), ["action"]).ok()?;
            action.and_then(json::string)
        });
        match (inner, consented.as_deref()) {
            (Some(""), Some("accept")) => {
                let params = without_state(params, None);
                Ok(Leave::Given { params, is_sealed: true })
            }
            (Some(""), _) => Err(refused(name)),
            // The upstream has questions of its own after ours, and this is the answer to them.
            (Some(inner), _) => {
                let params = without_state(params, Some(inner));
                Ok(Leave::Given { params, is_sealed: true })
            }
            (None, _) if !can_ask => Err(cannot_ask(name)),
            (None, _) => {
                let state = json::quote(&self.0.consents.seal(deed, ""));
                let result = format!(
                    r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{{"method":"elicitation/create","params":{question}}}}},"requestState":{state}}}"#
                );
                Ok(Leave::Question(Answer::Whole(Outcome::Result(Raw::trusted(result)))))
            }
        }
    }

    /// Seals what an upstream asks in the course of a use that was consented to, so that the answer
    /// needs no new consent.
    pub(crate) fn seal_state(
        &self,
        asking: &Asking<'_>,
        target: &Target<'_>,
        params: &Params,
        answer: Answer,
    ) -> Answer {
        let Answer::Whole(Outcome::Result(result)) = &answer else { return answer };
        let Ok([Some(r#""input_required""#), state]) =
            result.members(["resultType", "requestState"])
        else {
            return answer;
        };
        let arguments = params.arguments().unwrap_or("{}");
        let Ok(arguments) = json::canonical::canonical(arguments) else { return answer };
        let identity = &asking.client.caller.identity;
        let deed = Deed { identity, target, arguments: &arguments };
        // A mark of its own, since nothing is what our own question travels with.
        let inner = state.map_or("-".to_owned(), |state| format!("+{state}"));
        let sealed = json::quote(&self.0.consents.seal(&deed, &inner));
        let result = match state {
            Some(state) => {
                let span = json::span(result.as_bytes(), state);
                json::splice(result.as_bytes(), &[(span, sealed.as_bytes())])
            }
            None => {
                let member = format!(r#""requestState":{sealed},"#);
                json::splice(result.as_bytes(), &[(1..1, member.as_bytes())])
            }
        };
        Answer::Whole(Outcome::Result(Raw::trusted(result)))
    }

    /// Asks the person behind a client that has a session, and waits.
    async fn ask_person(
        &self,
        asking: &Asking<'_>,
        name: &str,
        question: &str,
    ) -> Result<(), Error> {
        let method = "elicitation/create".to_owned();
        if !asking.client.abilities().answers(&method, None) {
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

/// The item of a kind that a name means.
fn found<'v>(view: &'v View, kind: Kind, name: &'v str) -> Result<Target<'v>, Refusal> {
    match kind {
        Kind::Tool | Kind::Prompt => view.resolve(kind, name),
        Kind::Resource | Kind::Template => view.resolve_uri(name),
    }
}

/// The parameters of the question, in words for a person.
fn question(deed: &Deed<'_>) -> String {
    let agent = deed.identity.agent.as_deref();
    let agent = agent.map_or("The agent".to_owned(), |name| format!("Agent `{}`", shorten(name)));
    let shown: String = tame(deed.arguments).chars().take(SHOWN_ARGUMENTS_CHARS_MAX).collect();
    let cut = if shown.len() < deed.arguments.len() { " … (cut)" } else { "" };
    let (item, asked) = (deed.target.item, deed.target.upstream_name);
    let (verb, name) = match item.kind {
        Kind::Tool => ("call", item.name.to_string()),
        Kind::Prompt => ("use the prompt", item.name.to_string()),
        Kind::Resource | Kind::Template => ("read", shorten(asked)),
    };
    let with = match item.kind {
        Kind::Tool | Kind::Prompt => format!(" with {shown}{cut}"),
        Kind::Resource | Kind::Template => String::new(),
    };
    let server = &item.origin.upstream;
    let message =
        json::quote(&format!("{agent} wants to {verb} `{name}` of server `{server}`{with}"));
    format!(r#"{{"message":{message},"requestedSchema":{{"type":"object","properties":{{}}}}}}"#)
}

/// The parameters with the upstream's own state, if it has one, and without what was meant for us.
fn without_state(params: &Params, inner: Option<&str>) -> Option<Params> {
    let raw = std::str::from_utf8(params.raw().as_bytes()).ok()?;
    let own = inner.and_then(|inner| inner.strip_prefix('+'));
    let is_kept = |key: &str| match key {
        "requestState" => false,
        "inputResponses" => inner.is_some(),
        _ => true,
    };
    let mut kept: Vec<_> = json::entries(raw)
        .ok()?
        .into_iter()
        .filter(|(key, _)| is_kept(key))
        .map(|(key, value)| format!("{}:{value}", json::quote(&key)))
        .collect();
    kept.extend(own.map(|state| format!(r#""requestState":{state}"#)));
    let raw = Raw::trusted(format!("{{{}}}", kept.join(",")));
    Params::parse(Some(&raw), params.key()).ok()
}

fn unfit(name: &str, problem: &str) -> Error {
    Error::Denied(format!("`{name}` may not be called with these arguments: {problem}"))
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
