//! What the operator wants of the HTTP door: flags win over the environment, that over the file.

use std::path::Path;
use std::time::Duration;

use catalog::scope::Scope;
use config::http::{Http, Secret};
use gateway::auth::{Keys, sha256};
use gateway::place::Place;
use mcp::version::{Revision, Spoken};
use rustix::process::{Resource, getrlimit, setrlimit};
use server::http::Settings;
use server::http::routes::Route;
use server::http::tls::Tls;

use crate::cli::Misuse;
use crate::host::Plan;

/// Open files that we ask for; servers inherit the number, and some take their time for more.
const FILES_WANTED: u64 = 8_192;

/// The door as the environment and the file say, without TLS.
pub fn settings(plan: &Plan, keys: Keys) -> Result<Settings, Misuse> {
    let mut settings = plain(&plan.http, keys)?;
    let place = |(path, scope): &(String, Scope)| (path.clone(), Place::new(scope.clone()));
    settings.places = plan.endpoints.iter().map(place).collect();
    settings.routes = plan.routes.iter().map(route).collect::<Result<_, _>>()?;
    Ok(settings)
}

/// The same with nothing but `/mcp`.
pub fn plain(http: &Http, mut keys: Keys) -> Result<Settings, Misuse> {
    for token in &http.tokens {
        let sha256 = match &token.secret {
            Secret::Sha256(sha256) => *sha256,
            Secret::Text(text) => sha256(text),
        };
        keys.add(sha256, Some(&token.agent));
    }
    keys.trust(http.trusted_peers.clone());
    let mut settings = Settings::new(keys);
    settings.has_sse = has_sse(http);
    settings.allowed_origins.clone_from(&http.allowed_origins);
    settings.allowed_hosts.clone_from(&http.allowed_hosts);
    settings.session_ttl = session_ttl(http)?.unwrap_or(settings.session_ttl);
    settings.connections_max = server::http::connections_max(raise_file_limit());
    Ok(settings)
}

/// A path of the operator's own. TC-32
fn route(route: &config::Route) -> Result<Route, Misuse> {
    let method = route.method.parse();
    let method = method.map_err(|_| Misuse(format!("`{}` is no method", route.method)))?;
    Ok(Route {
        method,
        path: route.path.clone(),
        tool: route.tool.clone(),
        description: route.description.clone(),
        request: route.request.clone(),
        response: route.response.clone(),
    })
}

/// TLS from the files that were given on the command line, else in the configuration.
pub fn tls(flags: Option<(&Path, &Path)>, http: &Http) -> Result<Option<Tls>, Misuse> {
    let configured = http.tls.as_ref().map(|(certificate, key)| (&**certificate, &**key));
    let Some((certificate, key)) = flags.or(configured) else { return Ok(None) };
    Tls::load(certificate, key).map(Some).map_err(|error| Misuse(error.to_string()))
}

/// The revisions that are switched on.
pub fn spoken(http: &Http) -> Result<Spoken, Misuse> {
    // TD-100
    let Ok(text) = std::env::var("MCP_SUPPORTED_VERSIONS") else {
        return Ok(http.supported_versions.clone().unwrap_or_default());
    };
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let revisions: Option<Vec<_>> = names.map(Revision::parse).collect();
    revisions.and_then(Spoken::new).ok_or_else(|| {
        let known = Spoken::default().names();
        Misuse(format!(
            "MCP_SUPPORTED_VERSIONS is no list of versions; use some of {known}, with commas"
        ))
    })
}

fn has_sse(http: &Http) -> bool {
    // TD-112
    match std::env::var("ENABLE_LEGACY_MCP") {
        Ok(value) => !matches!(&*value, "false" | "0"),
        Err(_) => http.legacy_sse.unwrap_or(true),
    }
}

fn session_ttl(http: &Http) -> Result<Option<Duration>, Misuse> {
    // TD-94
    let Ok(text) = std::env::var("MCP_SESSION_TTL_HOURS") else { return Ok(http.session_ttl) };
    let hours = text.trim().parse().ok().filter(|hours: &f64| *hours > 0.0 && *hours <= 24.0);
    match hours.map(|hours| Duration::try_from_secs_f64(hours * 3600.0)) {
        Some(Ok(ttl)) => Ok(Some(ttl)),
        _ => {
            let reason = "MCP_SESSION_TTL_HOURS is no time; use hours, more than 0 and at most 24";
            Err(Misuse(reason.into()))
        }
    }
}

/// Raises the number of files that may be open, as far as we want and may; gives the number.
fn raise_file_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(FILES_WANTED, |most| most.min(FILES_WANTED));
    if limit.current.is_some_and(|current| current < wanted) {
        let before = limit.current;
        limit.current = Some(wanted);
        if setrlimit(Resource::Nofile, limit).is_err() {
            limit.current = before;
        }
    }
    limit.current.and_then(|current| usize::try_from(current).ok()).unwrap_or(usize::MAX)
}
