//! What the operator wants of the HTTP door: flags win over the environment, that over the file.

use std::path::Path;

use catalog::scope::Scope;
use config::http::{Http, Secret};
use config::variables::Variables;
use gateway::auth::{Keys, sha256};
use gateway::place::Place;
use mcp::version::Spoken;
use rustix::process::{Resource, getrlimit, setrlimit};
use server::http::Settings;
use server::http::routes::Route;
use server::http::tls::Tls;

use crate::cli::Misuse;
use crate::host::Plan;

/// Open files that we ask for; servers inherit the number, and some take their time for more.
const FILES_WANTED: u64 = 8_192;

/// The door as the environment and the file say, without TLS.
pub fn settings(plan: &Plan, mut keys: Keys) -> Result<Settings, Misuse> {
    admit_agents(&mut keys, &plan.http);
    let mut settings = plain(&plan.http, &plan.variables, keys);
    let place = |(path, scope): &(String, Scope)| (path.clone(), Place::new(scope.clone()));
    settings.places = plan.endpoints.iter().map(place).collect();
    settings.routes = plan.routes.iter().map(route).collect::<Result<_, _>>()?;
    Ok(settings)
}

/// Lets those in whom the file names; what each may do there is a matter of policies.
fn admit_agents(keys: &mut Keys, http: &Http) {
    for token in &http.tokens {
        let sha256 = match &token.secret {
            Secret::Sha256(sha256) => *sha256,
            Secret::Text(text) => sha256(text),
        };
        keys.add(sha256, Some(&token.agent));
    }
    keys.trust(http.trusted_peers.clone());
}

/// A door with nothing but `/mcp`, for those alone whom the keys know.
pub fn plain(http: &Http, variables: &Variables, keys: Keys) -> Settings {
    let mut settings = Settings::new(keys);
    // TD-112
    settings.has_sse = variables.has_sse.or(http.legacy_sse).unwrap_or(true);
    settings.allowed_origins =
        variables.origins.clone().unwrap_or_else(|| http.allowed_origins.clone());
    settings.allowed_hosts.clone_from(&http.allowed_hosts);
    settings.base_path.clone_from(&http.base_path);
    let session_ttl = variables.session_ttl.or(http.session_ttl);
    settings.session_ttl = session_ttl.unwrap_or(settings.session_ttl);
    settings.awaits_all = http.awaits_all;
    settings.connections_max = server::http::connections_max(raise_file_limit());
    settings
}

/// The revisions that are switched on. TD-100
pub fn spoken(http: &Http, variables: &Variables) -> Spoken {
    let named = variables.versions.clone().or_else(|| http.supported_versions.clone());
    named.unwrap_or_default()
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
