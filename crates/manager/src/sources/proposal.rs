//! Proposals: servers of the registry as entries of `tools.toml`, which a person puts in place.
//!
//! What the registry says is data: it is written down, and nothing is started. HARDENING A02

use secrets::names::decides_what_runs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::registry::{Entry, Package};
use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{FILE_BYTES_MAX, PROPOSALS_MAX};

/// Where proposals wait, beneath the data directory.
pub const FOLDER: &str = "proposals";

/// A server that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    pub namespace: String,
    /// The name of the entry of the registry.
    pub server: String,
    /// A `[[servers]]` table.
    pub entry: String,
    /// Secrets that the entry wants.
    pub secrets: Vec<String>,
    /// What a person must still say.
    pub to_fill: Vec<String>,
    pub time: String,
}

/// What is put together.
#[derive(Default)]
struct Draft {
    lines: Vec<String>,
    secrets: Vec<String>,
    to_fill: Vec<String>,
}

impl Proposal {
    /// The entry of the configuration for a server: its package if it has one that can be started, else its address.
    pub fn of(entry: &Entry, namespace: &str, time: String) -> Result<Proposal, Error> {
        let mut draft = Draft::default();
        let packages = entry.packages();
        let usable = packages.iter().find(|(package, _)| runner(&package.kind).is_some());
        match (usable, entry.remotes()) {
            (Some((package, about)), _) => draft.command(package, about)?,
            (None, [remote, ..]) => draft.address(remote)?,
            (None, []) => {
                let kinds: Vec<&str> =
                    packages.iter().map(|(package, _)| package.kind.as_str()).collect();
                return Err(Error::Source(format!(
                    "`{}` offers nothing that can be started here ({}); npm, PyPI and OCI packages and remote servers can",
                    plain(entry.name())?,
                    kinds.join(", ")
                )));
            }
        }
        let head = format!("[[servers]]\nnamespace = {}\n", quoted(namespace)?);
        Ok(Proposal {
            namespace: namespace.to_owned(),
            server: plain(entry.name())?.to_owned(),
            entry: head + &draft.lines.join("\n") + "\n",
            secrets: draft.secrets,
            to_fill: draft.to_fill,
            time,
        })
    }

    /// Lays it down for a person.
    pub fn save(&self, desk: &Desk) -> Result<(), Error> {
        desk.data.make_folder(FOLDER)?;
        let path = format!("{FOLDER}/{}.json", self.namespace);
        let names = desk.data.names(FOLDER)?;
        if names.len() >= PROPOSALS_MAX && !names.contains(&format!("{}.json", self.namespace)) {
            return Err(Error::Source(format!(
                "{PROPOSALS_MAX} proposals wait already; a person must remove some from `proposals` of the data directory"
            )));
        }
        let text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::Source(error.to_string()))?;
        desk.data.replace(&path, &text)
    }

    /// A proposal as it was laid down.
    pub fn read(data: &crate::beneath::Root, namespace: &str) -> Result<Option<Proposal>, Error> {
        let text = data.read_text(&format!("{FOLDER}/{namespace}.json"), FILE_BYTES_MAX)?;
        let read = |text: String| {
            serde_json::from_str(&text).map_err(|error| {
                Error::Source(format!(
                    "the proposal `{namespace}` can't be read: {error}; remove it"
                ))
            })
        };
        text.map(read).transpose()
    }
}

/// The program that fetches and starts packages of a kind, and its arguments before the package.
fn runner(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    match kind {
        "npm" => Some(("npx", &["-y"])),
        "pypi" => Some(("uvx", &[])),
        "oci" => Some(("docker", &["run", "-i", "--rm"])),
        _ => None,
    }
}

impl Draft {
    fn command(&mut self, package: &Package, about: &Value) -> Result<(), Error> {
        let Some((program, first)) = runner(&package.kind) else {
            return Err(Error::Source(format!("packages of `{}` can't be started", package.kind)));
        };
        check_ways(package, about)?;
        let mut args: Vec<String> =
            first.iter().map(|arg| quoted(arg)).collect::<Result<_, _>>()?;
        let variables = about["environmentVariables"]
            .as_array()
            .or_else(|| about["environment_variables"].as_array());
        let mut env = Vec::new();
        for variable in variables.into_iter().flatten() {
            let name = own_variable(variable["name"].as_str().unwrap_or_default())?;
            let value = self.value(&name, variable)?;
            if package.kind == "oci" {
                args.extend([quoted("-e")?, quoted(&name)?]);
            }
            env.push(format!("{name} = {value}"));
        }
        args.push(versioned(package)?);
        for argument in arguments(about) {
            self.argument(argument, &mut args)?;
        }
        self.lines.push(format!("command = {}", quoted(program)?));
        self.lines.push(format!("args = [{}]", args.join(", ")));
        if !env.is_empty() {
            self.lines.push(format!("env = {{ {} }}", env.join(", ")));
        }
        Ok(())
    }

    fn argument(&mut self, argument: &Value, args: &mut Vec<String>) -> Result<(), Error> {
        let said = argument["value"].as_str().or_else(|| argument["default"].as_str());
        if !is_given(argument) {
            return Ok(());
        }
        if argument["type"] == "named" {
            args.push(quoted(argument["name"].as_str().unwrap_or_default())?);
        }
        let hint = argument["valueHint"].as_str().or_else(|| argument["value_hint"].as_str());
        let name = hint.or_else(|| argument["name"].as_str()).unwrap_or("ARGUMENT");
        args.push(match said {
            Some(text) if text.contains(['{', '}']) => self.filled(text, argument)?,
            Some(text) => quoted(text)?,
            None => self.wanted(name),
        });
        Ok(())
    }

    fn address(&mut self, remote: &Value) -> Result<(), Error> {
        let url = remote["url"].as_str().unwrap_or_default();
        let parsed: Result<upstream::remote::Url, _> = url.parse();
        let is_good = parsed.as_ref().is_ok_and(upstream::remote::Url::is_https);
        if !is_good || url.contains(['{', '}']) {
            return Err(Error::Source(format!(
                "the address `{}` is no plain `https` one",
                mcp::text::shorten(url)
            )));
        }
        self.lines.push(format!("url = {}", quoted(url)?));
        let mut headers = Vec::new();
        for header in remote["headers"].as_array().into_iter().flatten() {
            let name = header["name"].as_str().unwrap_or_default();
            let secret = variable_name(&name.to_uppercase().replace('-', "_"))?;
            headers.push(format!("{} = {}", quoted(name)?, self.value(&secret, header)?));
        }
        if !headers.is_empty() {
            self.lines.push(format!("headers = {{ {} }}", headers.join(", ")));
        }
        Ok(())
    }

    /// The value of a variable: what the registry says, a secret, or what a person must say.
    fn value(&mut self, name: &str, about: &Value) -> Result<String, Error> {
        let said = about["value"].as_str().or_else(|| about["default"].as_str());
        match said {
            Some(said) if said.contains(['{', '}']) => self.filled(said, about),
            Some(said) if !is_secret(about) => quoted(said),
            _ if is_secret(about) => Ok(format!("\"{}\"", self.secret(name))),
            _ => Ok(self.wanted(name)),
        }
    }

    /// A template such as `Bearer {token}`: what is in braces is a secret, or what a person must say.
    fn filled(&mut self, template: &str, about: &Value) -> Result<String, Error> {
        let wrong = || {
            let shown = mcp::text::shorten(template);
            Error::Source(format!("the registry says `{shown}`, which can't be understood"))
        };
        let mut text = String::new();
        let mut rest = plain(template)?;
        while let Some((before, after)) = rest.split_once('{') {
            let (key, after) = after.split_once('}').ok_or_else(wrong)?;
            let name = variable_name(&key.to_uppercase().replace(['-', '.'], "_"))?;
            let own = &about["variables"][key];
            let default = own["value"].as_str().or_else(|| own["default"].as_str());
            text += &escaped(before)?;
            text += &match default {
                _ if is_secret(about) || is_secret(own) => self.secret(&name),
                Some(default) => escaped(default)?,
                None => self.wanted(&name).trim_matches('"').to_owned(),
            };
            rest = after;
        }
        if rest.contains('}') {
            return Err(wrong());
        }
        Ok(format!("\"{text}{}\"", escaped(rest)?))
    }

    /// Where a value of the safe is put in.
    fn secret(&mut self, name: &str) -> String {
        if !self.secrets.iter().any(|known| known == name) {
            self.secrets.push(name.to_owned());
        }
        format!("${{secret:{name}}}")
    }

    /// A variable of the environment, which `toolman check` names as long as it is not set.
    fn wanted(&mut self, name: &str) -> String {
        let letters = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
        let name: String = letters.take(64).collect();
        let name = if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name
        } else {
            format!("V_{name}")
        };
        let text = format!("\"${{{name}}}\"");
        self.to_fill.push(name);
        text
    }
}

fn is_secret(about: &Value) -> bool {
    about["isSecret"] == true || about["is_secret"] == true
}

/// What a package is told on its command line.
fn arguments(about: &Value) -> impl Iterator<Item = &Value> {
    let given =
        ["packageArguments", "package_arguments"].iter().find_map(|key| about[*key].as_array());
    given.into_iter().flatten()
}

/// Whether an argument is there: one without a value that need not be is left out.
fn is_given(argument: &Value) -> bool {
    let is_required = argument["isRequired"] == true || argument["is_required"] == true;
    is_required || argument["value"].is_string() || argument["default"].is_string()
}

/// Refuses what an entry could not say: another index, other arguments of the runner, another way to speak.
fn check_ways(package: &Package, about: &Value) -> Result<(), Error> {
    let name = mcp::text::shorten(&package.identifier);
    let refused = |what: &str| {
        Err(Error::Source(format!(
            "`{name}` {what}, which can't be proposed; write its entry of `tools.toml` by hand"
        )))
    };
    let usual = ["https://registry.npmjs.org", "https://pypi.org", "https://docker.io"];
    let base = ["registryBaseUrl", "registry_base_url"].iter().find_map(|key| about[*key].as_str());
    if base.is_some_and(|base| !usual.contains(&base.trim_end_matches('/'))) {
        return refused("comes from another registry");
    }
    let given =
        ["runtimeArguments", "runtime_arguments"].iter().find_map(|key| about[*key].as_array());
    if given.is_some_and(|given| !given.is_empty()) {
        return refused("wants arguments for the program that starts it");
    }
    let holds_secret = |argument: &&Value| {
        let variables = argument["variables"].as_object();
        is_secret(argument) || variables.is_some_and(|all| all.values().any(is_secret))
    };
    if arguments(about).filter(|argument| is_given(argument)).any(|one| holds_secret(&one)) {
        return refused("wants a secret among its arguments, where every process can read it");
    }
    let way = about["transport"]["type"].as_str().unwrap_or("stdio");
    if way != "stdio" {
        return refused("does not speak over its standard input and output");
    }
    Ok(())
}

/// The package with its version, as its runner wants it.
fn versioned(package: &Package) -> Result<String, Error> {
    let Package { kind, identifier, version } = package;
    if identifier.starts_with('-')
        || identifier.contains(char::is_whitespace)
        || identifier.is_empty()
    {
        return Err(Error::Source(format!(
            "`{}` is no name of a package",
            mcp::text::shorten(identifier)
        )));
    }
    let at = match kind.as_str() {
        "oci" => ":",
        "pypi" => "==",
        _ => "@",
    };
    let has_version = kind == "oci"
        && identifier.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
    if version.is_empty() || version == "latest" || has_version {
        quoted(identifier)
    } else {
        quoted(&format!("{identifier}{at}{version}"))
    }
}

fn variable_name(name: &str) -> Result<String, Error> {
    let is_name = !name.is_empty()
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_name && !decides_what_runs(name) {
        return Ok(name.to_owned());
    }
    Err(refused_variable(name))
}

/// Variables by which the programs that start packages would take others, or from elsewhere.
const STEERING: [&str; 12] = [
    "ALL_PROXY",
    "CONTAINER_HOST",
    "CURL_CA_BUNDLE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "USERPROFILE",
];
const STEERING_PREFIXES: [&str; 8] =
    ["BUN_", "DOCKER_", "GIT_", "NPM_CONFIG_", "PIP_", "UV_", "XDG_", "YARN_"];

/// The name of a variable in the environment of a server, and of the program that fetches and starts it.
fn own_variable(name: &str) -> Result<String, Error> {
    let letters = name.to_ascii_uppercase();
    if STEERING.contains(&letters.as_str())
        || STEERING_PREFIXES.iter().any(|start| letters.starts_with(start))
    {
        return Err(refused_variable(name));
    }
    variable_name(name)
}

fn refused_variable(name: &str) -> Error {
    Error::Source(format!(
        "the registry names a variable `{}`, which is refused: it is no name, or decides which programs run; write the \
         entry of `tools.toml` by hand if it must be",
        mcp::text::shorten(name)
    ))
}

/// A text of the registry that can stand in a configuration: it can't reach for secrets or variables.
fn plain(text: &str) -> Result<&str, Error> {
    if text.contains("${") || text.chars().any(mcp::text::is_hidden) || text.len() > 2048 {
        let shown = mcp::text::shorten(text);
        return Err(Error::Source(format!(
            "the registry says `{shown}`, which can't stand in a configuration"
        )));
    }
    Ok(text)
}

/// The same as a string of TOML.
fn quoted(text: &str) -> Result<String, Error> {
    Ok(format!("\"{}\"", escaped(text)?))
}

fn escaped(text: &str) -> Result<String, Error> {
    Ok(plain(text)?.replace('\\', "\\\\").replace('"', "\\\""))
}
