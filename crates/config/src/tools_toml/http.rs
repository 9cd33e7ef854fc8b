//! The section `[http]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use mcp::text::shorten;
use mcp::version::{Revision, Spoken};

use super::TOP_KEYS;
use super::server::wait;
use super::texts::expanded;
use crate::Surroundings;
use crate::fault::Faults;
use crate::http::{Http, TokenSource, weakness};
use crate::limits::SESSION_TTL;
use crate::policies::networks;
use crate::reader::{Section, Value};

pub fn read(value: &Value<'_>, surroundings: &Surroundings<'_>, faults: &mut Faults<'_>) -> Http {
    let Some(mut section) = value.section("in `[http]`", faults) else { return Http::default() };
    let http = Http {
        listen: section.get("listen").and_then(|value| listen(&value, faults)),
        token: token(&mut section, surroundings, faults),
        tls: tls(&mut section, surroundings, faults),
        allowed_origins: list(&mut section, "allowed_origins", "origin", origin, faults),
        allowed_hosts: list(&mut section, "allowed_hosts", "host", host, faults),
        base_path: section.get("base_path").and_then(|value| base_path(&value, faults)),
        legacy_sse: section.get("legacy_sse").and_then(|value| value.boolean(faults)),
        session_ttl: Some(wait(&mut section, "session_ttl", SESSION_TTL, faults)),
        awaits_all: section
            .get("ready_when")
            .and_then(|value| value.choice(&[("any", false), ("all", true)], faults))
            .unwrap_or_default(),
        supported_versions: section
            .get("supported_versions")
            .and_then(|value| versions(&value, faults)),
        tokens: Vec::new(),
        trusted_peers: section
            .get("trusted_peers")
            .map(|value| networks(&value, faults))
            .unwrap_or_default(),
    };
    section.close(&TOP_KEYS, faults);
    http
}

/// What may stand before every path; `None` for `/`.
fn base_path(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<String> {
    let text = value.string(faults)?;
    let path = text.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    let is_path = path.is_empty() || path.starts_with('/') && path.chars().all(is_plain);
    if !is_path {
        let fix = "write a path such as `/tools-for-us`";
        value.report(&format!("is `{}`; {fix}", shorten(text)), faults);
    }
    Some(path.to_owned()).filter(|path| !path.is_empty())
}

fn listen(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<SocketAddr> {
    let text = value.string(faults)?;
    let address = text.parse().ok();
    if address.is_none() {
        let fix = "write an address and a port, such as `127.0.0.1:8000`";
        value.report(&format!("is `{}`; {fix}", shorten(text)), faults);
    }
    address
}

fn token(
    section: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<TokenSource> {
    let (token, file) = (section.get("token"), section.get("token_file"));
    if let (Some(_), Some(file)) = (&token, &file) {
        file.report("stands beside `token`; keep one of them", faults);
        return None;
    }
    if let Some(file) = file {
        return path(&file, surroundings, faults).map(TokenSource::File);
    }
    let value = token?;
    let text = expanded(&value, value.string(faults)?, surroundings.environment, faults)?;
    // X01; it is not shown, since even a weak token is one.
    if let Some(problem) = weakness(&text) {
        value.report(&problem, faults);
        return None;
    }
    Some(TokenSource::Text(text))
}

fn tls(
    section: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<(PathBuf, PathBuf)> {
    match (section.get("tls_cert"), section.get("tls_key")) {
        (Some(certificate), Some(key)) => {
            let certificate = path(&certificate, surroundings, faults);
            let key = path(&key, surroundings, faults);
            Some((certificate?, key?))
        }
        (Some(alone), None) => {
            alone.report("stands alone; add `tls_key`, the file of its key", faults);
            None
        }
        (None, Some(alone)) => {
            alone.report("stands alone; add `tls_cert`, the file of its certificate", faults);
            None
        }
        (None, None) => None,
    }
}

fn path(
    value: &Value<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<PathBuf> {
    let text = expanded(value, value.string(faults)?, surroundings.environment, faults)?;
    if text.is_empty() {
        value.report("is empty; write the path of a file", faults);
        return None;
    }
    Some(surroundings.folder.join(text))
}

fn list(
    section: &mut Section<'_>,
    key: &'static str,
    noun: &str,
    problem: fn(&str) -> Option<&'static str>,
    faults: &mut Faults<'_>,
) -> Vec<String> {
    let Some(value) = section.get(key) else { return Vec::new() };
    let mut texts = Vec::new();
    for (element, text) in value.strings(noun, faults) {
        match problem(text) {
            Some(fix) => element.report(&format!("is `{}`; {fix}", shorten(text)), faults),
            None => texts.push(text.to_owned()),
        }
    }
    texts
}

/// What is wrong with an origin.
pub fn origin(text: &str) -> Option<&'static str> {
    let name = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_origin = name.is_some_and(|name| host(name).is_none());
    (!is_origin).then_some("write it as a browser does, such as `https://app.example`")
}

/// What is wrong with a host.
fn host(text: &str) -> Option<&'static str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    let is_host = !text.is_empty() && text.chars().all(is_allowed);
    (!is_host).then_some("write a name, with a port if you like, such as `gateway.example:8000`")
}

fn versions(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Spoken> {
    let mut revisions = Vec::new();
    let mut is_known = true;
    for (element, text) in value.strings("version", faults) {
        let revision = Revision::parse(text);
        if revision.is_none() {
            let (text, known) = (shorten(text), Spoken::default().names());
            element.report(&format!("is `{text}`; known are {known}"), faults);
            is_known = false;
        }
        revisions.extend(revision);
    }
    let spoken = Spoken::new(revisions);
    if spoken.is_none() && is_known {
        value.report("is empty; leave it out, or name a version", faults);
    }
    spoken
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Surroundings;

    /// Checks what a section means, or its faults.
    #[track_caller]
    fn check(section: &str, expected: &str) {
        let surroundings = Surroundings {
            file: Path::new("t"),
            folder: Path::new("/project"),
            environment: &|name| (name == "TOKEN").then(|| "0123456789abcdef".to_owned()),
        };
        let text = format!("[[servers]]\ncommand = 'run'\n[http]\n{section}");
        let found = match crate::parse(&text, &surroundings) {
            Ok(config) => format!("{:?}", config.http),
            Err(faults) => {
                let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
        };
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("0123456789"), "a token is never shown: {found}");
    }

    #[test]
    fn section_says_how_the_door_is_opened() {
        check("listen = '[::1]:80'", "listen: Some([::1]:80)");
        check("token = '${TOKEN}'", "token: Some(Text(…))");
        check("token_file = 'secret'", r#"token: Some(File("/project/secret"))"#);
        check("tls_cert = 'c'\ntls_key = '/k'", r#"tls: Some(("/project/c", "/k"))"#);
        check("allowed_origins = ['https://app.example']", r#"["https://app.example"]"#);
        check("allowed_hosts = ['gateway.example:8000']", r#"["gateway.example:8000"]"#);
        check("legacy_sse = false", "legacy_sse: Some(false)");
        check("session_ttl = '2h'", "session_ttl: Some(7200s)");
        check("ready_when = 'all'", "awaits_all: true");
        check("ready_when = 'any'", "awaits_all: false");
        check("supported_versions = ['2025-06-18']", "Spoken([V2025_06_18])");
    }

    #[test]
    fn every_fault_of_the_section_is_told_with_its_fix() {
        // X01
        for (section, fault) in [
            ("listen = '8000'", "t:4:10: `listen` is `8000`; write an address and a port, such as"),
            ("token = 'change_me'", "t:4:9: `token` is too weak; use at least 16 visible ASCII"),
            ("token = '${NONE}'", "t:4:9: `token` uses `${NONE}`, which is not set;"),
            ("token = '${TOKEN}'\ntoken_file = 'x'", "`token_file` stands beside `token`; keep"),
            ("tls_cert = 'c'", "t:4:12: `tls_cert` stands alone; add `tls_key`"),
            ("tls_key = 'c'", "t:4:11: `tls_key` stands alone; add `tls_cert`"),
            ("tls_key = ''\ntls_cert = 'c'", "`tls_key` is empty; write the path of a file"),
            ("allowed_origins = ['*']", "origin 1 of `allowed_origins` is `*`; write it as a"),
            ("allowed_origins = ['https://a/']", "`https://a/`; write it as a browser does"),
            ("allowed_hosts = ['http://a']", "host 1 of `allowed_hosts` is `http://a`; write a"),
            ("legacy_sse = 1", "`legacy_sse` is an integer; it must be `true` or `false`"),
            ("session_ttl = '2d'", "`session_ttl` is `2d`; write a number of seconds"),
            ("supported_versions = ['1999']", "version 1 of `supported_versions` is `1999`; known"),
            ("ready_when = 'one'", "`ready_when` is `one`; it must be `any` or `all`"),
            ("supported_versions = []", "`supported_versions` is empty; leave it out, or"),
            ("listn = 'x'", "t:4:1: unknown key `listn` in `[http]`; did you mean `listen`?"),
            ("surface = 'activate'", "`surface` stands in `[http]`; move it to the top"),
        ] {
            check(section, fault);
        }
    }
}
