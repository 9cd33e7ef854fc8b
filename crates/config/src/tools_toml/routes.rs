//! `[[routes]]`: paths of the HTTP door that call a tool each. TC-32

use catalog::schema::Schema;
use mcp::text::shorten;

use super::endpoints::TAKEN;
use crate::fault::Faults;
use crate::reader::Value;
use crate::session_context::schema;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A path that calls a tool.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: &'static str,
    /// As it is written: `/weather/{city}`.
    pub path: String,
    pub tool: String,
    pub description: Option<String>,
    /// What the arguments must be like.
    pub request: Option<Schema>,
    /// What the answer must be like.
    pub response: Option<Schema>,
}

/// The routes in the order of the file; `places` are the paths that are taken by endpoints.
pub fn read(value: &Value<'_>, places: &[&str], faults: &mut Faults<'_>) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for element in value.elements("route", faults).unwrap_or_default() {
        let Some(mut section) = element.section("in `[[routes]]`", faults) else { continue };
        let methods = METHODS.map(|method| (method, method));
        let method = section.get("method").map(|value| value.choice(&methods, faults));
        let path = section.get("path");
        let tool = section.get("tool");
        for (key, is_there) in [("path", path.is_some()), ("tool", tool.is_some())] {
            if !is_there {
                let example = if key == "path" { "/weather/{city}" } else { "weather_now" };
                element.report(&format!("has no `{key}`; add one, such as `{example}`"), faults);
            }
        }
        let tool = tool.and_then(|value| value.string(faults));
        let text = section.get("description").and_then(|value| value.string(faults));
        let request = section.get("request_schema").and_then(|value| schema(&value, faults));
        let response = section.get("response_schema").and_then(|value| schema(&value, faults));
        section.close(&[], faults);
        let method = method.unwrap_or(Some("POST"));
        let path = path.and_then(|value| path_of(&value, method, &routes, places, faults));
        if let (Some(method), Some(path), Some(tool)) = (method, path, tool) {
            let (tool, description) = (tool.to_owned(), text.map(str::to_owned));
            routes.push(Route { method, path, tool, description, request, response });
        }
    }
    routes
}

fn path_of(
    value: &Value<'_>,
    method: Option<&str>,
    known: &[Route],
    places: &[&str],
    faults: &mut Faults<'_>,
) -> Option<String> {
    let path = value.string(faults)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = |text: &str| !text.is_empty() && text.chars().all(is_plain);
    let mut names = Vec::new();
    let mut is_good = |part: &str| match parameter(part) {
        Some(name) => {
            let is_new = !names.contains(&name.to_owned());
            names.push(name.to_owned());
            is_name(name) && is_new
        }
        None => is_name(part) && part != "..",
    };
    let parts: Vec<_> = path.split('/').skip(1).collect();
    let first = parts.first().copied().unwrap_or_default();
    let is_taken = |taken: &&str| taken.split('/').nth(1) == Some(first);
    let is_same =
        |route: &&Route| Some(route.method) == method && shape(&route.path) == shape(path);
    let problem = if !path.starts_with('/') || !parts.iter().all(|part| is_good(part)) {
        "must begin with `/` and have parts of letters, digits, `-`, `_` and `.`, or `{name}`, each once"
    } else if parameter(first).is_some() {
        "must begin with a plain part, such as `/weather/{city}`"
    } else if TAKEN.iter().any(is_taken) || places.contains(&path) {
        "is served already; choose another, such as `/api/weather`"
    } else if known.iter().any(|route| is_same(&route)) {
        "is there twice for one method; each has one tool"
    } else {
        return Some(path.to_owned());
    };
    value.report(&format!("is `{}`; it {problem}", shorten(path)), faults);
    None
}

/// The name in a part such as `{city}`.
fn parameter(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// A path without the names of its parameters: two of one shape can't be told apart.
fn shape(path: &str) -> Vec<Option<&str>> {
    path.split('/').map(|part| parameter(part).is_none().then_some(part)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Surroundings;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let surroundings = Surroundings {
            file: Path::new("t"),
            folder: Path::new("/project"),
            environment: &|_| None,
        };
        let text = format!("[[servers]]\ncommand = 'run'\n[[routes]]\n{text}");
        let found = match crate::parse(&text, &surroundings) {
            Ok(config) => {
                let one = |route: &super::Route| {
                    format!("{} {} -> {}", route.method, route.path, route.tool)
                };
                config.routes.iter().map(one).collect::<Vec<_>>().join("\n")
            }
            Err(faults) => {
                let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
        };
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn routes_lead_to_tools() {
        // TC-32
        check("path = '/api/echo'\ntool = 'a_echo'", "POST /api/echo -> a_echo");
        let get = "path = '/api/{x}/y'\ntool = 'a:b'\nmethod = 'GET'\n[[routes]]\n\
            path = '/api/{z}/y'\ntool = 'c'\nrequest_schema = {type = 'object'}\n\
            response_schema = '{\"type\": \"object\"}'\ndescription = 'd'";
        check(get, "GET /api/{x}/y -> a:b\nPOST /api/{z}/y -> c");
    }

    #[test]
    fn every_fault_of_a_route_is_told_with_its_fix() {
        // TC-32
        for (path, problem) in [
            ("api", "t:4:8: `path` is `api`; it must begin with `/` and have parts of letters"),
            ("/a/{b", "must begin with `/` and have parts"),
            ("/a//b", "must begin with `/` and have parts"),
            ("/a/{b}/{b}", "must begin with `/` and have parts"),
            ("/{a}", "must begin with a plain part, such as `/weather/{city}`"),
            ("/mcp/x", "is served already; choose another, such as `/api/weather`"),
            ("/tools/x", "is served already"),
            ("/.well-known/x", "is served already"),
            ("/healthz", "is served already"),
        ] {
            check(&format!("path = '{path}'\ntool = 'a'"), problem);
        }
        check(
            "tool = 'a'",
            "route 1 of `routes` has no `path`; add one, such as `/weather/{city}`",
        );
        check("path = '/a'", "route 1 of `routes` has no `tool`; add one, such as `weather_now`");
        check("path = '/a'\ntool = 'b'\nmethod = 'HEAD'", "`method` is `HEAD`; it must be `GET`,");
        check("path = '/a'\ntool = 'b'\nrequest_schema = 7", "`request_schema` is no JSON Schema");
        let twice = "path = '/a/{b}'\ntool = 'x'\n[[routes]]\npath = '/a/{c}'\ntool = 'y'";
        check(twice, "t:7:8: `path` is `/a/{c}`; it is there twice for one method; each has one");
        let taken = "path = '/other'\ntool = 'x'\n[[endpoints]]\npath = '/other'";
        check(taken, "`path` is `/other`; it is served already");
        check("path = '/a'\ntool = 'b'\nhandler = 'x'", "unknown key `handler` in `[[routes]]`");
    }
}
