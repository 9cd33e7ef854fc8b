//! `tools.toml`, the native format.

mod audit;
mod clients;
mod dock;
mod endpoints;
pub mod http;
mod names;
mod python;
mod remote;
pub mod routes;
pub mod server;
mod texts;
mod tokens;

use catalog::patterns::Patterns;
use catalog::scope::Scope;
use catalog::snapshot::Rules;
use catalog::surface::Surface;
use mcp::names::UriStyle;
use mcp::text::shorten;
use toml::de::{DeTable, DeValue};

use crate::dock::Named;
use crate::fault::Faults;
use crate::limits::PATTERNS_MAX;
use crate::mentions::{Mentions, Of};
use crate::performance::Performance;
use crate::reader::{Section, Value};
use crate::tools_toml::server::Circumstances;
use crate::{
    Config, Server, Surroundings, exposure, performance, policies, session_context, tasks, toolsets,
};

/// The keys that are often written below `[[servers]]` by mistake.
const TOP_KEYS: [&str; 7] = [
    "active_toolsets",
    "distinguish_clients",
    "inactive",
    "selection",
    "surface",
    "unlisted_calls",
    "uri_style",
];

/// Reads the file's table. What is returned counts only if no fault was found.
pub fn read(
    table: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Config {
    let mut top = Section::new(table, "at the top");
    let performance = performance::read(&mut top, faults);
    let session_context = session_context::read(&mut top, surroundings, faults);
    let circumstances = Circumstances { surroundings, context: session_context.as_ref() };
    let has_dock = top.get("dock").is_some();
    let servers = match top.get("servers") {
        None if has_dock => Default::default(),
        written => servers(written.as_ref(), &performance, circumstances, faults),
    };
    let config = rest(top, servers, Surface::default(), surroundings, faults);
    Config { session_context, performance, ..config }
}

/// Reads what all formats have besides their servers.
pub fn rest(
    mut top: Section<'_>,
    (servers, folders): (Vec<Server>, Vec<Named>),
    usual: Surface,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Config {
    let starts_on = top.get("active_toolsets").map(|value| patterns(&value, faults));
    let uri_style = top.get("uri_style").and_then(|value| {
        let styles = [("underscore", UriStyle::Underscore), ("rfc", UriStyle::Rfc)];
        value.choice(&styles, faults)
    });
    let (surfaces, surface) = surfaces(&mut top, usual, faults);
    let profiles = clients::read(&mut top, faults);
    let http = top.get("http").map(|value| http::read(&value, surroundings, faults));
    let mut http = http.unwrap_or_default();
    if let Some(value) = top.get("tokens") {
        http.tokens = tokens::read(&value, surroundings, faults);
    }
    let toolsets = top.get("toolsets").map(|value| toolsets::read(&value, faults));
    let toolsets = toolsets.unwrap_or_default();
    let allows_stale = top.get("allow_stale_refs").and_then(|value| value.boolean(faults));
    let requires = top.get("requires").map(|value| toolsets::requires(&value, faults));
    let permissions = top.get("permissions");
    let permissions = permissions.map(|value| toolsets::permissions(&value, &toolsets, faults));
    let rulebook = policies::read(&mut top, surroundings, faults);
    let tasks = top.get("task_based_tool_selection");
    let tasks = tasks.map(|value| tasks::read(&value, faults)).unwrap_or_default();
    let audit = top.get("audit").map(|value| audit::read(&value, surroundings, faults));
    let dock = top.get("dock").map(|value| dock::read(&value, surroundings, faults));
    let endpoints = top.get("endpoints");
    let namespaces = servers.iter().map(|server| &server.namespace);
    let namespaces: Vec<_> =
        namespaces.chain(folders.iter().map(|folder| &folder.namespace)).collect();
    let endpoints =
        endpoints.map(|value| endpoints::read(&value, &surfaces, surface, &namespaces, faults));
    let endpoints = endpoints.unwrap_or_default();
    let places: Vec<_> = endpoints.iter().map(|(path, _): &(String, Scope)| &**path).collect();
    let routes = top.get("routes").map(|value| routes::read(&value, &places, faults));
    let mut shown = vec![surface];
    shown.extend(endpoints.iter().map(|(_, scope): &(String, Scope)| scope.surface));
    let exposure = exposure::read(&mut top, &toolsets, &shown, faults);
    top.close(&[], faults);
    Config {
        servers,
        folders,
        rules: Rules {
            starts_on: starts_on.unwrap_or_default(),
            uri_style: uri_style.unwrap_or_default(),
            toolsets,
            exposure,
            allows_stale_references: allows_stale.unwrap_or(false),
            requires: requires.unwrap_or_default().into(),
        },
        surface,
        rulebook,
        permissions: permissions.unwrap_or_default(),
        profiles,
        performance: Performance::default(),
        session_context: None,
        tasks,
        http,
        endpoints,
        routes: routes.unwrap_or_default(),
        audit,
        dock,
        warnings: Vec::new(),
        mentions: Mentions::default(),
    }
}

/// All surfaces by their names, and the one that is shown where nothing else is said.
fn surfaces(
    top: &mut Section<'_>,
    usual: Surface,
    faults: &mut Faults<'_>,
) -> ([(&'static str, Surface); 7], Surface) {
    let inactive = top.get("inactive").and_then(|value| value.choice(&clients::INACTIVE, faults));
    let activate = Surface::Activate { inactive: inactive.unwrap_or_default() };
    let surfaces = [
        ("activate", activate),
        ("filter", Surface::Filter),
        ("namespace", Surface::Namespace),
        ("permission", Surface::Permission),
        ("toolset", Surface::Toolset),
        ("dynamic", Surface::Dynamic),
        ("static", Surface::Static),
    ];
    let surface = top.get("surface").and_then(|value| value.choice(&surfaces, faults));
    let surface = surface.unwrap_or(if usual == Surface::default() { activate } else { usual });
    (surfaces, surface)
}

/// Patterns of items of any server.
pub fn patterns(value: &Value<'_>, faults: &mut Faults<'_>) -> Patterns {
    patterns_of(value, Some(&Of::Items), faults)
}

/// Patterns of what is told of running servers, if it is.
pub fn patterns_of(value: &Value<'_>, of: Option<&Of>, faults: &mut Faults<'_>) -> Patterns {
    let (places, patterns): (Vec<_>, Vec<_>) = value.strings("pattern", faults).into_iter().unzip();
    if patterns.len() > PATTERNS_MAX {
        let count = patterns.len();
        let problem = format!("has {count} patterns; use at most {PATTERNS_MAX}, with `*` in them");
        value.report(&problem, faults);
        return Patterns::default();
    }
    let errors = match Patterns::parse(&patterns) {
        Ok(read) => {
            for ((place, text), of) in places.iter().zip(&patterns).zip(of.into_iter().cycle()) {
                place.mention(text, of.clone(), faults);
            }
            return read;
        }
        Err(errors) => errors,
    };
    for error in errors {
        let (pattern, reason) = (shorten(&error.pattern), error.reason);
        let problem = format!("is `{pattern}`, which can't be read: {reason}");
        let place = places.get(error.index).unwrap_or(value);
        place.report(&problem, faults);
    }
    Patterns::default()
}

fn servers(
    value: Option<&Value<'_>>,
    performance: &Performance,
    circumstances: Circumstances<'_>,
    faults: &mut Faults<'_>,
) -> (Vec<Server>, Vec<Named>) {
    let elements = match value.map(|value| (value, value.node())) {
        Some((value, DeValue::Table(_))) => {
            value.report("is a table; write `[[servers]]`, in double brackets", faults);
            return Default::default();
        }
        Some((value, _)) => value.elements("server", faults),
        None => Some(Vec::new()),
    };
    if elements.as_ref().is_some_and(Vec::is_empty) {
        let example = "[[servers]]\ncommand = \"uvx pjpd\"";
        faults.report(None, format!("no servers; add at least one:\n{example}"));
    }
    let mut drafts = Vec::new();
    for (index, element) in elements.unwrap_or_default().iter().enumerate() {
        drafts.extend(server::read(element, index + 1, circumstances, faults));
    }
    server::finish(drafts, circumstances.context, performance.call_timeout, faults)
}

#[cfg(test)]
mod tests;
