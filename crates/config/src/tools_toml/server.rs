//! One entry of `[[servers]]`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use catalog::patterns::Patterns;
use catalog::session_context::{SessionContext, paths};
use mcp::names::{NameError, Namespace, UpstreamName};
use mcp::text::shorten;
use mcp::version::Era;
use toml::de::DeValue;
use upstream::context::Context;
use upstream::launch::{Command, CommandLine, Launch};
use upstream::limits::{
    CALL_TIMEOUT, HANDSHAKE_TIMEOUT, IDLE_TIMEOUT, RESTART_DELAY_MAX, STARTUP_TIMEOUT,
    TIMEOUT_SETTING,
};
use upstream::supervisor::{EraChoice, Restart, SessionChoice, Settings};
use upstream::template::Template;

use super::texts::{Means, argument, expanded, templated, without_nul};
use super::{TOP_KEYS, names, patterns_of, python, remote};
use crate::dock::{Manifest, Named};
use crate::duration::{self, DurationError};
use crate::fault::Faults;
use crate::mentions::Of;
use crate::reader::{Section, Value};
use crate::{Server, Surroundings};

/// What all servers of a file have in common.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    pub surroundings: &'a Surroundings<'a>,
    /// What clients may send.
    pub context: Option<&'a SessionContext>,
}

/// A server as it is written, before every server has a name.
pub struct Draft {
    /// The place among the servers of the file, from 1.
    pub position: usize,
    pub enabled: bool,
    /// The name, if one is written, and where.
    pub name: Option<(UpstreamName, usize)>,
    pub namespace: Namespace,
    /// `None` where it could not be read.
    launch: Option<Launch>,
    /// The folder of Python tools that it is instead, and what is said of it.
    folder: Option<(PathBuf, Manifest)>,
    era: EraChoice,
    session: SessionChoice,
    restart: Restart,
    startup_timeout: Duration,
    handshake_timeout: Duration,
    call_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    written: serde_json::Map<String, serde_json::Value>,
    /// The tools that may be seen of it, where it says so itself.
    pub tools: Option<Patterns>,
}

/// The servers that are to run, and the folders that are, each under its name.
pub fn finish(
    mut drafts: Vec<Draft>,
    context: Option<&SessionContext>,
    call_timeout: Option<Duration>,
    faults: &mut Faults<'_>,
) -> (Vec<Server>, Vec<Named>) {
    for draft in drafts.iter().filter(|draft| !draft.enabled) {
        let name = draft.name.as_ref().map_or(draft.namespace.as_str(), |(name, _)| name.as_str());
        faults.disable(name);
    }
    // A disabled server may share its name with the one that replaces it.
    drafts.retain(|draft| draft.enabled);
    let names = names::assign(&drafts, faults);
    let context = context.map(|rules| Context::new(paths(&rules.defaults))).unwrap_or_default();
    let context = Arc::new(context);
    let (mut servers, mut folders) = (Vec::new(), Vec::new());
    for (mut draft, name) in drafts.into_iter().zip(names) {
        match draft.folder.take() {
            Some((path, mut manifest)) => {
                manifest.call_timeout = draft.call_timeout;
                let (namespace, after) = (draft.namespace, servers.len());
                folders.push(Named { name, namespace, path, manifest, after });
            }
            None => servers.extend(draft.finish(name, &context, call_timeout)),
        }
    }
    (servers, folders)
}

impl Draft {
    fn finish(
        self,
        name: UpstreamName,
        context: &Arc<Context>,
        call_timeout: Option<Duration>,
    ) -> Option<Server> {
        let launch = self.launch?;
        let runs_in_shell =
            matches!(&launch, Launch::Command(Command { line: CommandLine::Shell(_), .. }));
        Some(Server {
            namespace: self.namespace,
            written: self.written,
            runs_in_shell,
            settings: Settings {
                name,
                launch,
                era: self.era,
                session: self.session,
                restart: self.restart,
                startup_timeout: self.startup_timeout,
                handshake_timeout: self.handshake_timeout,
                call_timeout: self.call_timeout.or(call_timeout).unwrap_or(CALL_TIMEOUT),
                timeout_setting: match (self.call_timeout, call_timeout) {
                    (None, Some(_)) => "tool_call_timeout",
                    _ => TIMEOUT_SETTING,
                },
                idle_timeout: self.idle_timeout,
                context: Arc::clone(context),
            },
        })
    }
}

pub fn read(
    value: &Value<'_>,
    position: usize,
    circumstances: Circumstances<'_>,
    faults: &mut Faults<'_>,
) -> Option<Draft> {
    let mut section = value.section("in `[[servers]]`", faults)?;
    let namespace = section.get("namespace").and_then(|value| name::<Namespace>(&value, faults));
    let written = section
        .get("name")
        .and_then(|value| Some((name::<UpstreamName>(&value, faults)?, value.at())));
    let names = (written, namespace.unwrap_or_default());
    let keys = Keys { cwd: "cwd", splits_commands: true, is_shared: false };
    Some(draft(value, section, names, keys, (position, circumstances), faults))
}

/// How a format writes a command.
#[derive(Clone, Copy)]
struct Keys {
    cwd: &'static str,
    /// Whether a command without `args` is one for the shell.
    splits_commands: bool,
    /// Whether a client may keep keys of its own beside ours.
    is_shared: bool,
}

/// A server that has its name as a key, and its namespace with it.
pub fn read_named(
    key: &str,
    value: &Value<'_>,
    position: usize,
    (circumstances, is_shared): (Circumstances<'_>, bool),
    faults: &mut Faults<'_>,
) -> Option<Draft> {
    let mut section = value.section("in a server", faults)?;
    // A title for people; the key counts.
    _ = section.get("name").and_then(|value| value.string(faults));
    let names = match (key.parse(), key.parse()) {
        (Ok(name), Ok(namespace)) => (Some((name, value.at())), namespace),
        (Err(error), _) | (_, Err(error)) => {
            value.report(&format!("has a name that can't be used: {error}"), faults);
            return None;
        }
    };
    let keys = Keys { cwd: "workingDirectory", splits_commands: false, is_shared };
    let of = Of::ItemsOf(key.into());
    let tools = section.get("tools").map(|value| patterns_of(&value, Some(&of), faults));
    let mut draft = draft(value, section, names, keys, (position, circumstances), faults);
    draft.tools = tools;
    if let Some(Launch::Command(command)) = &mut draft.launch {
        fill_in(command, key, circumstances.surroundings.folder);
    }
    Some(draft)
}

/// Puts in what `{{…}}` stands for. FORMATS: templates of servers-config.json
fn fill_in(command: &mut Command, name: &str, folder: &Path) {
    if command.cwd.as_ref().is_some_and(|cwd| cwd.ends_with("project_root")) {
        command.cwd = Some(folder.to_owned());
    }
    let cwd = command.cwd.as_deref().unwrap_or(folder).display().to_string();
    let folder = folder.display().to_string();
    let fill = |text: &mut String| {
        for (template, value) in
            [("{{project_dir}}", &*folder), ("{{working_dir}}", &*cwd), ("{{server_name}}", name)]
        {
            *text = text.replace(template, value);
        }
    };
    command.env.iter_mut().for_each(|(_, value)| value.for_each_text(fill));
    if let CommandLine::Direct { args, .. } = &mut command.line {
        args.iter_mut().for_each(|arg| arg.for_each_text(fill));
    }
}

fn draft(
    value: &Value<'_>,
    mut section: Section<'_>,
    (name, namespace): (Option<(UpstreamName, usize)>, Namespace),
    keys: Keys,
    (position, circumstances): (usize, Circumstances<'_>),
    faults: &mut Faults<'_>,
) -> Draft {
    let enabled = section.get("enabled").and_then(|value| value.boolean(faults)).unwrap_or(true);
    // What a disabled server needs may be missing: that can be why it is disabled.
    let mut surroundings = *circumstances.surroundings;
    if !enabled {
        surroundings.environment = &|_| Some("x".into());
    }
    let session = session(&mut section, faults);
    let means = Means {
        surroundings: &surroundings,
        namespace: namespace.as_str(),
        context: circumstances.context,
        is_enabled: enabled,
        is_per_client: session == SessionChoice::PerClient,
    };
    // It is for people.
    _ = section.get("description").and_then(|value| value.string(faults));
    let python = if keys.splits_commands { section.get("python") } else { None };
    let (launch, folder) = match &python {
        Some(python) => (None, python::read(python, &mut section, means, faults)),
        None => (launch(value, &mut section, keys, means, faults), None),
    };
    let draft = Draft {
        position,
        enabled,
        name,
        namespace: namespace.clone(),
        launch,
        folder,
        era: era(&mut section, faults),
        session,
        restart: restart(&mut section, faults),
        startup_timeout: wait(&mut section, "startup_timeout", STARTUP_TIMEOUT, faults),
        handshake_timeout: wait(&mut section, "handshake_timeout", HANDSHAKE_TIMEOUT, faults),
        call_timeout: section
            .get("timeout")
            .map(|_| wait(&mut section, "timeout", CALL_TIMEOUT, faults)),
        idle_timeout: idle_timeout(&mut section, faults),
        written: value.json().as_object().cloned().unwrap_or_default(),
        tools: None,
    };
    section.shared(keys.is_shared).close(&TOP_KEYS, faults);
    draft
}

pub fn name<T: FromStr<Err = NameError>>(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<T> {
    let text = value.string(faults)?;
    let problem = match text.parse() {
        Ok(name) => return Some(name),
        Err(NameError::Empty) => {
            "is empty; leave it out, or use letters, digits, `_` and `-`".into()
        }
        Err(error) => format!("is `{}`: {error}", shorten(text)),
    };
    value.report(&problem, faults);
    None
}

/// How the server is started or reached: by `command` or by `url`.
fn launch(
    server: &Value<'_>,
    section: &mut Section<'_>,
    keys: Keys,
    means: Means<'_>,
    faults: &mut Faults<'_>,
) -> Option<Launch> {
    let command = section.get("command");
    let [args, env, cwd] = ["args", "env", keys.cwd].map(|key| section.get(key));
    let remote = remote::Keys::take(section);
    match (command, &remote.url) {
        (Some(_), Some(url)) => {
            url.report("stands beside `command`; keep the one that is meant", faults);
            None
        }
        (None, Some(url)) => {
            let stray = [&args, &env, &cwd].into_iter().flatten();
            for value in stray.filter(|_| keys.splits_commands) {
                value.report("is for servers with a `command`; remove it", faults);
            }
            remote.read(url, means, faults)
        }
        (command, None) => {
            remote.refuse(faults);
            let mut command = self::command(command, args, env, cwd, (server, means), faults)?;
            if !keys.splits_commands
                && let CommandLine::Shell(program) = command.line
            {
                command.line = CommandLine::Direct { program, args: Vec::new() };
            }
            Some(Launch::Command(command))
        }
    }
}

fn command(
    command: Option<Value<'_>>,
    args: Option<Value<'_>>,
    env: Option<Value<'_>>,
    cwd: Option<Value<'_>>,
    (server, means): (&Value<'_>, Means<'_>),
    faults: &mut Faults<'_>,
) -> Option<Command> {
    let Surroundings { environment, folder, .. } = *means.surroundings;
    let args = args.map(|args| {
        let args = args.strings("argument", faults).into_iter();
        args.filter_map(|(value, text)| argument(&value, text, means, faults)).collect()
    });
    let env = env.map(|env| variables(&env, means, faults));
    let cwd = cwd.and_then(|value| {
        let text = value.string(faults)?;
        expanded(&value, text, environment, faults)
    });
    let Some(command) = command else {
        let problem =
            "has no `command`, `url` or `python`; add one, such as `command = \"uvx pjpd\"`";
        server.report(problem, faults);
        return None;
    };
    let text = command.string(faults)?;
    let line = match args {
        Some(args) => CommandLine::Direct {
            program: filled(&command, expanded(&command, text, environment, faults)?, faults)?,
            args,
        },
        None if text.contains("${secret:") => {
            let fix = "name a variable in `env` and use that, as in `$TOKEN`";
            command
                .report(&format!("uses `${{secret:…}}`, which others could read; {fix}"), faults);
            return None;
        }
        // Its expansions are the shell's.
        None => {
            if text.contains("${context.") {
                let fix = "put it into `env`, and write `$NAME` here";
                let problem = format!("uses `${{context.…}}`, which no shell knows; {fix}");
                command.report(&problem, faults);
            }
            CommandLine::Shell(filled(&command, text.to_owned(), faults)?)
        }
    };
    Some(Command {
        line,
        env: env.unwrap_or_default(),
        cwd: Some(match cwd {
            Some(cwd) => folder.join(cwd),
            None => folder.to_owned(),
        }),
    })
}

/// The text of a command, unless it is blank or can't be passed to a process.
fn filled(value: &Value<'_>, text: String, faults: &mut Faults<'_>) -> Option<String> {
    if text.trim().is_empty() {
        value.report("is blank; write the command that starts the server", faults);
        return None;
    }
    without_nul(value, text, faults)
}

/// The variables of `env`. Their values are never shown: they may be secret.
pub fn variables(
    value: &Value<'_>,
    means: Means<'_>,
    faults: &mut Faults<'_>,
) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, value) in value.entries(faults).unwrap_or_default() {
        if name.is_empty() || name.contains(['=', '\0']) {
            value.report("is no name of a variable; use letters, digits and `_`", faults);
        }
        let text = match value.node() {
            DeValue::String(text) => templated(&value, text, means, faults),
            DeValue::Integer(integer) => Some(integer.to_string().into()),
            DeValue::Boolean(boolean) => Some(boolean.to_string().into()),
            _ => {
                value.report_type("a string, an integer or a boolean", faults);
                None
            }
        };
        variables.extend(text.map(|text| (name.to_owned(), text)));
    }
    variables
}

fn era(section: &mut Section<'_>, faults: &mut Faults<'_>) -> EraChoice {
    let words = [
        ("auto", EraChoice::Auto),
        ("legacy", EraChoice::Only(Era::Legacy)),
        ("modern", EraChoice::Only(Era::Modern)),
    ];
    section.get("era").and_then(|value| value.choice(&words, faults)).unwrap_or_default()
}

fn session(section: &mut Section<'_>, faults: &mut Faults<'_>) -> SessionChoice {
    let words = [
        ("auto", SessionChoice::Auto),
        ("shared", SessionChoice::Shared),
        ("per-client", SessionChoice::PerClient),
    ];
    section.get("session").and_then(|value| value.choice(&words, faults)).unwrap_or_default()
}

fn restart(section: &mut Section<'_>, faults: &mut Faults<'_>) -> Restart {
    let delay_max = wait(section, "restart_delay_max", RESTART_DELAY_MAX, faults);
    let policies = [("never", Restart::Never), ("on-failure", Restart::OnFailure { delay_max })];
    section
        .get("restart")
        .and_then(|value| value.choice(&policies, faults))
        .unwrap_or(Restart::Never)
}

/// How long a lazy server is kept though nobody needs it; `None` for one that always runs.
fn idle_timeout(section: &mut Section<'_>, faults: &mut Faults<'_>) -> Option<Duration> {
    let is_lazy = section.get("lazy").and_then(|value| value.boolean(faults)).unwrap_or(false);
    let written = section.get("idle_timeout");
    if let (false, Some(value)) = (is_lazy, &written) {
        value.report("is for servers with `lazy = true`; add that, or remove it", faults);
    }
    let idle_timeout = written.map(|_| wait(section, "idle_timeout", IDLE_TIMEOUT, faults));
    is_lazy.then(|| idle_timeout.unwrap_or(IDLE_TIMEOUT))
}

pub fn wait(
    section: &mut Section<'_>,
    key: &'static str,
    default: Duration,
    faults: &mut Faults<'_>,
) -> Duration {
    let Some(value) = section.get(key) else {
        return default;
    };
    let (shown, duration) = match value.node() {
        DeValue::String(text) => (shorten(text), duration::from_text(text)),
        DeValue::Integer(integer) => {
            let seconds = u32::from_str_radix(integer.as_str(), integer.radix());
            let duration = seconds
                .map_err(|_| DurationError::OutOfRange)
                .and_then(|seconds| duration::from_seconds(seconds.into()));
            (shorten(&integer.to_string()), duration)
        }
        DeValue::Float(float) => {
            let seconds = float.as_str().parse().unwrap_or(f64::NAN);
            (shorten(float.as_str()), duration::from_seconds(seconds))
        }
        _ => {
            value.report_type("a number of seconds or a string such as `30s`", faults);
            return default;
        }
    };
    duration.unwrap_or_else(|error| {
        value.report(&format!("is `{shown}`; {error}"), faults);
        default
    })
}
