//! `toolman plan`: from a task to the least configuration for it.

mod offers;
mod render;
mod rules;

use std::path::Path;

use anyhow::Context as _;
use catalog::policy::Subject;
use config::{Config, Surroundings};
use mcp::items::Kind;
use mcp::text::tame;
use serde_json::{Map, Value, json};

use crate::cli::{Cli, Misuse, Plan as Arguments, PlanFormat};
use crate::host::{self, Host, stop_on_signals};
use crate::plan::offers::Offer;
use crate::plan::render::Plan;
use crate::plan::rules::{Need, Task, needs};
use crate::{terminal, unset};

/// A larger description of a task is no description.
const TASK_BYTES_MAX: u64 = 1024 * 1024;

pub async fn run(cli: &Cli, arguments: &Arguments) -> anyhow::Result<i32> {
    let task = task(arguments)?;
    let (config, absent) = unset::configuration(cli)?.unzip();
    let offers = match &config {
        Some(config) if lacks_servers(&task, config) => {
            Box::pin(offers::of(cli, config.clone(), absent.unwrap_or_default())).await?
        }
        _ => Vec::new(),
    };
    let (plan, notes) = make(task, config.as_ref(), &offers);
    for note in &notes {
        terminal::complain(note);
    }
    let text = match (&arguments.configmap, arguments.format) {
        (Some(name), _) => plan.config_map(checked(name)?),
        (None, PlanFormat::Json) => format!("{:#}\n", plan.json()),
        (None, PlanFormat::Toml) => plan.toml(),
    };
    if arguments.check {
        return check(cli, &plan).await;
    }
    terminal::print(&text)?;
    Ok(0)
}

/// What is to be done, from the flags or from a document.
fn task(arguments: &Arguments) -> anyhow::Result<Task> {
    let Some(path) = &arguments.taskrun else {
        let service = arguments.service.clone().unwrap_or_default();
        let description = arguments.task.clone().unwrap_or_default();
        return Ok(Task { service, description });
    };
    let wrong = |problem: String| Misuse(format!("{}: {problem}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > TASK_BYTES_MAX {
        return Err(wrong("over 1 MiB; name a document that describes a task".into()).into());
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let document: Value = serde_saphyr::from_str(&text).map_err(|error| {
        wrong(format!("no YAML: {}", tame(error.to_string().lines().next().unwrap_or_default())))
    })?;
    let spec = document.get("spec").unwrap_or(&document);
    let first = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| spec.get(*key).and_then(Value::as_str));
        found.map(str::to_owned)
    };
    let service = first(&["serviceName", "service_name", "service"]);
    let described = first(&["taskDescription", "description", "task", "title", "details"]);
    let files = spec.get("markdownFiles").or(spec.get("markdown_files")).and_then(Value::as_array);
    let contents = files.into_iter().flatten().filter_map(|file| file.get("content")?.as_str());
    let described: Vec<_> = described.iter().map(String::as_str).chain(contents).collect();
    if service.is_none() && described.is_empty() {
        let fix = "give `spec.serviceName` and `spec.taskDescription`";
        return Err(wrong(format!("it says nothing of a task; {fix}")).into());
    }
    let service = arguments.service.clone().or(service).unwrap_or_default();
    let description = arguments.task.clone().unwrap_or_else(|| described.join("\n"));
    Ok(Task { service, description })
}

/// Whether tools that a task needs are of servers that the configuration has under no such name.
fn lacks_servers(task: &Task, config: &Config) -> bool {
    let is_there = |need: &Need| {
        config.servers.iter().any(|server| server.settings.name.as_str() == need.server)
    };
    !needs(task, &config.tasks).iter().all(is_there)
}

/// The plan, and what was left out of it for which reason.
fn make(task: Task, config: Option<&Config>, offers: &[Offer]) -> (Plan, Vec<String>) {
    let patterns = config.map_or(&[][..], |config| &config.tasks);
    let (mut kept, mut notes): (Vec<Need>, Vec<String>) = (Vec::new(), Vec::new());
    let known = config.map_or_else(built_in_servers, written_servers);
    for mut need in needs(&task, patterns) {
        if !known.iter().any(|(name, _)| *name == need.server) {
            offers::resolve(&mut need, offers);
        }
        let Need { server, tool, .. } = &need;
        if !known.iter().any(|(name, _)| name == server) {
            let problem = format!("there is no server `{server}`, and no other offers that");
            notes.push(format!("left out: `{server}:{tool}`; {problem}"));
        } else if let Some(reason) = config.and_then(|config| forbidden(config, &need)) {
            notes.push(format!("left out: `{server}:{tool}`; {reason}"));
        } else {
            kept.push(need);
        }
    }
    let is_needed = |name: &str| kept.iter().any(|need| need.server == name);
    let servers = known.into_iter().filter(|(name, _)| is_needed(name)).collect();
    let security = config.and_then(|config| config.rulebook.security.clone());
    (Plan { task, servers, needs: kept, security }, notes)
}

/// Why a configuration does not allow a tool to be planned, if it does not.
fn forbidden(config: &Config, need: &Need) -> Option<String> {
    let policies = &config.rulebook.policies;
    let (server, namespace) = (need.server.parse().ok()?, need.server.parse().ok()?);
    let exposed = format!("{}_{}", need.server, need.tool);
    let subject = Subject::new(&server, &namespace, &need.tool, &exposed);
    if let Some(list) = policies.dangerous.as_ref().filter(|list| list.has(&subject)) {
        return Some(format!("`{}` has it", list.at));
    }
    // What a pattern of the file adds, it adds to what everybody may see.
    let list = policies.exposed.get(need.server.as_str())?;
    let is_added = need.why.contains("pattern `");
    (!is_added && !list.has(&subject)).then(|| format!("`{}` does not have it", list.at))
}

/// The servers of a configuration as they are written, with the keys of JSON.
fn written_servers(config: &Config) -> Vec<(String, Map<String, Value>)> {
    let servers = config.servers.iter();
    servers
        .map(|server| {
            let mut written = server.written.clone();
            for key in ["name", "namespace"] {
                written.remove(key);
            }
            if let Some(cwd) = written.remove("cwd") {
                written.insert("workingDirectory".to_owned(), cwd);
            }
            // A command without arguments is one for the shell, unless its format is JSON.
            if server.runs_in_shell
                && let Some(command) = written.remove("command")
            {
                written.insert("command".to_owned(), json!("/bin/sh"));
                written.insert("args".to_owned(), json!(["-c", command]));
            }
            (server.settings.name.to_string(), written)
        })
        .collect()
}

/// What is planned with where there is no configuration.
fn built_in_servers() -> Vec<(String, Map<String, Value>)> {
    let servers = [
        (
            "github",
            json!({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"],
                "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}"}}),
        ),
        ("taskmaster", json!({"command": "npx", "args": ["-y", "task-master-ai"]})),
        (
            "filesystem",
            json!({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]}),
        ),
    ];
    let object = |server: Value| server.as_object().cloned().unwrap_or_default();
    servers.map(|(name, server)| (name.to_owned(), object(server))).into()
}

/// A name that Kubernetes accepts.
fn checked(name: &str) -> Result<&str, Misuse> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_name = !name.is_empty() && name.len() <= 253 && name.chars().all(is_allowed);
    if is_name && !name.starts_with(['-', '.']) && !name.ends_with(['-', '.']) {
        return Ok(name);
    }
    Err(Misuse("`--configmap` needs a name of lowercase letters, digits and `-`".into()))
}

/// Starts the planned servers and tells which planned tools they do not have.
async fn check(cli: &Cli, plan: &Plan) -> anyhow::Result<i32> {
    let text = plan.json().to_string();
    let folder = std::env::current_dir().context("there is no working directory")?;
    let surroundings = Surroundings {
        file: Path::new("the plan"),
        folder: &folder,
        environment: &|name| std::env::var(name).ok(),
    };
    let config = config::parse(&text, &surroundings).map_err(|faults| host::misuse(&faults))?;
    let stop = stop_on_signals()?;
    let host = Host::of(cli, config).await?;
    let outcome = tokio::select! {
        () = terminal::wait_for_all(&host.gateway) => Ok(missing(plan, &host)),
        () = stop.cancelled() => Err(130),
    };
    host.gateway.stop().await;
    let missing = match outcome {
        Ok(missing) => missing,
        Err(code) => return Ok(code),
    };
    let mut text = String::new();
    for need in &missing {
        text += &format!("`{}` has no tool `{}` ({})\n", need.server, need.tool, need.why);
    }
    let count = plan.needs.len() - missing.len();
    terminal::print(&format!("{text}{count} of {} planned tools are there\n", plan.needs.len()))?;
    Ok(i32::from(!missing.is_empty()))
}

fn missing<'p>(plan: &'p Plan, host: &Host) -> Vec<&'p Need> {
    let catalog = host.gateway.catalog();
    let is_there = |need: &&Need| {
        catalog.items(Kind::Tool).iter().any(|item| {
            item.origin.upstream.as_str() == need.server && *item.origin.name == *need.tool
        })
    };
    plan.needs.iter().filter(|need| !is_there(need)).collect()
}
