//! What a record of the gateway says in the trail.

use std::borrow::Cow;
use std::fmt;

use audit::entry::{Call, Decision, Status};
use audit::limits::{TEXT_CHARS_MAX, VALUES_BYTES_MAX};
use audit::shape::Shape;
use catalog::error::Error as Refusal;
use catalog::expansion::Expansion;
use catalog::policy::Subject;
use catalog::snapshot::{Item, Lookup};
use gateway::Gateway;
use gateway::audit::{End, Record, client_name};
use gateway::error::{Error, Trouble};
use gateway::refresh::now;
use mcp::items::Kind;
use mcp::json;
use mcp::text::first_chars;
use mcp::version::Revision;
use serde_json::Value;

/// Where a modern request says who its client is.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

pub struct Describer {
    /// What tells the sessions of this process from those of others.
    run: String,
    has_values: bool,
    gateway: Gateway,
}

impl Describer {
    pub fn new(run: String, has_values: bool, gateway: &Gateway) -> Describer {
        Describer { run, has_values, gateway: gateway.clone() }
    }

    pub fn describe<'a>(&'a self, record: &'a Record) -> Call<'a> {
        let params = record.texts.params().and_then(text).unwrap_or("{}");
        // Not strictly: nobody shall hide what he asks for behind a member that is spelled strangely.
        let members = json::entries(params).unwrap_or_default();
        let member = |wanted: &str| {
            let found = members.iter().rev().find(|(name, _)| name == wanted);
            found.map(|(_, value)| *value)
        };
        let key = if record.method == "resources/read" { "uri" } else { "name" };
        let asked = member(key).and_then(json::string);
        let asked = asked.or(record.asked.as_deref().map(Cow::Borrowed)).unwrap_or_default();
        let (arguments, meta) = (member("arguments"), member("_meta"));
        let item = find(record, &asked);
        let mut call = Call {
            method: record.method.into(),
            agent: record.client.caller.identity.agent.as_deref().map(cut),
            client: client(record, meta),
            profile: record.view.scope().profile.known_name().map(Cow::Borrowed),
            session: format!("{}-{}", self.run, record.session()).into(),
            request: record.texts.id().and_then(text).map_or("".into(), cut),
            arguments: arguments.map_or_else(Shape::default, Shape::Of),
            values: arguments.filter(|_| self.has_values).map(values),
            latency_us: u64::try_from(record.latency.as_micros()).unwrap_or(u64::MAX),
            bytes_in: record.bytes_in as u64,
            revision: record.revision.map_or("", Revision::as_str).into(),
            ..Call::default()
        };
        if let Some(item) = item {
            let origin = &item.origin;
            call.name = Some(item.canonical.as_str().into());
            call.namespace = Some(origin.namespace.as_str().into());
            call.upstream = Some(origin.upstream.as_str().into());
            call.item = Some((&*origin.name).into());
            call.ref_id = Some(item.ref_id().as_str().into());
        } else if is_control(record, &asked) {
            call.name = Some(asked.clone());
        }
        call.asked = match asked {
            Cow::Borrowed(asked) => cut(asked),
            Cow::Owned(asked) => cut_own(&asked),
        };
        tell_end(&mut call, record);
        if let Some(item) = item.filter(|item| !record.view.ceiling().holds(item)) {
            // To the client it did not exist.
            call.decision = Decision::Denied;
            call.rule = self.rule(record, item);
        }
        call
    }

    /// The last word of the rules on an item.
    fn rule(&self, record: &Record, item: &Item) -> Option<Cow<'static, str>> {
        let (rights, subject) = (&record.view.scope().rights, Subject::of(item));
        let mut last = None;
        let mut note = |step: fmt::Arguments<'_>| last = Some(cut_own(&step.to_string()));
        self.gateway.policies().decide(rights, &subject, now(), &mut note);
        last
    }
}

/// What a record is about, visible to its client or not.
fn find<'a>(record: &'a Record, asked: &str) -> Option<&'a Item> {
    if is_control(record, asked) {
        return None;
    }
    // First as the client could see it, then in all that there is.
    let catalog = record.view.catalog();
    let look_up = |kind| match record.view.look_up(kind, asked) {
        Lookup::Found(item) => Some(item),
        Lookup::Unknown => match catalog.look_up(kind, asked) {
            Lookup::Found(item) => Some(item),
            Lookup::Unknown | Lookup::Ambiguous(_) => None,
        },
        Lookup::Ambiguous(_) => None,
    };
    if let Some(upstream) = &record.origin {
        return catalog.resource_of(upstream, asked, |_| true);
    }
    match record.method {
        "tools/call" => look_up(Kind::Tool),
        "prompts/get" => look_up(Kind::Prompt),
        _ => look_up(Kind::Resource).or_else(|| match catalog.expanded_from(asked, |_| true) {
            Expansion::Found((item, _)) => Some(item),
            Expansion::Ambiguous(_) | Expansion::Unknown => None,
        }),
    }
}

/// Whether it is about a control tool, which no upstream has.
fn is_control(record: &Record, asked: &str) -> bool {
    let control = record.view.scope().surface.control_names();
    record.method == "tools/call" && control.contains(&asked)
}

fn client<'a>(record: &'a Record, meta: Option<&str>) -> Option<Cow<'a, str>> {
    let info = meta.and_then(|meta| json::members(meta.as_bytes(), [CLIENT_INFO]).ok()?[0]);
    if let Some(named) = info.and_then(client_name) {
        return Some(cut_own(&named));
    }
    record.client.introduction().and_then(|known| known.client.as_deref()).map(cut)
}

fn tell_end(call: &mut Call<'_>, record: &Record) {
    call.decision = Decision::Allowed;
    let outcome = record.texts.outcome();
    match &record.end {
        End::Answered { is_result: true, bytes } => {
            call.bytes_out = *bytes as u64;
            call.unread = outcome.is_none();
            let members = |result| json::members(result, ["isError", "resultType"]);
            call.status = match outcome.map(members) {
                Some(Ok([Some("true"), _])) => Status::ToolError,
                Some(Ok([_, Some(r#""input_required""#)])) => Status::Pending,
                _ => Status::Ok,
            };
        }
        End::Answered { is_result: false, bytes } => {
            call.bytes_out = *bytes as u64;
            call.status = Status::UpstreamError;
            let error = outcome.map(|error| json::members(error, ["message"]));
            let message = error.and_then(|error| error.ok()?[0]).and_then(json::string);
            call.error = message.as_deref().map(cut_own);
        }
        End::Streamed { bytes, failure } => {
            call.bytes_out = *bytes;
            call.unread = true;
            call.status = failure.as_ref().map_or(Status::Ok, status);
            call.error = failure.as_ref().map(|error| cut_own(&error.to_string()));
        }
        End::Failed(error) => {
            (call.decision, call.status) = (decision(error), status(error));
            call.error = Some(cut_own(&error.to_string()));
        }
    }
}

fn decision(error: &Error) -> Decision {
    match error {
        Error::Catalog(Refusal::Unknown { .. }) => Decision::Unknown,
        Error::Catalog(Refusal::Inactive { .. }) => Decision::Inactive,
        Error::Catalog(Refusal::Ambiguous { .. }) => Decision::Ambiguous,
        Error::Denied(_) => Decision::Denied,
        // The model has used a control tool wrongly, but it may use it.
        Error::Upstream(_) | Error::Promised(_) | Error::Cancelled | Error::Control(_) => {
            Decision::Allowed
        }
        _ => Decision::Refused,
    }
}

fn status(error: &Error) -> Status {
    match (error, error.trouble()) {
        (_, Some(Trouble::Silent)) => Status::Timeout,
        // A Python tool, or its schema, says no.
        _ if error.failure().is_some() => Status::ToolError,
        (_, Some(Trouble::Failed | Trouble::Busy)) => Status::UpstreamFailed,
        (Error::Cancelled, _) => Status::Cancelled,
        (Error::Control(_), _) => Status::ToolError,
        _ => Status::Refused,
    }
}

/// Arguments as they are; as text where a number does not fit, and not at all where they are large.
fn values(arguments: &str) -> Value {
    if arguments.len() > VALUES_BYTES_MAX {
        return Value::String(format!("{} bytes", arguments.len()));
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn cut(text: &str) -> Cow<'_, str> {
    first_chars(text, TEXT_CHARS_MAX).into()
}

/// The same of a text that does not live as long.
fn cut_own(text: &str) -> Cow<'static, str> {
    Cow::Owned(cut(text).into_owned())
}
