//! What a record of the gateway says in the trail.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use audit::entry::{Call, Decision, Status};
use audit::limits::{TEXT_CHARS_MAX, VALUES_BYTES_MAX};
use audit::shape;
use bytes::Bytes;
use catalog::error::Error as Refusal;
use catalog::policy::Subject;
use catalog::snapshot::{Item, Lookup};
use gateway::Gateway;
use gateway::audit::{End, Record, client_name};
use gateway::error::{Error, Trouble};
use gateway::refresh::now;
use mcp::items::Kind;
use mcp::json;
use mcp::names::UpstreamName;
use serde_json::Value;

/// Where a modern request says who its client is.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

pub struct Describer {
    /// What tells the sessions of this process from those of others.
    run: String,
    has_values: bool,
    namespaces: HashMap<UpstreamName, String>,
    gateway: Gateway,
}

impl Describer {
    pub fn new(run: String, has_values: bool, gateway: &Gateway) -> Describer {
        let namespaces = gateway
            .upstreams()
            .map(|(namespace, upstream)| (upstream.name().clone(), namespace.as_str().to_owned()));
        Describer { run, has_values, namespaces: namespaces.collect(), gateway: gateway.clone() }
    }

    pub fn describe(&self, record: &Record) -> Call {
        let params = record.params.as_ref().and_then(text).unwrap_or("{}");
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
            method: record.method.to_owned(),
            asked: cut(&asked),
            agent: record.client.caller.identity.agent.as_deref().map(cut),
            client: client(record, meta),
            session: format!("{}-{}", self.run, record.session()),
            request: record.id.as_ref().and_then(text).map_or(String::new(), cut),
            arguments: arguments.map_or(Value::Null, shape::of),
            values: arguments.filter(|_| self.has_values).map(values),
            latency_us: u64::try_from(record.latency.as_micros()).unwrap_or(u64::MAX),
            bytes_in: record.bytes_in as u64,
            revision: record.revision.map_or(String::new(), |revision| revision.to_string()),
            ..Call::default()
        };
        if let Some(item) = item {
            call.name = Some(item.name.to_string());
            call.namespace = self.namespaces.get(&item.origin.upstream).cloned();
            call.upstream = Some(item.origin.upstream.to_string());
            call.item = Some(item.origin.name.to_string());
            call.ref_id = Some(item.ref_id().to_string());
        } else if is_control(record, &asked) {
            call.name = Some(asked.into_owned());
        }
        tell_end(&mut call, &record.end);
        if let Some(item) = item.filter(|item| !record.view.ceiling().holds(item)) {
            // To the client it did not exist.
            call.decision = Decision::Denied;
            call.rule = self.rule(record, item);
        }
        call
    }

    /// The last word of the rules on an item.
    fn rule(&self, record: &Record, item: &Item) -> Option<String> {
        let (rights, subject) = (&record.view.scope().rights, Subject::of(item));
        let mut last = None;
        let mut note = |step: fmt::Arguments<'_>| last = Some(cut(&step.to_string()));
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
    let look_up = |kind| match (record.view.look_up(kind, asked), catalog.look_up(kind, asked)) {
        (Lookup::Found(item), _) | (Lookup::Unknown, Lookup::Found(item)) => Some(item),
        _ => None,
    };
    match record.method {
        "tools/call" => look_up(Kind::Tool),
        "prompts/get" => look_up(Kind::Prompt),
        _ => look_up(Kind::Resource)
            .or_else(|| catalog.expanded_from(asked, |_| true).map(|(item, _)| item)),
    }
}

/// Whether it is about a control tool, which no upstream has.
fn is_control(record: &Record, asked: &str) -> bool {
    let control = record.view.scope().surface.control_names();
    record.method == "tools/call" && control.contains(&asked)
}

fn client(record: &Record, meta: Option<&str>) -> Option<String> {
    let introduced = record.client.introduction().and_then(|known| known.client.as_deref());
    let info = meta.and_then(|meta| json::members(meta.as_bytes(), [CLIENT_INFO]).ok()?[0]);
    info.and_then(client_name).as_deref().or(introduced).map(cut)
}

fn tell_end(call: &mut Call, end: &End) {
    call.decision = Decision::Allowed;
    match end {
        End::Answered { is_result: true, outcome, bytes } => {
            call.bytes_out = *bytes as u64;
            call.unread = outcome.is_none();
            let members = |result| json::members(result, ["isError", "resultType"]);
            call.status = match outcome.as_ref().map(|result| members(result)) {
                Some(Ok([Some("true"), _])) => Status::ToolError,
                Some(Ok([_, Some(r#""input_required""#)])) => Status::Pending,
                _ => Status::Ok,
            };
        }
        End::Answered { is_result: false, outcome, bytes } => {
            call.bytes_out = *bytes as u64;
            call.status = Status::UpstreamError;
            let error = outcome.as_ref().map(|error| json::members(error, ["message"]));
            let message = error.and_then(|error| error.ok()?[0]).and_then(json::string);
            call.error = message.as_deref().map(cut);
        }
        End::Streamed { bytes, failure } => {
            call.bytes_out = *bytes;
            call.unread = true;
            call.status = failure.as_ref().map_or(Status::Ok, status);
            call.error = failure.as_ref().map(|error| cut(&error.to_string()));
        }
        End::Failed(error) => {
            (call.decision, call.status) = (decision(error), status(error));
            call.error = Some(cut(&error.to_string()));
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
        Error::Upstream(_) | Error::Cancelled | Error::Control(_) => Decision::Allowed,
        _ => Decision::Refused,
    }
}

fn status(error: &Error) -> Status {
    match (error, error.trouble()) {
        (_, Some(Trouble::Silent)) => Status::Timeout,
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

fn text(bytes: &Bytes) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
