//! What we say to a server ourselves: the handshake, and the reading of its lists.

use std::time::Duration;

use bytes::Bytes;
use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::rpc::{self, Outcome, Raw};
use mcp::text::shorten;
use mcp::version::{Era, Revision};
use tokio::time::Instant;

use crate::connection::{Call, Connection};
use crate::error::Error;
use crate::limits::{CALL_TIMEOUT, ITEMS_MAX, LIST_BYTES_MAX, LIST_TIME_MAX, PAGES_MAX};

/// What a server said of itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    pub revision: Revision,
    pub capabilities: Raw,
    pub instructions: Option<String>,
}

impl Introduction {
    pub fn declares(&self, capability: &'static str) -> bool {
        matches!(self.capabilities.members([capability]), Ok([Some(_)]))
    }

    /// Whether it supports an extension.
    pub fn extends_to(&self, extension: &'static str) -> bool {
        let extensions = self.capabilities.members(["extensions"]);
        let Ok([Some(extensions)]) = extensions else { return false };
        matches!(json::members(extensions.as_bytes(), [extension]), Ok([Some(_)]))
    }

    /// Whether it tells when a resource changes.
    pub fn can_subscribe(&self) -> bool {
        let Ok([Some(resources)]) = self.capabilities.members(["resources"]) else { return false };
        matches!(json::members(resources.as_bytes(), ["subscribe"]), Ok([Some("true")]))
    }
}

/// `initialize` and `notifications/initialized`.
pub async fn introduce(connection: &Connection, wait: Duration) -> Result<Introduction, String> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{{"roots":{{"listChanged":true}},"sampling":{{}},"elicitation":{{}}}},"clientInfo":{{"name":"toolman","version":"{}"}}}}"#,
        Revision::NEWEST_LEGACY,
        env!("CARGO_PKG_VERSION")
    );
    let result = ask(connection, "initialize", Some(params.into_bytes()), wait).await;
    let result = result.map_err(|problem| problem.to_string())?;
    let introduction = read_introduction(&result)?;
    let initialized = rpc::notification("notifications/initialized", None);
    connection.notify(initialized).await.map_err(|error| error.to_string())?;
    Ok(introduction)
}

fn read_introduction(result: &Raw) -> Result<Introduction, String> {
    let [version, capabilities, instructions] = result
        .members(["protocolVersion", "capabilities", "instructions"])
        .map_err(|fault| format!("its answer to `initialize` can't be read: {fault}"))?;
    let version = version.and_then(json::string).ok_or("it names no protocol revision")?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Legacy)
        .ok_or_else(|| format!("it speaks protocol revision `{}` only", shorten(&version)))?;
    if !capabilities.is_some_and(|capabilities| capabilities.starts_with('{')) {
        return Err("its answer to `initialize` declares no capabilities".into());
    }
    Ok(Introduction {
        revision,
        capabilities: capabilities.map_or_else(|| Raw::trusted("{}"), |part| result.part(part)),
        instructions: instructions.and_then(json::string).map(String::from),
    })
}

/// Reads the lists that belong to `capability` anew, all pages of them.
pub async fn read_lists(
    connection: &Connection,
    introduction: &Introduction,
    capability: &str,
    inventory: &mut Inventory,
) -> Result<(), String> {
    for kind in Kind::ALL.into_iter().filter(|kind| kind.capability() == capability) {
        if introduction.declares(kind.capability()) {
            inventory.set(kind, read_list(connection, kind).await?);
        }
    }
    Ok(())
}

async fn read_list(connection: &Connection, kind: Kind) -> Result<Vec<Raw>, String> {
    let method = kind.list_method();
    let mut items = Vec::new();
    let mut bytes = 0;
    let mut cursor: Option<String> = None;
    let started = Instant::now();
    for _ in 0..PAGES_MAX {
        let params = cursor.as_ref().map(|cursor| format!(r#"{{"cursor":{cursor}}}"#).into_bytes());
        let page = match ask(connection, method, params, CALL_TIMEOUT).await {
            Ok(page) => page,
            // Many servers declare resources but know no templates.
            Err(Problem::MethodNotFound) if kind == Kind::Template => return Ok(items),
            Err(problem) => return Err(problem.to_string()),
        };
        let unreadable = |fault: json::Fault| format!("its answer to `{method}`: {fault}");
        let [list, next] = page.members([kind.list_member(), "nextCursor"]).map_err(unreadable)?;
        for item in json::elements(list.unwrap_or("[]")).map_err(unreadable)? {
            bytes += item.len();
            if items.len() >= ITEMS_MAX || bytes > LIST_BYTES_MAX {
                tracing::warn!("`{method}` is too long; what follows is left out");
                return Ok(items);
            }
            // Copied, so that one item does not keep the whole page in memory.
            items.push(Raw::trusted(Bytes::copy_from_slice(item.as_bytes())));
        }
        match next {
            Some(next) if next.starts_with('"') && cursor.as_deref() != Some(next) => {
                cursor = Some(next.to_owned());
            }
            _ => return Ok(items),
        }
        if started.elapsed() > LIST_TIME_MAX {
            break;
        }
    }
    tracing::warn!("`{method}` has too many pages; the rest is left out");
    Ok(items)
}

/// Why a question of ours has no answer.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("it does not know the method")]
    MethodNotFound,
    #[error("it answered `{method}` with the error {error}")]
    Refused { method: String, error: String },
    #[error("it did not answer `{method}` within {waited:?}")]
    Silent { method: String, waited: Duration },
    #[error("{0}")]
    Lost(String),
}

async fn ask(
    connection: &Connection,
    method: &str,
    params: Option<Vec<u8>>,
    timeout: Duration,
) -> Result<Raw, Problem> {
    let params = |_: &str| params.clone();
    let call =
        Call { method, subject: None, params: &params, relay: None, progress_token: None, timeout };
    let method = method.to_owned();
    match connection.call(call).await {
        Ok(Outcome::Result(result)) => Ok(result),
        Ok(Outcome::Error(error)) => match error.members(["code"]) {
            Ok([Some("-32601")]) => Err(Problem::MethodNotFound),
            _ => {
                let error = shorten(&String::from_utf8_lossy(error.as_bytes()));
                Err(Problem::Refused { method, error })
            }
        },
        Err(Error::Timeout { waited, .. }) => Err(Problem::Silent { method, waited }),
        Err(Error::Down { reason, .. }) => Err(Problem::Lost(reason)),
        Err(error) => Err(Problem::Lost(error.to_string())),
    }
}
