//! `[[endpoints]]`: paths of the HTTP door with a surface, or a namespace, of their own.

use catalog::scope::Scope;
use catalog::surface::Surface;
use mcp::names::Namespace;
use mcp::text::shorten;

use super::server::name;
use crate::fault::Faults;
use crate::reader::Value;

/// What the door itself serves; nothing else can be there.
pub const TAKEN: [&str; 12] = [
    "/mcp",
    "/sse",
    "/messages",
    "/tools",
    "/openapi.json",
    "/docs",
    "/.well-known/mcp-config",
    "/namespaces",
    "/metrics",
    "/health",
    "/healthz",
    "/readyz",
];

/// The endpoints in the order of the file.
pub fn read(
    value: &Value<'_>,
    surfaces: &[(&str, Surface)],
    usual: Surface,
    namespaces: &[&Namespace],
    faults: &mut Faults<'_>,
) -> Vec<(String, Scope)> {
    let mut endpoints: Vec<(String, Scope)> = Vec::new();
    for element in value.elements("endpoint", faults).unwrap_or_default() {
        let Some(mut section) = element.section("in `[[endpoints]]`", faults) else { continue };
        let path = section.get("path");
        if path.is_none() {
            element.report("has no `path`; add one, such as `path = \"/mcp/dev\"`", faults);
        }
        let path = path.and_then(|value| path_of(&value, &endpoints, faults));
        let surface = section.get("surface").and_then(|value| value.choice(surfaces, faults));
        let namespace = section.get("namespace").and_then(|value| {
            let name: Namespace = name(&value, faults)?;
            if !namespaces.contains(&&name) {
                let name = name.as_str();
                value.report(
                    &format!("is `{name}`, which no server has; see `[[servers]]`"),
                    faults,
                );
            }
            Some(name)
        });
        section.close(&[], faults);
        let scope = Scope { surface: surface.unwrap_or(usual), namespace, ..Scope::default() };
        endpoints.extend(path.map(|path| (path, scope)));
    }
    endpoints
}

fn path_of(
    value: &Value<'_>,
    known: &[(String, Scope)],
    faults: &mut Faults<'_>,
) -> Option<String> {
    let path = value.string(faults)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    let problem = if !path.starts_with('/') || path.ends_with('/') || path.contains("//") {
        "must begin with `/` and not end with one"
    } else if !path.chars().all(is_plain) || path.split('/').any(|part| part == "..") {
        "may hold letters, digits, `/`, `-`, `_` and `.` only"
    } else if TAKEN.contains(&path) || path.starts_with("/tools/") {
        "is served already; choose another, such as `/mcp/dev`"
    } else if known.iter().any(|(other, _)| other == path) {
        "is there twice; each path has one endpoint"
    } else {
        return Some(path.to_owned());
    };
    value.report(&format!("is `{}`; it {problem}", shorten(path)), faults);
    None
}
