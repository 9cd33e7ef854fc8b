//! What we say to a server ourselves: the handshake, and the reading of its lists.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use mcp::abilities::Abilities;
use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::modern::{self, SERVER_INFO, TASKS};
use mcp::rpc::{self, Outcome, Raw};
use mcp::text::{first_chars, shorten, tame};
use mcp::translate::request_members;
use mcp::version::{Era, Revision};
use tokio::time::Instant;

use crate::connection::{Call, Connection};
use crate::error::Error;
use crate::limits::{
    ANSWERED_ERROR_CHARS_MAX, CALL_TIMEOUT, ITEMS_MAX, LIST_BYTES_MAX, LIST_TIME_MAX, PAGES_MAX,
};

/// Which era to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EraChoice {
    /// Found out by asking.
    #[default]
    Auto,
    Only(Era),
}

/// What a server said of itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    pub revision: Revision,
    pub capabilities: Raw,
    pub instructions: Option<String>,
    /// Its name and version, as it wrote them.
    pub server_info: Option<Raw>,
    /// Whether it runs tasks, in the manner of its era.
    pub runs_tasks: bool,
    /// What it declares although it does not know the methods for it.
    pub unimplemented: Vec<&'static str>,
}

impl Introduction {
    /// What a Python worker would say that has these lists besides its tools.
    pub fn of_worker(offers: &[String]) -> Introduction {
        let mut capabilities = r#"{"tools":{"listChanged":true},"logging":{}"#.to_owned();
        for capability in ["resources", "prompts"] {
            if offers.iter().any(|offer| offer == capability) {
                capabilities += &format!(r#","{capability}":{{}}"#);
            }
        }
        Introduction {
            revision: Revision::NEWEST_LEGACY,
            capabilities: Raw::trusted(capabilities + "}"),
            instructions: None,
            server_info: None,
            runs_tasks: false,
            unimplemented: Vec::new(),
        }
    }

    pub fn declares(&self, capability: &'static str) -> bool {
        matches!(self.capabilities.members([capability]), Ok([Some(_)]))
    }

    /// Whether it supports an extension.
    pub fn extends_to(&self, extension: &'static str) -> bool {
        modern::extends(&self.capabilities, extension)
    }

    /// Whether it declares a part of a capability, such as `listChanged` of `tools`.
    pub fn declares_part(&self, capability: &'static str, part: &'static str) -> bool {
        let Ok([Some(capability)]) = self.capabilities.members([capability]) else {
            return false;
        };
        matches!(json::members(capability.as_bytes(), [part]), Ok([Some("true")]))
    }
}

/// What every request of ours says of itself in the modern era.
static META: LazyLock<String> =
    LazyLock::new(|| format!(r#""_meta":{{{}}}"#, request_members("{}", client_info(), None)));

/// As whom this program introduces itself, once that is settled.
static CLIENT_INFO: OnceLock<String> = OnceLock::new();

/// Has this program introduce itself as the one client that it speaks for; `info` is an object. To be called first.
pub fn introduce_as(info: &str) {
    _ = CLIENT_INFO.set(info.to_owned());
}

fn client_info() -> &'static str {
    let own = || format!(r#"{{"name":"toolman","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
    CLIENT_INFO.get_or_init(own)
}

/// Introduces us to a server whose wire is a pipe.
///
/// The handshake goes first: every server of both eras that is known has it, while some old ones
/// never recover from a question that they do not know.
pub async fn introduce(
    connection: &Connection,
    era: EraChoice,
    abilities: Abilities,
    wait: Duration,
) -> Result<Introduction, Problem> {
    if era == EraChoice::Only(Era::Modern) {
        return discover(connection, wait).await;
    }
    let problem = match initialize(connection, abilities, wait).await {
        Ok(introduction) => return Ok(introduction),
        Err(problem) => problem,
    };
    let is_answer = matches!(problem, Problem::MethodNotFound { .. } | Problem::Refused { .. });
    if era == EraChoice::Auto
        && is_answer
        && let Ok(introduction) = discover(connection, wait).await
    {
        return Ok(introduction);
    }
    Err(problem)
}

/// The handshake of the legacy era: `initialize` and `notifications/initialized`.
pub async fn initialize(
    connection: &Connection,
    abilities: Abilities,
    wait: Duration,
) -> Result<Introduction, Problem> {
    connection.speak(None);
    let members = format!(
        r#""protocolVersion":"{}","capabilities":{},"clientInfo":{}"#,
        Revision::NEWEST_LEGACY,
        abilities.declaration(),
        client_info()
    );
    let result = ask(connection, "initialize", &members, wait).await?;
    let introduction = read_introduction(&result).map_err(Problem::Unusable)?;
    connection.speak(Some(introduction.revision));
    let initialized = rpc::notification("notifications/initialized", None);
    connection.notify(initialized).await?;
    Ok(introduction)
}

/// The question of the modern era: `server/discover`.
pub async fn discover(connection: &Connection, wait: Duration) -> Result<Introduction, Problem> {
    connection.speak(Some(Revision::NEWEST_MODERN));
    let result = match ask(connection, "server/discover", "", wait).await {
        // It may want to be asked for a revision of those that it names.
        Err(Problem::Refused { error, .. }) if supports_ours(&error) => {
            ask(connection, "server/discover", "", wait).await?
        }
        result => result?,
    };
    read_discovery(&result).map_err(Problem::Unusable)
}

/// Whether an error about the revision names ours among those that would do.
fn supports_ours(error: &Raw) -> bool {
    let Ok([Some("-32022"), Some(data)]) = error.members(["code", "data"]) else {
        return false;
    };
    let Ok([Some(supported)]) = json::members(data.as_bytes(), ["supported"]) else {
        return false;
    };
    json::elements(supported).is_ok_and(|revisions| revisions.iter().any(is_ours))
}

fn is_ours(revision: &&str) -> bool {
    json::string(revision).as_deref() == Some(Revision::NEWEST_MODERN.as_str())
}

fn read_introduction(result: &Raw) -> Result<Introduction, String> {
    let wanted = ["protocolVersion", "capabilities", "instructions", "serverInfo"];
    let [version, capabilities, instructions, server_info] = result
        .members(wanted)
        .map_err(|fault| format!("its answer to `initialize` can't be read: {fault}"))?;
    let version = version.and_then(json::string).ok_or("it names no protocol revision")?;
    let revision = Revision::parse(&version)
        .filter(|revision| revision.era() == Era::Legacy)
        .ok_or_else(|| format!("it speaks protocol revision `{}` only", shorten(&version)))?;
    let capabilities = capabilities
        .filter(|capabilities| capabilities.starts_with('{'))
        .ok_or("its answer to `initialize` declares no capabilities")?;
    let capabilities = result.part(capabilities);
    Ok(Introduction {
        revision,
        runs_tasks: matches!(capabilities.members(["tasks"]), Ok([Some(_)])),
        capabilities,
        instructions: instructions.and_then(json::string).map(String::from),
        server_info: server_info.map(|part| result.part(part)),
        unimplemented: Vec::new(),
    })
}

fn read_discovery(result: &Raw) -> Result<Introduction, String> {
    let unreadable = |fault| format!("its answer to `server/discover` can't be read: {fault}");
    let wanted = ["supportedVersions", "capabilities", "instructions", "_meta"];
    let [versions, capabilities, instructions, meta] =
        result.members(wanted).map_err(unreadable)?;
    let versions = json::elements(versions.unwrap_or("[]")).map_err(unreadable)?;
    if !versions.iter().any(is_ours) {
        return Err(format!("it speaks protocol revisions {} only", shorten(&versions.join(", "))));
    }
    let capabilities = capabilities
        .filter(|capabilities| capabilities.starts_with('{'))
        .ok_or("its answer to `server/discover` declares no capabilities")?;
    let [server_info] = match meta {
        Some(meta) => json::members(meta.as_bytes(), [SERVER_INFO]).map_err(unreadable)?,
        None => [None],
    };
    let capabilities = result.part(capabilities);
    Ok(Introduction {
        revision: Revision::NEWEST_MODERN,
        runs_tasks: modern::extends(&capabilities, TASKS),
        capabilities,
        instructions: instructions.and_then(json::string).map(String::from),
        server_info: server_info.map(|part| result.part(part)),
        unimplemented: Vec::new(),
    })
}

/// Reads the lists that belong to `capability` anew, all pages of them; after which time they
/// may be other ones without notice.
pub async fn read_lists(
    connection: &Connection,
    introduction: &Introduction,
    capability: &'static str,
    inventory: &mut Inventory,
) -> Result<Option<Duration>, Problem> {
    let mut age = None;
    for kind in Kind::ALL.into_iter().filter(|kind| kind.capability() == capability) {
        if introduction.declares(kind.capability()) {
            let list = match read_list(connection, kind).await {
                // A list can be asked for again without harm.
                Err(Problem::Lost(_)) => read_list(connection, kind).await,
                list => list,
            };
            let list = list?;
            inventory.set(kind, list.items);
            age = list.age.into_iter().chain(age).min();
        }
    }
    Ok(age.filter(|_| !introduction.declares_part(capability, "listChanged")))
}

/// A list as a server gives it.
#[derive(Default)]
pub struct List {
    pub items: Vec<Raw>,
    /// For how long it may be taken for true.
    pub age: Option<Duration>,
}

pub async fn read_list(connection: &Connection, kind: Kind) -> Result<List, Problem> {
    let method = kind.list_method();
    let mut list = List::default();
    let mut bytes = 0;
    let mut cursor: Option<String> = None;
    let started = Instant::now();
    for _ in 0..PAGES_MAX {
        let members = cursor.as_ref().map(|cursor| format!(r#""cursor":{cursor}"#));
        let page = ask(connection, method, &members.unwrap_or_default(), CALL_TIMEOUT).await;
        let page = match page {
            Ok(page) => page,
            // Many servers declare resources but know no templates.
            Err(Problem::MethodNotFound { .. }) if kind == Kind::Template => return Ok(list),
            Err(problem) => return Err(problem),
        };
        let unreadable =
            |fault: json::Fault| Problem::Unusable(format!("its answer to `{method}`: {fault}"));
        let wanted = [kind.list_member(), "nextCursor", "ttlMs", "resultType"];
        let [items, next, age, result_type] = page.members(wanted).map_err(unreadable)?;
        if result_type.is_some_and(|kind| kind != "\"complete\"") {
            return Err(Problem::Unusable(format!("its answer to `{method}` is no list")));
        }
        let age = age.and_then(|age| age.parse().ok()).filter(|age| *age > 0);
        list.age = age.map(Duration::from_millis).into_iter().chain(list.age).min();
        for item in json::elements(items.unwrap_or("[]")).map_err(unreadable)? {
            bytes += item.len();
            if list.items.len() >= ITEMS_MAX || bytes > LIST_BYTES_MAX {
                tracing::warn!("`{method}` is too long; what follows is left out");
                return Ok(list);
            }
            // Copied, so that one item does not keep the whole page in memory.
            list.items.push(Raw::trusted(Bytes::copy_from_slice(item.as_bytes())));
        }
        match next {
            Some(next) if next.starts_with('"') && cursor.as_deref() != Some(next) => {
                cursor = Some(next.to_owned());
            }
            _ => return Ok(list),
        }
        if started.elapsed() > LIST_TIME_MAX {
            break;
        }
    }
    tracing::warn!("`{method}` has too many pages; the rest is left out");
    Ok(list)
}

/// The `data` of the error with which a Toolman tells the one that started it that both serve the same.
pub const ITSELF: &str = r#"{"toolman":"itself"}"#;

fn is_of_ourselves(error: &Raw) -> bool {
    matches!(error.members(["data"]), Ok([Some(data)]) if data == ITSELF)
}

/// Why a question of ours has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("it does not know the method `{method}`")]
    MethodNotFound { method: String },
    #[error("it answered `{method}` with the error {}", shown(.error))]
    Refused { method: String, code: i64, error: Raw },
    #[error("it is Toolman itself, which serves the same configuration already")]
    Itself,
    #[error("it did not answer `{method}` within {waited:?}")]
    Silent { method: String, waited: Duration },
    #[error("it answered `{method}` with HTTP status {status}{said}{}", advice(*.status))]
    Status { method: String, status: u16, said: String },
    /// It can't be reached at all.
    #[error("{0}")]
    Gone(String),
    #[error("{0}")]
    Lost(String),
    /// It has answered, but not so that it can be used.
    #[error("{0}")]
    Unusable(String),
}

/// An error as it was sent, on one line and not without end.
fn shown(error: &Raw) -> String {
    let text = tame(&String::from_utf8_lossy(error.as_bytes()));
    match first_chars(&text, ANSWERED_ERROR_CHARS_MAX) {
        whole if whole.len() == text.len() => text,
        start => format!("{start}…"),
    }
}

/// What to do about a status.
fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "; see whether `headers` hold the right credentials",
        404 | 405 => "; see whether `url` is right",
        _ => "",
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match error {
            Error::Down { reason, .. } => Problem::Lost(reason),
            error => Problem::Lost(error.to_string()),
        }
    }
}

/// Asks a question of ours; `members` are those of its parameters.
pub async fn ask(
    connection: &Connection,
    method: &str,
    members: &str,
    timeout: Duration,
) -> Result<Raw, Problem> {
    let params = |_: &str| match (connection.era(), members) {
        (Era::Legacy, "") => None,
        (Era::Legacy, members) => Some(format!("{{{members}}}").into_bytes()),
        (Era::Modern, "") => Some(format!("{{{}}}", *META).into_bytes()),
        (Era::Modern, members) => Some(format!("{{{},{members}}}", *META).into_bytes()),
    };
    let call = Call {
        method,
        subject: None,
        params: &params,
        mirrored: &[],
        may_come: false,
        relay: None,
        progress_token: None,
        timeout,
    };
    let method = method.to_owned();
    let answer = match connection.call(&call).await {
        Ok(answer) => answer.whole().await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(Outcome::Result(result)) => Ok(result),
        Ok(Outcome::Error(error)) => {
            let code = error.members(["code"]).ok().and_then(|[code]| code?.parse().ok());
            match code {
                Some(-32601) => Err(Problem::MethodNotFound { method }),
                _ if is_of_ourselves(&error) => Err(Problem::Itself),
                code => Err(Problem::Refused { method, code: code.unwrap_or(0), error }),
            }
        }
        Err(Error::Timeout { waited, .. }) => Err(Problem::Silent { method, waited }),
        Err(Error::Status { status, said, .. }) => Err(Problem::Status { method, status, said }),
        Err(Error::Down { reason, .. }) if connection.is_lost() => Err(Problem::Gone(reason)),
        Err(error) => Err(error.into()),
    }
}
