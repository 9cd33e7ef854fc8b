//! `tooldock.yaml`: what a folder of tools says of itself. TD-47

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use catalog::patterns::Patterns;
use serde::Deserialize;
use upstream::template::Template;

use crate::duration;
use crate::limits::{DOCK_CALLS_MAX, DOCK_MEMORY_MB_MIN, DURATION_MAX};

/// What is written in a `tooldock.yaml`.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    pub description: Option<String>,
    pub version: Option<String>,
    pub author: Option<String>,
    /// The names of secrets that its tools need.
    pub secrets: Vec<String>,
    /// Variables that are no secrets.
    pub env: Vec<(String, Template)>,
    pub python: Option<String>,
    pub network: Option<bool>,
    /// Whether its worker is confined.
    pub sandbox: Option<bool>,
    /// What it may read and write besides its own folders.
    pub reads: Vec<PathBuf>,
    pub writes: Vec<PathBuf>,
    pub memory_mb: Option<u32>,
    pub processes_max: Option<u32>,
    pub disk_mb: Option<u32>,
    pub call_timeout: Option<Duration>,
    pub calls_max: Option<usize>,
    pub calls_a_minute: Option<u32>,
    pub is_eager: Option<bool>,
    pub is_strict: Option<bool>,
    /// The tools that are offered, if not all. TD-18
    pub allow: Option<Patterns>,
    pub deny: Option<Patterns>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Written {
    description: Option<String>,
    version: Option<String>,
    author: Option<String>,
    secrets: Vec<String>,
    env: BTreeMap<String, Scalar>,
    python: Option<String>,
    network: Option<bool>,
    sandbox: Option<bool>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    memory_mb: Option<u64>,
    processes: Option<u64>,
    disk_mb: Option<u64>,
    timeout: Option<f64>,
    max_concurrency: Option<u64>,
    rate_limit: Option<u64>,
    eager: Option<bool>,
    strict: Option<bool>,
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
}

/// A value of a variable, however it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Boolean(bool),
    Integer(i64),
    Float(f64),
}

impl Manifest {
    /// Reads the file; the error is all that is wrong with it.
    pub fn parse(text: &str) -> Result<Manifest, Vec<String>> {
        if text.trim().is_empty() {
            return Ok(Manifest::default());
        }
        let written: Written =
            serde_saphyr::from_str(text).map_err(|error| vec![first_line(&error.to_string())])?;
        let mut problems = Vec::new();
        for name in written.secrets.iter().chain(written.env.keys()) {
            if let Some(problem) = unfit(name) {
                problems.push(problem);
            }
        }
        let call_timeout = written.timeout.map(|timeout| duration::from_seconds(timeout).ok());
        if call_timeout == Some(None) {
            let most = DURATION_MAX.as_secs();
            problems.push(format!("`timeout` must be a number of seconds above 0, at most {most}"));
        }
        problems.extend(written.out_of_bounds());
        if written.read.iter().chain(&written.write).any(|path| !path.is_absolute()) {
            problems.push("`read` and `write` must be absolute paths".into());
        }
        let mut patterns = |list: Option<Vec<String>>| {
            list.map(|list| {
                let read = Patterns::parse(&list);
                read.unwrap_or_else(|errors| {
                    let name = |error: catalog::patterns::PatternError| {
                        format!("`{}` can't be read: {}", error.pattern, error.reason)
                    };
                    problems.extend(errors.into_iter().map(name));
                    Patterns::default()
                })
            })
        };
        let (allow, deny) = (patterns(written.allow), patterns(written.deny));
        let manifest = Manifest {
            description: written.description,
            version: written.version,
            author: written.author,
            secrets: written.secrets,
            env: written.env.into_iter().map(|(name, value)| (name, value.text().into())).collect(),
            python: written.python,
            network: written.network,
            sandbox: written.sandbox,
            reads: written.read,
            writes: written.write,
            memory_mb: written.memory_mb.and_then(small),
            processes_max: written.processes.and_then(small),
            disk_mb: written.disk_mb.and_then(small),
            call_timeout: call_timeout.flatten(),
            calls_max: written.max_concurrency.and_then(|calls| usize::try_from(calls).ok()),
            calls_a_minute: written.rate_limit.and_then(small),
            is_eager: written.eager,
            is_strict: written.strict,
            allow,
            deny,
        };
        if problems.is_empty() { Ok(manifest) } else { Err(problems) }
    }
}

impl Written {
    /// What is written that nothing could be done with.
    fn out_of_bounds(&self) -> Vec<String> {
        let most = u64::from(u32::MAX);
        let numbers = [
            ("max_concurrency", self.max_concurrency, 1, DOCK_CALLS_MAX.into()),
            ("rate_limit", self.rate_limit, 1, most),
            ("memory_mb", self.memory_mb, DOCK_MEMORY_MB_MIN.into(), most),
            ("processes", self.processes, 1, most),
            ("disk_mb", self.disk_mb, 1, most),
        ];
        let mut problems = Vec::new();
        for (name, number, least, most) in numbers {
            if let Some(number) = number.filter(|number| !(least..=most).contains(number)) {
                problems.push(format!("`{name}` is {number}; it must be from {least} to {most}"));
            }
        }
        let is_cut = |text: &str| text.contains('\0');
        for (name, value) in &self.env {
            if matches!(value, Scalar::Text(text) if is_cut(text)) {
                let name = mcp::text::shorten(name);
                problems.push(format!("the value of `{name}` holds a NUL, where it would end"));
            }
        }
        let paths = self.read.iter().chain(&self.write).filter_map(|path| path.to_str());
        if paths.chain(self.python.as_deref()).any(is_cut) {
            problems.push("a path holds a NUL, where it would end".into());
        }
        problems
    }
}

/// A number that was found within its bounds.
fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

impl Manifest {
    /// The same, where somebody who counts for more says nothing else; variables and secrets of both.
    pub fn under(self, upper: &Manifest) -> Manifest {
        let upper = upper.clone();
        let is_said = |name: &String| upper.env.iter().any(|(other, _)| other == name);
        let own = self.env.into_iter().filter(|(name, _)| !is_said(name)).collect::<Vec<_>>();
        let own_secrets = self.secrets.into_iter().filter(|key| !upper.secrets.contains(key));
        Manifest {
            description: upper.description.or(self.description),
            version: upper.version.or(self.version),
            author: upper.author.or(self.author),
            secrets: own_secrets.chain(upper.secrets.iter().cloned()).collect(),
            env: own.into_iter().chain(upper.env).collect(),
            python: upper.python.or(self.python),
            network: upper.network.or(self.network),
            sandbox: upper.sandbox.or(self.sandbox),
            reads: [self.reads, upper.reads].concat(),
            writes: [self.writes, upper.writes].concat(),
            memory_mb: upper.memory_mb.or(self.memory_mb),
            processes_max: upper.processes_max.or(self.processes_max),
            disk_mb: upper.disk_mb.or(self.disk_mb),
            call_timeout: upper.call_timeout.or(self.call_timeout),
            calls_max: upper.calls_max.or(self.calls_max),
            calls_a_minute: upper.calls_a_minute.or(self.calls_a_minute),
            is_eager: upper.is_eager.or(self.is_eager),
            is_strict: upper.is_strict.or(self.is_strict),
            allow: upper.allow.or(self.allow),
            deny: upper.deny.or(self.deny),
        }
    }
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Scalar::Text(text) => text,
            Scalar::Boolean(boolean) => boolean.to_string(),
            Scalar::Integer(integer) => integer.to_string(),
            Scalar::Float(float) => float.to_string(),
        }
    }
}

/// Why a name can't be that of a variable which others set.
pub fn unfit(name: &str) -> Option<String> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let decides = name == "PATH" || name.starts_with("LD_") || name.starts_with("PYTHON");
    let shown = mcp::text::shorten(name);
    if decides {
        return Some(format!("`{shown}` decides which program runs; it can't be set here"));
    }
    (!is_name).then(|| format!("`{shown}` is no name of a variable; use letters, digits and `_`"))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
