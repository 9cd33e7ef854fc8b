//! The keys of a server that is a folder of Python tools.

use std::path::PathBuf;

use mcp::text::shorten;

use super::patterns_of;
use super::server::variables;
use super::texts::{Means, expanded};
use crate::dock::{Manifest, check_name, unfit};
use crate::fault::Faults;
use crate::limits::{DOCK_CALLS_MAX, DOCK_MEMORY_MB_MIN};
use crate::reader::{Section, Value};

/// Keys of other servers.
const STRAYS: [&str; 11] = [
    "args",
    "cwd",
    "transport",
    "type",
    "headers",
    "era",
    "session",
    "restart",
    "restart_delay_max",
    "lazy",
    "idle_timeout",
];

/// The folder, and what the section says of it.
pub fn read(
    python: &Value<'_>,
    section: &mut Section<'_>,
    means: Means<'_>,
    faults: &mut Faults<'_>,
) -> Option<(PathBuf, Manifest)> {
    for key in ["command", "url"] {
        if section.get(key).is_some() {
            python.report(&format!("stands beside `{key}`; keep the one that is meant"), faults);
        }
    }
    for key in STRAYS {
        if let Some(value) = section.get(key) {
            value.report("is for servers with a `command` or a `url`; remove it", faults);
        }
    }
    if !means.namespace.is_empty()
        && let Err(problem) = check_name(means.namespace)
    {
        python.report(&format!("has a namespace that can't be one: {problem}"), faults);
    }
    let manifest = manifest(section, means, faults);
    let path = folder(python, means, faults)?;
    Some((path, manifest))
}

fn folder(value: &Value<'_>, means: Means<'_>, faults: &mut Faults<'_>) -> Option<PathBuf> {
    let text = expanded(value, value.string(faults)?, means.surroundings.environment, faults)?;
    let path = means.surroundings.folder.join(&text);
    // What a disabled server needs may be missing.
    if text.is_empty() || means.is_enabled && !path.is_dir() {
        let shown = shorten(&text);
        value.report(&format!("is `{shown}`, where no folder is; name one with tools"), faults);
        return None;
    }
    Some(path)
}

fn manifest(section: &mut Section<'_>, means: Means<'_>, faults: &mut Faults<'_>) -> Manifest {
    let env = section.get("env").map(|value| {
        for (name, value) in value.entries(faults).unwrap_or_default() {
            if let Some(problem) = unfit(name) {
                value.report(&format!("can't be set: {problem}"), faults);
            }
        }
        variables(&value, means, faults)
    });
    let secrets = section.get("secrets").map(|value| value.strings("secret", faults));
    let secrets = secrets.into_iter().flatten().filter_map(|(value, name)| match unfit(name) {
        Some(problem) => {
            value.report(&format!("can't be one: {problem}"), faults);
            None
        }
        None => Some(name.to_owned()),
    });
    let secrets = secrets.collect();
    let mut number = |key: &'static str, least: u32, most: u32| {
        let number = section.get(key)?.number(least.into(), most.into(), faults)?;
        u32::try_from(number).ok()
    };
    let calls_max = number("max_concurrency", 1, DOCK_CALLS_MAX);
    let calls_a_minute = number("rate_limit", 1, u32::MAX);
    let memory_mb = number("memory_mb", DOCK_MEMORY_MB_MIN, u32::MAX);
    let processes_max = number("processes", 1, u32::MAX);
    let disk_mb = number("disk_mb", 1, u32::MAX);
    let mut switch = |key: &'static str| section.get(key)?.boolean(faults);
    let (network, sandbox) = (switch("network"), switch("sandbox"));
    let (is_eager, is_strict) = (switch("eager"), switch("strict"));
    let mut paths = |key: &'static str| {
        let listed = section.get(key).map(|value| value.strings("path", faults));
        let listed = listed.into_iter().flatten();
        listed.map(|(_, path)| means.surroundings.folder.join(path)).collect::<Vec<_>>()
    };
    let (reads, writes) = (paths("read"), paths("write"));
    let interpreter = section.get("interpreter").and_then(|value| value.string(faults));
    let mut globs = |key: &'static str| Some(patterns_of(&section.get(key)?, None, faults));
    Manifest {
        env: env.unwrap_or_default(),
        secrets,
        python: interpreter.map(str::to_owned),
        network,
        sandbox,
        reads,
        writes,
        memory_mb,
        processes_max,
        disk_mb,
        calls_max: calls_max.and_then(|calls| usize::try_from(calls).ok()),
        calls_a_minute,
        is_eager,
        is_strict,
        allow: globs("allow"),
        deny: globs("deny"),
        ..Manifest::default()
    }
}
