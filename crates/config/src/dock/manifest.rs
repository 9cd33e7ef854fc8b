//! `tooldock.yaml`: what a folder of tools says of itself. TD-47

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use catalog::patterns::Patterns;
use serde::Deserialize;

/// What is written in a `tooldock.yaml`.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    pub description: Option<String>,
    pub version: Option<String>,
    pub author: Option<String>,
    /// The names of secrets that its tools need.
    pub secrets: Vec<String>,
    /// Variables that are no secrets.
    pub env: Vec<(String, String)>,
    pub python: Option<String>,
    pub network: Option<bool>,
    /// Whether its worker is confined.
    pub sandbox: Option<bool>,
    /// What it may read and write besides its own folders.
    pub reads: Vec<PathBuf>,
    pub writes: Vec<PathBuf>,
    pub memory_mb: Option<u32>,
    pub processes_max: Option<u32>,
    pub call_timeout: Option<Duration>,
    pub calls_max: Option<usize>,
    pub calls_a_minute: Option<u32>,
    pub is_eager: Option<bool>,
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
    memory_mb: Option<u32>,
    processes: Option<u32>,
    timeout: Option<f64>,
    max_concurrency: Option<usize>,
    rate_limit: Option<u32>,
    eager: Option<bool>,
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
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
        let call_timeout = written.timeout.map(|timeout| seconds(timeout).filter(|t| !t.is_zero()));
        if call_timeout == Some(None) {
            problems.push("`timeout` must be a number of seconds above 0".into());
        }
        if written.read.iter().chain(&written.write).any(|path| !path.is_absolute()) {
            problems.push("`read` and `write` must be absolute paths".into());
        }
        if written.max_concurrency == Some(0) || written.rate_limit == Some(0) {
            problems.push("`max_concurrency` and `rate_limit` must be above 0".into());
        }
        if written.memory_mb == Some(0) || written.processes == Some(0) {
            problems.push("`memory_mb` and `processes` must be above 0".into());
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
            env: written.env.into_iter().map(|(name, value)| (name, value.text())).collect(),
            python: written.python,
            network: written.network,
            sandbox: written.sandbox,
            reads: written.read,
            writes: written.write,
            memory_mb: written.memory_mb,
            processes_max: written.processes,
            call_timeout: call_timeout.flatten(),
            calls_max: written.max_concurrency,
            calls_a_minute: written.rate_limit,
            is_eager: written.eager,
            allow,
            deny,
        };
        if problems.is_empty() { Ok(manifest) } else { Err(problems) }
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
fn unfit(name: &str) -> Option<String> {
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
