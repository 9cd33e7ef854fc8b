//! The cores that a manager can have: one in this process, and one elsewhere that is reached over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::policy::Rights;
use catalog::scope::Scope;
use catalog::surface::Surface;
use config::http::{Http, weakness};
use gateway::Gateway;
use gateway::error::Error;
use gateway::place::Place;
use gateway::request::Request;
use manager::core::{Answer, Called, Core, Served, Unreached};
use mcp::items::Kind;
use mcp::json;
use mcp::rpc::{Outcome, Raw};
use serde_json::Value;
use upstream::post::{get, post};
use upstream::remote::{Headers, Url};

use crate::cli::manager::Manager;
use crate::cli::{Cli, Misuse};
use crate::data_dir;
use crate::reload::Reloader;

/// Where a core is served unless it is said otherwise.
const USUAL: &str = "http://127.0.0.1:8000";
/// Packages may have to be installed meanwhile.
const RELOAD_TIME_MAX: Duration = Duration::from_mins(10);
const CALL_TIME_MAX: Duration = Duration::from_mins(10);
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);
/// Namespaces whose tools are counted.
const NAMESPACES_MAX: usize = 1_000;

/// The gateway of this process.
pub struct Local {
    pub gateway: Gateway,
    pub reloader: Arc<Reloader>,
}

impl Core for Local {
    fn reload(&self) -> Answer<'_, Value> {
        Box::pin(async {
            let done = self.reloader.reload().await;
            serde_json::from_str(&done).map_err(|error| Unreached(error.to_string()))
        })
    }

    fn call<'a>(
        &'a self,
        namespace: &'a str,
        tool: &'a str,
        input: &'a Value,
    ) -> Answer<'a, Called> {
        Box::pin(self.call_in(namespace, tool, input))
    }

    fn served(&self) -> Answer<'_, Served> {
        let tools = self.gateway.catalog().items(Kind::Tool).len();
        let served = Served { namespaces: self.gateway.namespaces().len(), tools };
        Box::pin(async move { Ok(served) })
    }
}

impl Local {
    async fn call_in(
        &self,
        namespace: &str,
        tool: &str,
        input: &Value,
    ) -> Result<Called, Unreached> {
        let mut known = self.gateway.namespaces().into_iter();
        let Some(found) = known.find(|known| known.as_str() == namespace) else {
            return Err(unknown(namespace));
        };
        let scope = Scope { namespace: Some(found), ..Scope::of(Surface::Namespace) };
        let place = Place::new(scope.with(Rights::operator()));
        let client = self.gateway.principal(&gateway::auth::local(None), &place, None);
        let params = format!(r#"{{"name":{},"arguments":{input}}}"#, json::quote(tool));
        let params = Some(Raw::trusted(params));
        let request = Request::new(Raw::trusted("1"), "tools/call".to_owned(), params);
        // Nobody listens to what comes before the answer.
        let (outbox, _) = gateway::outbox::channel();
        let answer = self.gateway.handle(&client, &request, &client.outlet(outbox)).await;
        let outcome = match answer {
            Ok(answer) => answer.whole().await,
            Err(error) => return Ok(failed(&error)),
        };
        Ok(match outcome {
            Ok(Outcome::Result(result)) => Called::Result(value(result.as_bytes())),
            Ok(Outcome::Error(error)) => {
                let error = value(error.as_bytes());
                let message = error["message"].as_str().unwrap_or("the tool failed");
                Called::Failed { error: message.to_owned(), traceback: None }
            }
            Err(error) => failed(&error.into()),
        })
    }
}

fn failed(error: &Error) -> Called {
    let Some(failure) = error.failure() else {
        return Called::Failed { error: error.to_string(), traceback: None };
    };
    let details = failure.details.as_ref().map(|details| value(details.as_bytes()));
    Called::Failed {
        error: failure.message.clone(),
        traceback: details.as_ref().and_then(|details| traceback(&details["traceback"])),
    }
}

fn traceback(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn unknown(namespace: &str) -> Unreached {
    Unreached(format!("the core does not serve `{namespace}` yet; call `reload_core` first"))
}

/// A core elsewhere.
pub struct Remote {
    url: Url,
    token: String,
    /// What the manager shows besides, if it has it.
    manager_token: Option<String>,
}

impl Remote {
    /// The core as the environment says, else as the data directory does. TD-145 … TD-147
    ///
    /// It is shown the token that it wants, which need not be `own`, the manager's.
    pub fn find(cli: &Cli, asked: &Manager, http: &Http, own: &str) -> Result<Remote, Misuse> {
        let folder = data_dir::folder(cli)?;
        let kept = |file: &str| {
            let text = std::fs::read_to_string(folder.join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        let url = std::env::var("CORE_URL").ok().or_else(|| kept("core.url"));
        let url = url.unwrap_or_else(|| USUAL.to_owned());
        let url = url.trim().parse().map_err(|error| Misuse(format!("CORE_URL {error}")))?;
        let given = std::env::var("MANAGER_INTERNAL_TOKEN").ok();
        if let Some(weakness) = given.as_deref().and_then(weakness) {
            return Err(Misuse(format!("MANAGER_INTERNAL_TOKEN {weakness}")));
        }
        let manager_token = given.or_else(|| kept("manager.token"));
        Ok(Remote { url, token: core_token(asked, http, own)?, manager_token })
    }

    pub fn port(&self) -> u16 {
        let usual = if self.url.is_https() { 443 } else { 80 };
        self.url.uri().port_u16().unwrap_or(usual)
    }

    fn at(&self, path: &str) -> Result<Url, Unreached> {
        self.url.join(path).ok_or_else(|| Unreached("CORE_URL is no address".to_owned()))
    }

    fn headers(&self, more: &[(&str, &str)]) -> Result<Headers, Unreached> {
        let mut headers = Headers::default();
        let token = format!("Bearer {}", self.token);
        for (name, value) in [("Authorization", token.as_str())].iter().chain(more) {
            let wrong = |error| Unreached(format!("the field {name} {error}"));
            headers.add(name, value).map_err(wrong)?;
        }
        Ok(headers)
    }

    fn silent(&self, problem: &str) -> Unreached {
        let (host, port) = (self.url.uri().host().unwrap_or_default(), self.port());
        Unreached(format!(
            "the core at {host}:{port} {problem}; start it with `toolman serve`, or set CORE_URL"
        ))
    }

    fn refused(&self, status: u16) -> Unreached {
        match status {
            401 | 403 => self.silent(
                "refuses: CORE_TOKEN, or without it BEARER_TOKEN, must be the token of the core, both need the same \
                 MANAGER_INTERNAL_TOKEN, and the address of the manager must be in INTERNAL_ALLOWED_CIDRS of the core",
            ),
            status => self.silent(&format!("answers with the status {status}")),
        }
    }

    async fn reload_there(&self) -> Result<Value, Unreached> {
        let Some(token) = &self.manager_token else {
            let reason =
                "there is no token to show to the core; set MANAGER_INTERNAL_TOKEN for both";
            return Err(Unreached(reason.into()));
        };
        let headers = self.headers(&[("X-Manager-Token", token)])?;
        let body = Bytes::from_static(b"{}");
        let answer = post(&self.at("/reload")?, &headers, &body, RELOAD_TIME_MAX).await;
        match answer.map_err(|problem| self.silent(&problem))? {
            (200, body) => Ok(value(&body)),
            (status, _) => Err(self.refused(status)),
        }
    }

    async fn call_there(
        &self,
        namespace: &str,
        tool: &str,
        input: &Value,
    ) -> Result<Called, Unreached> {
        let headers = self.headers(&[("X-Namespace", namespace)])?;
        let url = self.at(&format!("/tools/{}", encoded(tool)))?;
        let body = Bytes::from(input.to_string());
        let answer = post(&url, &headers, &body, CALL_TIME_MAX).await;
        let (status, body) = answer.map_err(|problem| self.silent(&problem))?;
        let answer = value(&body);
        let error = &answer["error"];
        match (status, error["message"].as_str()) {
            (200, _) => Ok(Called::Result(answer)),
            (404, Some(_)) if error["code"] == "not_found" => Err(unknown(namespace)),
            (401 | 403, _) | (_, None) => Err(self.refused(status)),
            (_, Some(message)) => Ok(Called::Failed {
                error: message.to_owned(),
                traceback: traceback(&error["details"]["traceback"]),
            }),
        }
    }

    async fn look(&self) -> Result<Served, Unreached> {
        let found = self.got("/namespaces", &[]).await?;
        let namespaces = found["namespaces"].as_array().cloned().unwrap_or_default();
        let mut served = Served { namespaces: namespaces.len(), tools: 0 };
        for namespace in namespaces.iter().filter_map(Value::as_str).take(NAMESPACES_MAX) {
            let listed = self.got("/tools", &[("X-Namespace", namespace)]).await?;
            served.tools += listed["tools"].as_array().map_or(0, Vec::len);
        }
        Ok(served)
    }

    async fn got(&self, path: &str, more: &[(&str, &str)]) -> Result<Value, Unreached> {
        let answer = get(&self.at(path)?, &self.headers(more)?, LOOK_TIME_MAX).await;
        match answer.map_err(|problem| self.silent(&problem))? {
            (200, body) => Ok(value(&body)),
            (status, _) => Err(self.refused(status)),
        }
    }
}

impl Core for Remote {
    fn reload(&self) -> Answer<'_, Value> {
        Box::pin(self.reload_there())
    }

    fn call<'a>(
        &'a self,
        namespace: &'a str,
        tool: &'a str,
        input: &'a Value,
    ) -> Answer<'a, Called> {
        Box::pin(self.call_there(namespace, tool, input))
    }

    fn served(&self) -> Answer<'_, Served> {
        Box::pin(self.look())
    }
}

/// What the core is shown: what is named for it, else what opens both.
fn core_token(asked: &Manager, http: &Http, own: &str) -> Result<String, Misuse> {
    let (token, source) = match (&asked.core_token_file, std::env::var("CORE_TOKEN").ok()) {
        (Some(file), _) => (data_dir::read_token(file)?, "the token in `--core-token-file`"),
        (None, Some(token)) => (token, "CORE_TOKEN"),
        (None, None) => {
            return Ok(data_dir::given_token(None, http)?.unwrap_or_else(|| own.to_owned()));
        }
    };
    match weakness(&token) {
        Some(weakness) => Err(Misuse(format!("{source} {weakness}"))),
        None => Ok(token),
    }
}

/// A name as a segment of a path.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let segment = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    name.bytes().map(segment).collect()
}
