//! `[session_context]`: what clients may say when they connect. TC-35
//!
//! A JSON file may write it as toolception does: `sessionContext` with a `queryParam`.

use catalog::schema::Schema;
use catalog::session_context::{Encoding, Merge, SessionContext};
use mcp::text::shorten;
use serde_json::{Map, Value as Json};

use crate::expand::expand;
use crate::fault::Faults;
use crate::reader::{Section, Value};
use crate::{Environment, Surroundings};

/// Parameters of an address that mean something else.
const TAKEN_PARAMETERS: [&str; 3] = ["toolsets", "tools", "session_id"];

/// Reads what the top of a file says of it; `None` if nothing may be said.
pub fn read(
    top: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<SessionContext> {
    let value = top.get("session_context")?;
    let section = value.section("in `[session_context]`", faults)?;
    own(section, surroundings.environment, faults)
}

/// The same of a JSON file, which may write it as toolception does.
pub fn read_json(
    top: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<SessionContext> {
    let Some(value) = top.get("sessionContext") else { return read(top, surroundings, faults) };
    let section = value.section("in `sessionContext`", faults)?;
    peers(section, surroundings.environment, faults)
}

fn own(
    mut section: Section<'_>,
    environment: Environment<'_>,
    faults: &mut Faults<'_>,
) -> Option<SessionContext> {
    let enabled = section.get("enabled").and_then(|value| value.boolean(faults)).unwrap_or(false);
    let query = section.get("query").map(|value| parameter(&value, faults));
    let header = section.get("header").map(|value| field(&value, faults));
    let encoding = section.get("encoding").and_then(|value| encoding(&value, faults));
    let allowed = section.get("allowed_keys").map(|value| keys(&value, faults));
    let merge = section.get("merge").and_then(|value| merge(&value, faults));
    let defaults = section.get("defaults").map(|value| defaults(&value, environment, faults));
    let schema = section.get("schema").and_then(|value| schema(&value, faults));
    section.close(&[], faults);
    enabled.then(|| SessionContext {
        query: query.unwrap_or_else(|| Some("config".into())),
        header: header.unwrap_or_else(|| Some("x-mcp-context".into())),
        encoding: encoding.unwrap_or_default(),
        allowed: allowed.map(|keys| keys.into_iter().collect()),
        merge: merge.unwrap_or_default(),
        defaults: defaults.unwrap_or_default(),
        schema,
    })
}

/// toolception's spelling; there is no header in it.
fn peers(
    mut section: Section<'_>,
    environment: Environment<'_>,
    faults: &mut Faults<'_>,
) -> Option<SessionContext> {
    let enabled = section.get("enabled").and_then(|value| value.boolean(faults)).unwrap_or(true);
    let parts = section.get("queryParam");
    let merge = section.get("merge").and_then(|value| merge(&value, faults));
    let defaults = section.get("defaults").map(|value| defaults(&value, environment, faults));
    section.close(&[], faults);
    let mut context = SessionContext {
        query: Some("config".into()),
        header: None,
        encoding: Encoding::default(),
        allowed: None,
        merge: merge.unwrap_or_default(),
        defaults: defaults.unwrap_or_default(),
        schema: None,
    };
    let parts = parts.and_then(|value| value.section("in `queryParam`", faults));
    if let Some(mut parts) = parts {
        if let Some(value) = parts.get("name") {
            context.query = parameter(&value, faults);
        }
        let written = parts.get("encoding").and_then(|value| encoding(&value, faults));
        context.encoding = written.unwrap_or_default();
        let allowed = parts.get("allowedKeys").map(|value| keys(&value, faults));
        context.allowed = allowed.map(|keys| keys.into_iter().collect());
        parts.close(&[], faults);
    }
    enabled.then_some(context)
}

fn encoding(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Encoding> {
    value.choice(&[("base64", Encoding::Base64), ("json", Encoding::Json)], faults)
}

fn merge(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Merge> {
    value.choice(&[("shallow", Merge::Shallow), ("deep", Merge::Deep)], faults)
}

/// The name of a parameter; an empty one switches it off.
fn parameter(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Box<str>> {
    let name = value.string(faults).filter(|name| !name.is_empty())?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.chars().all(is_plain) {
        let fix = "use letters, digits, `-`, `_` and `.`";
        value.report(&format!("is `{}`; {fix}", shorten(name)), faults);
    } else if TAKEN_PARAMETERS.contains(&name) {
        value.report(&format!("is `{name}`, which has a meaning already; use another"), faults);
    }
    Some(name.into())
}

/// The name of a header field; an empty one switches it off.
fn field(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Box<str>> {
    let name = value.string(faults).filter(|name| !name.is_empty())?.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_taken = ["x-namespace", "x-agent-id", "x-mcp-toolsets", "x-mcp-tools"];
    if !name.starts_with("x-") || !name.chars().all(is_plain) || is_taken.contains(&&*name) {
        let fix = "use a name of your own, such as `X-MCP-Context`";
        value.report(&format!("is `{}`; {fix}", shorten(&name)), faults);
    }
    Some(name.into())
}

fn keys(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<Box<str>> {
    value.strings("key", faults).into_iter().map(|(_, key)| key.into()).collect()
}

/// The defaults; variables in their texts are those of the environment.
fn defaults(
    value: &Value<'_>,
    environment: Environment<'_>,
    faults: &mut Faults<'_>,
) -> Map<String, Json> {
    let Json::Object(mut defaults) = value.json() else {
        value.report_type("a table", faults);
        return Map::new();
    };
    for json in defaults.values_mut() {
        for problem in expand_within(json, environment) {
            value.report(&problem, faults);
        }
    }
    defaults
}

fn expand_within(json: &mut Json, environment: Environment<'_>) -> Vec<String> {
    match json {
        Json::String(text) => match expand(text, environment) {
            Ok(expanded) => {
                *text = expanded;
                Vec::new()
            }
            Err(problems) => problems,
        },
        Json::Array(values) => {
            values.iter_mut().flat_map(|value| expand_within(value, environment)).collect()
        }
        Json::Object(values) => {
            values.values_mut().flat_map(|value| expand_within(value, environment)).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => Vec::new(),
    }
}

/// A JSON Schema, inline or as text.
pub fn schema(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Schema> {
    let written = match value.json() {
        Json::String(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        table => Ok(table),
    };
    match written.and_then(|written| Schema::new(&written)) {
        Ok(schema) => Some(schema),
        Err(problem) => {
            let fix = "references to other places are not followed";
            value.report(&format!("is no JSON Schema: {problem}; {fix}"), faults);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Surroundings;

    fn surroundings() -> Surroundings<'static> {
        Surroundings {
            file: Path::new("t"),
            folder: Path::new("/project"),
            environment: &|name| (name == "REGION").then(|| "eu".to_owned()),
        }
    }

    /// Checks what a text says of contexts, or its faults.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match crate::parse(text, &surroundings()) {
            Ok(config) => format!("{:?}", config.session_context),
            Err(faults) => {
                let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
        };
        assert!(found.contains(expected), "{found}");
    }

    fn server(server: &str, section: &str) -> String {
        format!("[[servers]]\ncommand = 'run'\n{server}\n[session_context]\n{section}\n")
    }

    #[test]
    fn section_says_what_clients_may_send() {
        // TC-35
        let check = |section: &str, expected: &str| check(&server("", section), expected);
        check("enabled = false", "None");
        check("", "None");
        check(
            "enabled = true",
            r#"query: Some("config"), header: Some("x-mcp-context"), encoding"#,
        );
        check(
            "enabled = true\nquery = ''\nheader = 'X-Me'",
            r#"query: None, header: Some("x-me")"#,
        );
        check("enabled = true\nencoding = 'json'\nmerge = 'deep'", "encoding: Json, allowed: None");
        check("enabled = true\nmerge = 'deep'", "merge: Deep");
        check("enabled = true\nallowed_keys = ['b', 'a']", r#"allowed: Some({"a", "b"})"#);
        let defaults = "enabled = true\n[session_context.defaults]\nuser.region = '${REGION}'";
        check(defaults, r#"defaults: ["user"]"#);
        let text = server("", defaults);
        let config = crate::parse(&text, &surroundings()).unwrap();
        assert_eq!(config.session_context.unwrap().defaults["user"]["region"], "eu");
    }

    #[test]
    fn toolception_options_are_read_as_they_are() {
        // TC-35
        let check = |options: &str, expected: &str| {
            check(&format!(r#"{{"servers":{{"a":{{"command":"a"}}}},{options}}}"#), expected);
        };
        check(r#""sessionContext":{}"#, r#"query: Some("config"), header: None, encoding: Base64"#);
        check(r#""sessionContext":{"enabled":false}"#, "None");
        let all = r#""sessionContext":{"enabled":true,"merge":"deep","queryParam":
            {"name":"cfg","encoding":"json","allowedKeys":["a"]}}"#;
        check(
            all,
            r#"query: Some("cfg"), header: None, encoding: Json, allowed: Some({"a"}), merge"#,
        );
        check(r#""sessionContext":{"resolver":1}"#, "unknown key `resolver` in `sessionContext`");
    }

    #[test]
    fn every_fault_is_told_with_its_fix() {
        let fault = |section: &str, expected: &str| {
            check(&server("", &format!("enabled = true\n{section}")), expected);
        };
        fault("query = 'a b'", "t:6:9: `query` is `a b`; use letters, digits, `-`, `_` and `.`");
        fault("query = 'tools'", "`query` is `tools`, which has a meaning already; use another");
        fault("header = 'Host'", "`header` is `host`; use a name of your own, such as");
        fault("encoding = 'hex'", "`encoding` is `hex`; it must be `base64` or `json`");
        fault("defaults = 7", "`defaults` is an integer; it must be a table");
        fault("defaults = {a = '${NONE}'}", "`defaults` uses `${NONE}`, which is not set");
        fault("schema = {type = 7}", "`schema` is no JSON Schema: ");
        fault("schema = {'$ref' = 'https://a.example/b'}", "`schema` is no JSON Schema: ");
        fault("keys = []", "unknown key `keys` in `[session_context]`; ");
    }

    #[test]
    fn values_of_clients_are_for_servers_that_each_client_has_for_itself() {
        // TC-35
        let env = "env = {KEY = '${context.key}'}";
        let own = format!("session = 'per-client'\n{env}");
        check(&server(&own, "enabled = true"), "Some(SessionContext");
        let wants = "`KEY` in `env` uses `${context.key}`, which ";
        let shared = format!(
            "t:3:14: {wants}is for a server that each client has for itself; \
             add `session = \"per-client\"`"
        );
        check(&server(env, "enabled = true"), &shared);
        let nobody = "clients may not send; add `[session_context]` with `enabled = true`";
        check(&server(&own, "enabled = false"), &format!("{wants}{nobody}"));
        let other = "clients may not send; add `key` to `allowed_keys`";
        let section = "enabled = true\nallowed_keys = ['user']";
        check(&server(&own, section), &format!("{wants}{other}"));
        let disabled = format!("enabled = false\n{env}\n[[servers]]\ncommand = 'other'");
        check(&server(&disabled, "enabled = false"), "None");
        let shell = "[[servers]]\ncommand = 'run ${context.key}'\n";
        check(shell, "`command` uses `${context.…}`, which no shell knows; put it into `env`");
        let url = "[[servers]]\nurl = 'http://127.0.0.1:1/${context.key}'\n";
        check(url, "`url` uses `${context.…}`, which is not available here; it is for `env`,");
    }
}
