//! Toolman's JSON: `servers` by name, and who may see what of them. TF-02, TF-12
//!
//! The files of MCP clients are translated into it (`clients`); a `client-config.json` has `localServers`, each with its `tools`, and `remoteTools` of a gateway elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use catalog::naming::Prefix;
use catalog::patterns::Patterns;
use catalog::policy::Listed;
use catalog::surface::Surface;
use mcp::names::Namespace;
use mcp::text::shorten;
use toml::de::DeTable;
use upstream::launch::Launch;
use upstream::limits::RESTART_DELAY_MAX;
use upstream::remote::{Headers, Remote, Transport};
use upstream::supervisor::{Restart, Settings};

use crate::fault::Faults;
use crate::mentions::Of;
use crate::reader::Section;
use crate::tools_toml::server::Circumstances;
use crate::tools_toml::{self, server};
use crate::{Config, Server, Surroundings, clients, performance, session_context, toolception};

/// Reads the file's table. What is returned counts only if no fault was found.
pub fn read(
    table: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Config {
    // A file of a client, which keeps more in it than servers.
    let is_shared = clients::is_meant(table, surroundings.file);
    let folder = clients::folder(surroundings.folder);
    let environment = |name: &str| {
        (surroundings.environment)(name).or_else(|| known_to_clients(name, &folder, surroundings))
    };
    let shared =
        Surroundings { file: surroundings.file, folder: &folder, environment: &environment };
    let surroundings = if is_shared { &shared } else { surroundings };
    let client = is_shared.then(|| clients::translate(table, surroundings, faults));
    let (table, usual) = match &client {
        Some(client) => (&client.table, Surface::Toolset),
        None => (table, Surface::Filter),
    };
    let translated = toolception::is_meant(table).then(|| toolception::translate(table, faults));
    let (table, usual) = match &translated {
        Some((translated, surface)) => (translated, *surface),
        None => (table, usual),
    };
    if translated.is_some() {
        faults.spell(&toolception::SPELLINGS);
    }
    let mut top = Section::new(table, "at the top").shared(is_shared);
    let performance = performance::read(&mut top, faults);
    let session_context = session_context::read_json(&mut top, surroundings, faults);
    let circumstances = Circumstances { surroundings, context: session_context.as_ref() };
    let mut drafts = Vec::new();
    let mut exposed = BTreeMap::new();
    let remote = remote_tools(&mut top, surroundings, faults);
    let keys = ["servers", "localServers"];
    let found = keys.into_iter().find_map(|key| top.get(key));
    if found.is_none() && remote.is_none() {
        faults.report(None, "no `servers`; name at least one, under `servers` or `mcpServers`");
    }
    let entries = found.and_then(|value| value.entries(faults)).unwrap_or_default();
    for (index, (name, value)) in entries.iter().enumerate() {
        let draft = server::read_named(name, value, index + 1, (circumstances, is_shared), faults);
        if let Some(patterns) = draft.as_ref().and_then(|draft| draft.tools.clone()) {
            let at = format!("servers.{}.tools", shorten(name)).into();
            exposed.insert(Box::from(*name), Listed { at, patterns });
        }
        drafts.extend(draft);
    }
    // What other programs keep in the same file.
    for key in ["$schema", "version", "description", "metadata"] {
        _ = top.get(key);
    }
    let (mut servers, _) =
        server::finish(drafts, circumstances.context, performance.call_timeout, faults);
    if let Some((server, listed)) = remote {
        exposed.insert(server.settings.name.as_str().into(), listed);
        servers.push(server);
    }
    let mut config = tools_toml::rest(top, (servers, Vec::new()), usual, surroundings, faults);
    hide(&client.map(|client| client.hidden).unwrap_or_default(), &mut config);
    if !exposed.is_empty() {
        // Servers that say nothing show all that they have, as these files mean it.
        let policies = &mut config.rulebook.policies;
        policies.fallback.allows_unknown_tools.get_or_insert(true);
        for (server, listed) in exposed {
            policies.exposed.entry(server).or_insert(listed);
        }
    }
    Config { session_context, performance, ..config }
}

/// What clients know by a name that is no variable.
fn known_to_clients(name: &str, folder: &Path, surroundings: &Surroundings<'_>) -> Option<String> {
    let text = |path: &Path| path.to_str().map(str::to_owned);
    match name {
        "workspaceFolder" => text(folder),
        "workspaceFolderBasename" => text(Path::new(folder.file_name()?)),
        "userHome" => (surroundings.environment)("HOME"),
        "pathSeparator" => Some("/".to_owned()),
        _ => None,
    }
}

/// Tools that a client hides are outside of every ceiling.
fn hide(tools: &[String], config: &mut Config) {
    if let Ok(patterns) = Patterns::parse(tools)
        && !patterns.is_empty()
    {
        let dangerous = config.rulebook.policies.dangerous.get_or_insert_default();
        dangerous.at = format!("{} excludeTools", dangerous.at).trim_start().into();
        dangerous.patterns = dangerous.patterns.or(&patterns);
    }
}

/// The gateway elsewhere of a `client-config.json`, whose address is in the environment, and what is to be
/// seen of it: `remoteTools`, all if there are none.
fn remote_tools(
    top: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<(Server, Listed)> {
    let value = top.get("remoteTools")?;
    let of = Of::ItemsOf("remote".into());
    let mut patterns = tools_toml::patterns_of(&value, Some(&of), faults);
    if patterns.is_empty() {
        patterns = Patterns::parse(&["*"]).unwrap_or_default();
    }
    let names = ["TOOLMAN_SERVER_URL", "MCP_TOOLMAN_SERVER_URL"];
    let address = names.into_iter().find_map(|name| (surroundings.environment)(name));
    let url = address.and_then(|address| address.parse().ok());
    let Some(url) = url else {
        let fix = "set TOOLMAN_SERVER_URL to the address of that gateway";
        value.report(&format!("is about a gateway elsewhere; {fix}"), faults);
        return None;
    };
    let mut headers = Headers::default();
    if let Some(token) = (surroundings.environment)("TOOLMAN_TOKEN")
        && headers.add("Authorization", &format!("Bearer {}", token.trim())).is_err()
    {
        value.report("can't be reached with TOOLMAN_TOKEN, which is no token; set it anew", faults);
    }
    let remote = Remote { url, transport: Transport::Auto, headers };
    let settings = Settings {
        restart: Restart::OnFailure { delay_max: RESTART_DELAY_MAX },
        ..Settings::new("remote".parse().ok()?, Launch::Url(remote))
    };
    let server = Server {
        namespace: Namespace::default(),
        prefix: Prefix::default(),
        settings,
        written: serde_json::Map::default(),
        runs_in_shell: false,
    };
    Some((server, Listed { at: "remoteTools".into(), patterns }))
}
