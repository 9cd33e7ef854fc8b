//! Steps between the eras: what a message of one becomes in the other.
//!
//! Pure, and the only place that knows both. Between equal eras nothing is touched but what the client's own revision
//! does not know.

mod older;

use crate::json::{self, Fault};
use crate::modern::{self, REQUEST_KEYS, SERVER_INFO, SUBSCRIPTION_ID};
use crate::rpc::{self, Code, Outcome, Raw};
use crate::version::{Era, Revision};

/// From whom to whom a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage<'a> {
    pub client: Revision,
    pub upstream: Era,
    /// What the client says of itself, where the upstream must be told in every request:
    /// members of `_meta`, see [`request_members`].
    pub client_says: &'a str,
}

/// The members of `_meta` by which a request of the modern era is made.
pub fn request_members(capabilities: &str, client_info: &str, log_level: Option<&str>) -> String {
    let [version, can, who, level] = REQUEST_KEYS;
    let revision = Revision::NEWEST_MODERN;
    let log_level = log_level.map_or(String::new(), |wanted| format!(r#","{level}":{wanted}"#));
    format!(r#""{version}":"{revision}","{can}":{capabilities},"{who}":{client_info}{log_level}"#)
}

impl Passage<'_> {
    /// The `_meta` of a request as the upstream is to see it; `None` if it can stay as it is.
    pub fn request_meta(&self, meta: Option<&str>) -> Result<Option<String>, Fault> {
        let said = match (self.client.era(), self.upstream) {
            (Era::Legacy, Era::Modern) => Some(self.client_says),
            (Era::Modern, Era::Legacy) => None,
            (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => return Ok(None),
        };
        let Some(meta) = meta else {
            return Ok(said.map(|said| format!("{{{said}}}")));
        };
        let mut members: Vec<String> = said.map(str::to_owned).into_iter().collect();
        for (name, value) in json::entries(meta)? {
            if !REQUEST_KEYS.contains(&&*name) {
                members.push(format!("{}:{value}", json::quote(&name)));
            }
        }
        Ok(Some(format!("{{{}}}", members.join(","))))
    }

    /// Whether a large result can be passed on piece by piece: it needs no change that can only be made to all of it.
    pub fn takes_pieces(&self) -> bool {
        self.client.era() == self.upstream && self.client >= Revision::V2025_06_18
    }

    /// The answer to a request as its client is to see it.
    pub fn answer(&self, method: &str, outcome: Outcome) -> Outcome {
        match (self.upstream, self.client.era(), outcome) {
            (Era::Legacy, Era::Modern, Outcome::Result(result)) => {
                Outcome::Result(complete(&result, is_cacheable(method)))
            }
            (Era::Legacy, Era::Modern, Outcome::Error(error)) => {
                Outcome::Error(modern_error(error))
            }
            (Era::Modern, Era::Legacy, Outcome::Result(result)) => match legacy_result(&result) {
                Outcome::Result(result) => {
                    Outcome::Result(older::downgraded(method, result, self.client))
                }
                refusal @ Outcome::Error(_) => refusal,
            },
            (Era::Legacy, Era::Legacy, Outcome::Result(result)) => {
                Outcome::Result(older::downgraded(method, result, self.client))
            }
            (_, _, outcome) => outcome,
        }
    }
}

/// Whether the result of a method says for how long it holds.
fn is_cacheable(method: &str) -> bool {
    method == "resources/read"
}

/// A result of ours or of a legacy server, marked as final; nobody may keep it.
pub fn complete(result: &Raw, is_cacheable: bool) -> Raw {
    let bytes = result.as_bytes();
    let start = bytes.iter().position(|b| !b.is_ascii_whitespace());
    let Some(start) = start.filter(|start| bytes[*start] == b'{') else { return result.clone() };
    if matches!(result.members(["resultType"]), Ok([Some(_)])) {
        return result.clone();
    }
    let is_empty = bytes[start + 1..].iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'}');
    let hints = if is_cacheable { r#","ttlMs":0,"cacheScope":"private""# } else { "" };
    let comma = if is_empty { "" } else { "," };
    let head = format!(r#""resultType":"complete"{hints}{comma}"#);
    Raw::trusted(json::splice(bytes, &[(start + 1..start + 1, head.as_bytes())]))
}

/// An error of a legacy server in the codes that the modern era has.
fn modern_error(error: Raw) -> Raw {
    let new = match error.members(["code"]) {
        Ok([Some(code @ "-32002")]) => (code, Code::INVALID_PARAMS),
        Ok([Some("-32042")]) => {
            let reason = "the server asks for something at a URL first, which this protocol \
                revision can't be told of yet; use a client of an older revision for it";
            return rpc::error_object(Code::INTERNAL, reason, None);
        }
        _ => return error,
    };
    let span = json::span(error.as_bytes(), new.0);
    let code = new.1.0.to_string();
    Raw::trusted(json::splice(error.as_bytes(), &[(span, code.as_bytes())]))
}

/// A result of a modern server without what only its era knows.
fn legacy_result(result: &Raw) -> Outcome {
    let text = std::str::from_utf8(result.as_bytes()).unwrap_or_default();
    let Ok(members) = json::entries(text) else { return Outcome::Result(result.clone()) };
    let kind = members.iter().find(|(name, _)| name == "resultType");
    let kind = kind.and_then(|(_, value)| json::string(value));
    if let Some(kind) = kind.filter(|kind| kind != "complete") {
        let reason = format!(
            "the server answered with `{kind}`, which can't be carried to the protocol revision \
             of this client yet; use a client of revision {}",
            Revision::NEWEST_MODERN
        );
        return Outcome::Error(rpc::error_object(Code::INTERNAL, &reason, None));
    }
    let of_modern_alone = ["resultType", "ttlMs", "cacheScope"];
    let mut kept = String::with_capacity(text.len());
    for (name, value) in &members {
        let meta = if name == "_meta" { legacy_meta(value) } else { None };
        let value = meta.as_deref().unwrap_or(value);
        if !of_modern_alone.contains(&&**name) && !value.is_empty() {
            kept.push(if kept.is_empty() { '{' } else { ',' });
            kept.push_str(&json::quote(name));
            kept.push(':');
            kept.push_str(value);
        }
    }
    kept.push_str(if kept.is_empty() { "{}" } else { "}" });
    Outcome::Result(Raw::trusted(kept))
}

/// The `_meta` of a result without what only the modern era knows, empty if nothing is left; `None` if it can stay.
fn legacy_meta(meta: &str) -> Option<String> {
    let members = json::entries(meta).ok()?;
    let is_modern =
        |name: &str| name == SERVER_INFO || name == SUBSCRIPTION_ID || REQUEST_KEYS.contains(&name);
    let kept: Vec<_> = members.iter().filter(|(name, _)| !is_modern(name)).collect();
    if kept.len() == members.len() {
        return None;
    }
    let kept: Vec<_> =
        kept.iter().map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    Some(if kept.is_empty() { String::new() } else { format!("{{{}}}", kept.join(",")) })
}

/// A notification of ours on the stream of a subscription.
pub fn on_subscription(method: &str, subscription: &Raw, members: Option<&str>) -> bytes::Bytes {
    let id = String::from_utf8_lossy(subscription.as_bytes());
    let members = members.map_or(String::new(), |members| format!("{members},"));
    let params = format!(r#"{{{members}"_meta":{{"{}":{id}}}}}"#, modern::SUBSCRIPTION_ID);
    rpc::notification(method, Some(params.as_bytes()))
}

#[cfg(test)]
mod tests;
