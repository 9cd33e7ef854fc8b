//! What the environment says, under ToolDock's names. TD-145, TD-146, TD-147
//!
//! All of it is read at the start, so that all that is wrong with it is told at once. It counts for more than a file.

use std::time::Duration;

use mcp::text::shorten;
use mcp::version::{Revision, Spoken};

use crate::Environment;
use crate::dock::{Dock, Manager};
use crate::http::weakness;
use crate::limits::{RETENTION_DAYS_MAX, SESSION_TTL_HOURS_MAX};
use crate::tools_toml::http::origin;

/// What is set, checked.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// `LOG_LEVEL`, in the words of the log.
    pub log_level: Option<&'static str>,
    /// `LOG_RETENTION_DAYS`
    pub retention_days: Option<u32>,
    /// `CORE_PORT`
    pub core_port: Option<u16>,
    /// `TOOLMAN_PORT`
    pub port: Option<u16>,
    /// `CORS_ORIGINS`; `*` is any.
    pub origins: Option<Vec<String>>,
    /// `MCP_SESSION_TTL_HOURS`
    pub session_ttl: Option<Duration>,
    /// `MCP_SUPPORTED_VERSIONS`
    pub versions: Option<Spoken>,
    /// `ENABLE_LEGACY_MCP`
    pub has_sse: Option<bool>,
    /// `TOOLDOCK_UID` and `TOOLDOCK_GID`: as whom we are meant to run.
    pub owner: (Option<u32>, Option<u32>),
}

impl Variables {
    /// Reads all of them; the error is all that is wrong. Tokens count where others can come in.
    pub fn read(environment: Environment<'_>, opens_door: bool) -> Result<Variables, Vec<String>> {
        let mut reading = Reading { environment, problems: Vec::new() };
        let variables = Variables {
            log_level: reading.log_level(),
            retention_days: reading.number("LOG_RETENTION_DAYS", 1, RETENTION_DAYS_MAX),
            core_port: reading.port("CORE_PORT"),
            port: if opens_door { reading.toolman_port() } else { None },
            origins: reading.origins(),
            session_ttl: reading.session_ttl(),
            versions: reading.versions(),
            has_sse: reading.switch("ENABLE_LEGACY_MCP"),
            owner: (
                reading.number("TOOLDOCK_UID", 0, u32::MAX),
                reading.number("TOOLDOCK_GID", 0, u32::MAX),
            ),
        };
        // The manager's own, which one file may set for both.
        _ = reading.port("MANAGER_PORT");
        let mut problems = reading.problems;
        let token = environment("BEARER_TOKEN").filter(|_| opens_door);
        if let Some(weakness) = token.as_deref().and_then(weakness) {
            problems.push(format!("BEARER_TOKEN {weakness}, or none to have one generated"));
        }
        // What folders of tools need is read where they are; it is looked at here with the rest.
        problems.extend(Dock::default().with_environment(environment).err().unwrap_or_default());
        if opens_door {
            problems.extend(Manager::of(environment).err().unwrap_or_default());
        }
        if problems.is_empty() { Ok(variables) } else { Err(problems) }
    }
}

struct Reading<'a> {
    environment: Environment<'a>,
    problems: Vec<String>,
}

impl Reading<'_> {
    /// A variable that says something.
    fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|text| !text.trim().is_empty())
    }

    fn read<T>(
        &mut self,
        name: &str,
        rule: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name)?;
        let read = parse(text.trim());
        if read.is_none() {
            self.problems.push(format!("{name} is `{}`; {rule}", shorten(&text)));
        }
        read
    }

    fn number(&mut self, name: &str, least: u32, most: u32) -> Option<u32> {
        let rule = format!("it must be a number from {least} to {most}");
        self.read(name, &rule, |text| {
            text.parse().ok().filter(|number| (least..=most).contains(number))
        })
    }

    fn port(&mut self, name: &str) -> Option<u16> {
        self.read(name, "it must be a port, from 1 to 65535", |text| {
            text.parse().ok().filter(|port| *port > 0)
        })
    }

    fn toolman_port(&mut self) -> Option<u16> {
        self.read("TOOLMAN_PORT", "it must be a port, up to 65535", |text| text.parse().ok())
    }

    fn switch(&mut self, name: &str) -> Option<bool> {
        self.read(name, "use `true` or `false`", switch)
    }

    fn log_level(&mut self) -> Option<&'static str> {
        let words = [
            ("trace", "trace"),
            ("debug", "debug"),
            ("info", "info"),
            ("warn", "warn"),
            ("warning", "warn"),
            ("error", "error"),
            ("critical", "error"),
        ];
        let rule = "use `debug`, `info`, `warning` or `error`";
        self.read("LOG_LEVEL", rule, |text| {
            let text = text.to_lowercase();
            words.iter().find(|(word, _)| *word == text).map(|(_, level)| *level)
        })
    }

    fn origins(&mut self) -> Option<Vec<String>> {
        let rule = "use `*`, or origins as a browser writes them, such as `https://app.example`, with commas";
        self.read("CORS_ORIGINS", rule, |text| {
            let listed = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let is_origin = |part: &&str| *part == "*" || origin(part).is_none();
            let listed: Vec<_> = listed.collect();
            listed.iter().all(is_origin).then(|| listed.into_iter().map(str::to_owned).collect())
        })
    }

    // TD-94
    fn session_ttl(&mut self) -> Option<Duration> {
        let rule = format!("use hours, more than 0 and at most {SESSION_TTL_HOURS_MAX}");
        self.read("MCP_SESSION_TTL_HOURS", &rule, |text| {
            let is_allowed = |hours: &f64| *hours > 0.0 && *hours <= SESSION_TTL_HOURS_MAX;
            let hours = text.parse().ok().filter(is_allowed)?;
            Duration::try_from_secs_f64(hours * 3600.0).ok()
        })
    }

    // TD-100
    fn versions(&mut self) -> Option<Spoken> {
        let rule = format!("use some of {}, with commas", Spoken::default().names());
        self.read("MCP_SUPPORTED_VERSIONS", &rule, |text| {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            let revisions: Option<Vec<_>> = names.map(Revision::parse).collect();
            revisions.and_then(Spoken::new)
        })
    }
}

/// Whether a word means yes or no.
pub fn switch(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Variables;

    fn read(pairs: &[(&str, &str)]) -> Result<Variables, Vec<String>> {
        let find = |name: &str| pairs.iter().find(|(known, _)| *known == name);
        Variables::read(&|name| find(name).map(|(_, value)| (*value).to_owned()), true)
    }

    /// The seed's own file, with tokens that are fit for use.
    const SEED: [(&str, &str); 14] = [
        ("BEARER_TOKEN", "0123456789abcdef"),
        ("MANAGER_INTERNAL_TOKEN", "fedcba9876543210"),
        ("CORE_PORT", "8000"),
        ("MANAGER_PORT", "8001"),
        ("TOOLDOCK_UID", "1000"),
        ("TOOLDOCK_GID", "1000"),
        ("LOG_LEVEL", "info"),
        ("LOG_RETENTION_DAYS", "30"),
        ("CORS_ORIGINS", "*"),
        ("INTERNAL_ALLOWED_CIDRS", "172.30.0.10/32,127.0.0.1/32"),
        ("MCP_SESSION_TTL_HOURS", "24"),
        ("MCP_SUPPORTED_VERSIONS", "2025-11-25,2025-06-18,2025-03-26"),
        ("ENABLE_LEGACY_MCP", "true"),
        ("FS_WATCHER_DEBOUNCE_MS", "1500"),
    ];

    #[test]
    fn file_of_the_seed_is_read_as_it_is() {
        // TD-146
        let read = read(&SEED).unwrap();
        assert_eq!((read.core_port, read.log_level), (Some(8000), Some("info")));
        assert_eq!(read.retention_days, Some(30));
        assert_eq!(read.origins, Some(vec!["*".to_owned()]));
        assert_eq!(read.session_ttl, Some(Duration::from_hours(24)));
        assert_eq!((read.has_sse, read.owner), (Some(true), (Some(1000), Some(1000))));
        assert_eq!(read.versions.unwrap().names().split(", ").count(), 3);
    }

    #[test]
    fn nothing_and_blanks_say_nothing() {
        assert!(read(&[]).is_ok());
        let blank: Vec<_> = SEED
            .iter()
            .filter(|(name, _)| !name.contains("TOKEN"))
            .map(|(name, _)| (*name, ""))
            .collect();
        let blank: Vec<_> =
            blank.into_iter().filter(|(name, _)| !name.starts_with("FS_")).collect();
        assert_eq!(read(&blank).unwrap().core_port, None);
    }

    #[test]
    fn all_faults_are_told_at_once() {
        // TD-145, TD-147
        let problems = read(&[
            ("LOG_LEVEL", "loud"),
            ("LOG_RETENTION_DAYS", "0"),
            ("CORE_PORT", "70000"),
            ("MANAGER_PORT", "x"),
            ("CORS_ORIGINS", "https://a.example, b"),
            ("MCP_SESSION_TTL_HOURS", "721"),
            ("MCP_SUPPORTED_VERSIONS", "2025-11-25,1999"),
            ("ENABLE_LEGACY_MCP", "perhaps"),
            ("TOOLDOCK_UID", "root"),
            ("TOOL_CALL_TIMEOUT_SECONDS", "soon"),
            ("BEARER_TOKEN", "change_me"),
            ("MANAGER_INTERNAL_TOKEN", "change_me"),
            ("INTERNAL_ALLOWED_CIDRS", "here"),
        ])
        .unwrap_err();
        for (problem, expected) in problems.iter().zip([
            "LOG_LEVEL is `loud`; use `debug`",
            "LOG_RETENTION_DAYS is `0`; it must be a number from 1 to",
            "CORE_PORT is `70000`; it must be a port",
            "CORS_ORIGINS is `https://a.example, b`; use `*`",
            "MCP_SESSION_TTL_HOURS is `721`; use hours, more than 0 and at most 720",
            "MCP_SUPPORTED_VERSIONS is `2025-11-25,1999`; use some of",
            "ENABLE_LEGACY_MCP is `perhaps`; use `true` or `false`",
            "TOOLDOCK_UID is `root`; it must be a number",
            "MANAGER_PORT is `x`; it must be a port",
            "BEARER_TOKEN is too weak",
            "TOOL_CALL_TIMEOUT_SECONDS is `soon`; it must be a number from 1 to 86400",
            "MANAGER_INTERNAL_TOKEN is too weak",
            "INTERNAL_ALLOWED_CIDRS holds `here`",
        ]) {
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert_eq!(problems.len(), 13, "{problems:?}");
    }
}
