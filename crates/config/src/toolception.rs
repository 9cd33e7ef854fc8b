//! toolception's options in a JSON file: the same things under other names. TC-01 to TC-08, TC-32
//!
//! They are translated into ours before they are read, each value with its place, so that there is one reader and
//! one kind of fault.

use std::borrow::Cow;
use std::ops::Range;

use catalog::surface::Surface;
use mcp::text::shorten;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::fault::Faults;

type Node<'t> = Spanned<DeValue<'t>>;

/// What our sections are called here.
pub const SPELLINGS: [(&str, &str); 13] = [
    ("`[exposure_policy]`", "`exposurePolicy`"),
    ("`[permissions]`", "`permissions`"),
    ("`[http]`", "`http`"),
    ("`[toolsets]`", "`catalog`"),
    ("`[[routes]]`", "`customEndpoints`"),
    ("`[startup]`", "`startup`"),
    ("`max_active`", "`maxActiveToolsets`"),
    ("`namespacing`", "`namespaceToolsWithSetKey`"),
    ("`clients`", "`staticMap`"),
    ("`default`", "`defaultPermissions`"),
    ("`decision_criteria`", "`decisionCriteria`"),
    ("`request_schema`", "`requestSchema`"),
    ("`response_schema`", "`responseSchema`"),
];

/// Whether a file has such options: a `catalog` of toolsets.
pub fn is_meant(table: &DeTable<'_>) -> bool {
    matches!(value(table, "catalog"), Some(DeValue::Table(_)))
}

/// The same table under our names, and the surface that it means.
pub fn translate<'t>(table: &DeTable<'t>, faults: &mut Faults<'_>) -> (DeTable<'t>, Surface) {
    let (startup, surface) = startup(table, faults);
    let mut translated = DeTable::new();
    for (key, node) in table {
        let at = key.span();
        match (key.get_ref().as_ref(), node.get_ref()) {
            ("catalog", DeValue::Table(catalog)) => {
                let toolsets = map(catalog, |name, node| (name.to_owned(), toolset(node)));
                put(&mut translated, "toolsets", at, table_at(node, toolsets));
            }
            ("startup", _) => {}
            ("exposurePolicy", DeValue::Table(policy)) => {
                let names = [
                    ("maxActiveToolsets", "max_active"),
                    ("namespaceToolsWithSetKey", "namespacing"),
                ];
                put(
                    &mut translated,
                    "exposure_policy",
                    at,
                    table_at(node, renamed(policy, &names)),
                );
            }
            ("permissions", DeValue::Table(permissions)) => {
                header_name(permissions, faults);
                let names = [("staticMap", "clients"), ("defaultPermissions", "default")];
                let mut permissions = renamed(permissions, &names);
                permissions.remove("headerName");
                put(&mut translated, "permissions", at, table_at(node, permissions));
            }
            ("http", DeValue::Table(http)) => self::http(http, node, &mut translated, faults),
            (name, _) => put(&mut translated, name, at, node.clone()),
        }
    }
    if let Some((at, startup)) = startup {
        put(&mut translated, "startup", at, startup);
    }
    // Its clients are those that name themselves in `mcp-client-id`.
    if let (false, Some((key, _))) =
        (table.contains_key("distinguish_clients"), table.get_key_value("catalog"))
    {
        put(
            &mut translated,
            "distinguish_clients",
            key.span(),
            text_at(key.span(), "id".to_owned()),
        );
    }
    (translated, surface)
}

/// What a server starts with, and whether that is all: FORMATS says that toolsets without a mode mean STATIC, and
/// none DYNAMIC. Names that no toolset has are left out with a warning.
fn startup<'t>(
    table: &DeTable<'t>,
    faults: &mut Faults<'_>,
) -> (Option<(Range<usize>, Node<'t>)>, Surface) {
    if table.contains_key("permissions") {
        if let Some(node) = table.get("startup") {
            let problem = "`startup` stands beside `permissions`, which say it all; remove it";
            faults.report(node.span().start, problem);
        }
        return (None, Surface::Permission);
    }
    let Some((key, node)) = table.get_key_value("startup") else { return (None, Surface::Dynamic) };
    let DeValue::Table(startup) = node.get_ref() else {
        return (Some((key.span(), node.clone())), Surface::Dynamic);
    };
    let mode = startup.get("mode");
    let is_static = match mode.map(|mode| (mode.get_ref().as_str(), mode.span())) {
        Some((Some("STATIC"), _)) => true,
        Some((Some("DYNAMIC"), _)) => false,
        Some((_, at)) => {
            faults.report(at.start, "`mode` must be `DYNAMIC` or `STATIC`");
            return (None, Surface::Dynamic);
        }
        None => startup.contains_key("toolsets"),
    };
    if !is_static {
        if let Some(toolsets) = startup.get("toolsets") {
            let words = "`toolsets` mean nothing in the mode `DYNAMIC`, where clients enable them";
            faults.warn(toolsets.span().start, words);
        }
        return (None, Surface::Dynamic);
    }
    let mut kept = startup.clone();
    kept.remove("mode");
    if let Some(toolsets) = startup.get("toolsets") {
        let known = known_names(table, toolsets, faults);
        kept.remove("toolsets");
        put(&mut kept, "toolsets", toolsets.span(), known);
    }
    (Some((key.span(), table_at(node, kept))), Surface::Static)
}

/// The names that toolsets have, unless none has.
fn known_names<'t>(table: &DeTable<'t>, toolsets: &Node<'t>, faults: &mut Faults<'_>) -> Node<'t> {
    let (DeValue::Array(names), Some(DeValue::Table(catalog))) =
        (toolsets.get_ref(), value(table, "catalog"))
    else {
        return toolsets.clone();
    };
    let is_known =
        |node: &&Node<'t>| node.get_ref().as_str().is_none_or(|name| catalog.contains_key(name));
    let mut known = DeArray::new();
    names.iter().filter(is_known).for_each(|node| known.push(node.clone()));
    if known.is_empty() {
        // Told as a fault by whoever reads it.
        return toolsets.clone();
    }
    for node in names.iter().filter(|node| !is_known(node)) {
        let name = shorten(node.get_ref().as_str().unwrap_or_default());
        faults.warn(node.span().start, format!("`{name}` is no toolset of `catalog`; left out"));
    }
    Spanned::new(toolsets.span(), DeValue::Array(known))
}

/// A toolset: what modules are there are servers here, with all that they have.
fn toolset<'t>(node: &Node<'t>) -> Node<'t> {
    let DeValue::Table(entry) = node.get_ref() else { return node.clone() };
    let mut toolset =
        renamed(entry, &[("name", "title"), ("decisionCriteria", "decision_criteria")]);
    toolset.remove("modules");
    toolset.remove("tools");
    let mut tools = DeArray::new();
    if let Some(DeValue::Array(modules)) = value(entry, "modules") {
        for module in modules {
            let all = module.get_ref().as_str().map(|name| format!("{name}:*"));
            let all = all.map(|all| DeValue::String(Cow::Owned(all)));
            let all = all.unwrap_or_else(|| module.get_ref().clone());
            tools.push(Spanned::new(module.span(), all));
        }
    }
    if let Some(DeValue::Array(own)) = value(entry, "tools") {
        for tool in own {
            // A definition is one of a function; here its name counts.
            let name = match tool.get_ref() {
                DeValue::Table(definition) => value(definition, "name").cloned(),
                _ => None,
            };
            tools.push(Spanned::new(tool.span(), name.unwrap_or_else(|| tool.get_ref().clone())));
        }
    }
    put(&mut toolset, "tools", node.span(), Spanned::new(node.span(), DeValue::Array(tools)));
    table_at(node, toolset)
}

fn header_name(permissions: &DeTable<'_>, faults: &mut Faults<'_>) {
    let Some(node) = permissions.get("headerName") else { return };
    let is_usual = |name: &str| name.eq_ignore_ascii_case("mcp-toolset-permissions");
    if !node.get_ref().as_str().is_some_and(is_usual) {
        let problem = "`headerName` must be `mcp-toolset-permissions`, or left out";
        faults.report(node.span().start, problem);
    }
}

/// `host` and `port` are an address to listen on, `basePath` may stand before every path, `customEndpoints` are routes.
fn http<'t>(http: &DeTable<'t>, node: &Node<'t>, top: &mut DeTable<'t>, faults: &mut Faults<'_>) {
    let mut own = http.clone();
    let taken = ["host", "port", "basePath", "cors", "customEndpoints"];
    let [host, port, base, cors, endpoints] = taken.map(|key| own.remove(key));
    if host.is_some() || port.is_some() {
        let place = port.as_ref().or(host.as_ref()).map_or_else(|| node.span(), Spanned::span);
        let host = host.as_ref().and_then(|host| host.get_ref().as_str()).unwrap_or("127.0.0.1");
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        let port = port.as_ref().map_or("3000".to_owned(), |port| match port.get_ref() {
            DeValue::Integer(port) => port.as_str().to_owned(),
            other => other.as_str().unwrap_or_default().to_owned(),
        });
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        put(&mut own, "listen", place.clone(), text_at(place, format!("{host}:{port}")));
    }
    match cors.as_ref().map(|cors| (cors.get_ref(), cors.span())) {
        Some((DeValue::Boolean(true), at)) => {
            let words = "`cors` would serve pages of every origin; name them in `allowed_origins`";
            faults.warn(at.start, words);
        }
        Some((DeValue::Table(options), at)) => {
            let origins = match options.get("origin") {
                Some(one) if one.get_ref().as_str().is_some() => {
                    let mut origins = DeArray::new();
                    origins.push(one.clone());
                    Some(Spanned::new(one.span(), DeValue::Array(origins)))
                }
                many => many.cloned(),
            };
            if let Some(origins) = origins {
                put(&mut own, "allowed_origins", at, origins);
            }
        }
        _ => {}
    }
    if let Some(base) = base {
        put(&mut own, "base_path", base.span(), base);
    }
    if let Some(endpoints) = endpoints {
        put(top, "routes", endpoints.span(), routes(&endpoints));
    }
    put(top, "http", node.span(), table_at(node, own));
}

/// Endpoints that call a tool; a parameter of a path is written `:name` there.
fn routes<'t>(endpoints: &Node<'t>) -> Node<'t> {
    let DeValue::Array(list) = endpoints.get_ref() else { return endpoints.clone() };
    let mut routes = DeArray::new();
    for endpoint in list {
        let DeValue::Table(entry) = endpoint.get_ref() else {
            routes.push(endpoint.clone());
            continue;
        };
        let names = [("requestSchema", "request_schema"), ("responseSchema", "response_schema")];
        let mut route = renamed(entry, &names);
        if let Some(path) = route.remove("path") {
            let text = path.get_ref().as_str().unwrap_or_default();
            let parts = text.split('/').map(|part| match part.strip_prefix(':') {
                Some(name) => format!("{{{name}}}"),
                None => part.to_owned(),
            });
            let text = parts.collect::<Vec<_>>().join("/");
            put(&mut route, "path", path.span(), text_at(path.span(), text));
        }
        routes.push(table_at(endpoint, route));
    }
    Spanned::new(endpoints.span(), DeValue::Array(routes))
}

fn value<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<&'a DeValue<'t>> {
    table.get(key).map(Spanned::get_ref)
}

fn put<'t>(table: &mut DeTable<'t>, key: &str, at: Range<usize>, node: Node<'t>) {
    table.insert(Spanned::new(at, Cow::Owned(key.to_owned())), node);
}

fn text_at<'t>(at: Range<usize>, text: String) -> Node<'t> {
    Spanned::new(at, DeValue::String(Cow::Owned(text)))
}

/// A table in the place of another.
fn table_at<'t>(node: &Node<'t>, table: DeTable<'t>) -> Node<'t> {
    Spanned::new(node.span(), DeValue::Table(table))
}

fn renamed<'t>(table: &DeTable<'t>, names: &[(&str, &str)]) -> DeTable<'t> {
    map(table, |key, node| {
        let own = names.iter().find(|(theirs, _)| *theirs == key).map(|(_, own)| *own);
        (own.unwrap_or(key).to_owned(), node.clone())
    })
}

fn map<'t>(
    table: &DeTable<'t>,
    change: impl Fn(&str, &Node<'t>) -> (String, Node<'t>),
) -> DeTable<'t> {
    let mut changed = DeTable::new();
    for (key, node) in table {
        let (name, node) = change(key.get_ref().as_ref(), node);
        put(&mut changed, &name, key.span(), node);
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use catalog::profile::ToldApart;
    use catalog::surface::Surface;

    use crate::{Config, Surroundings};

    fn parse(options: &str) -> Result<Config, String> {
        let surroundings = Surroundings {
            file: Path::new("t"),
            folder: Path::new("/project"),
            environment: &|_| None,
        };
        let text = format!(
            r#"{{"servers":{{"git":{{"command":"git"}},"hub":{{"command":"hub"}}}},
"catalog":{{"read":{{"name":"Read","description":"d","modules":["git"],"decisionCriteria":"c"}},
"write":{{"name":"Write","tools":["hub_push",{{"name":"git_commit"}}]}}}}{options}}}"#
        );
        crate::parse(&text, &surroundings).map_err(|faults| {
            let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })
    }

    fn warnings(config: &Config) -> Vec<String> {
        config.warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn catalog_is_toolsets_of_servers_and_tools() {
        // TC-01
        let config = parse("").unwrap();
        let toolsets = &config.rules.toolsets;
        let (_, read) = toolsets.find("read").unwrap();
        assert_eq!((read.title.as_deref(), read.description.as_deref()), (Some("Read"), Some("d")));
        assert_eq!(read.decision_criteria.as_deref(), Some("c"));
        assert!(read.patterns.may_be_of("git") && !read.patterns.may_be_of("hub"));
        let (_, write) = toolsets.find("write").unwrap();
        assert!(write.patterns.holds("hub_push") && write.patterns.holds("git_commit"));
    }

    #[test]
    fn mode_decides_on_the_surface() {
        // TC-01, TC-04, TC-07
        let surface = |options: &str| parse(options).unwrap().surface;
        assert_eq!(surface(""), Surface::Dynamic);
        assert_eq!(surface(r#","startup":{}"#), Surface::Dynamic);
        assert_eq!(surface(r#","startup":{"toolsets":"ALL"}"#), Surface::Static);
        assert_eq!(surface(r#","startup":{"mode":"STATIC","toolsets":["read"]}"#), Surface::Static);
        assert_eq!(surface(r#","permissions":{"source":"headers"}"#), Surface::Permission);
        let config = parse(r#","startup":{"mode":"DYNAMIC","toolsets":["read"]}"#).unwrap();
        assert!(config.surface == Surface::Dynamic && config.rules.exposure.startup.is_empty());
        let ignored = "`toolsets` mean nothing in the mode `DYNAMIC`, where clients enable them";
        assert!(warnings(&config)[0].ends_with(ignored), "{:?}", config.warnings);
    }

    #[test]
    fn unknown_toolsets_warn_and_none_at_all_is_a_fault() {
        // TC-04
        let config = parse(r#","startup":{"toolsets":["read","gone"]}"#).unwrap();
        assert_eq!(config.rules.exposure.startup.len(), 1);
        assert_eq!(warnings(&config), ["t:3:100: `gone` is no toolset of `catalog`; left out"]);
        let fault = parse(r#","startup":{"toolsets":["gone"]}"#).unwrap_err();
        assert!(fault.contains("is `gone`, which is no toolset; known are `read`"), "{fault}");
        for (options, words) in [
            (r#","startup":{"mode":"FAST"}"#, "`mode` must be `DYNAMIC` or `STATIC`"),
            (r#","startup":{"toolset":[]}"#, ""),
            (r#","startup":{"mode":"STATIC","x":1,"toolsets":"ALL"}"#, "unknown key `x` in"),
            (r#","permissions":{},"startup":{}"#, "`startup` stands beside `permissions`"),
            (r#","permissions":{"headerName":"x"}"#, "`headerName` must be"),
            (r#","exposurePolicy":{"maxActiveToolsets":"2"}"#, "`maxActiveToolsets` is a string"),
            (r#","permissions":{"staticMap":{"ci":["gone"]}}"#, "toolset 1 of `ci` in `staticMap`"),
            (r#","exposurePolicy":{"max":1}"#, "unknown key `max` in `exposurePolicy`"),
        ] {
            match parse(options) {
                Ok(_) => assert_eq!(words, "", "{options}"),
                Err(fault) => assert!(fault.contains(words) && !words.is_empty(), "{fault}"),
            }
        }
    }

    #[test]
    fn policies_permissions_and_the_door_have_our_names() {
        // TC-08, TC-20, TC-24, TC-32, TC-34
        let config = parse(
            r#","exposurePolicy":{"maxActiveToolsets":2,"allowlist":["read"],"denylist":["write"],
            "namespaceToolsWithSetKey":false},"http":{"host":"127.0.0.1","port":3100,"basePath":"/x",
            "cors":{"origin":"https://a.example"},"customEndpoints":
            [{"method":"GET","path":"/api/:id","tool":"git_log","responseSchema":{"type":"object"}}]}"#,
        );
        let config = config.unwrap();
        let exposure = &config.rules.exposure;
        assert_eq!((exposure.active_max, exposure.is_bare), (Some(2), true));
        assert_eq!(exposure.allowed.as_ref().map_or(0, BTreeSet::len), 1);
        assert_eq!(config.http.listen.unwrap().to_string(), "127.0.0.1:3100");
        assert_eq!(config.http.allowed_origins, ["https://a.example"]);
        assert_eq!(config.http.base_path.as_deref(), Some("/x"));
        assert_eq!(config.profiles.told_apart, ToldApart::ById);
        let route = &config.routes[0];
        assert_eq!((route.method, &*route.path, &*route.tool), ("GET", "/api/{id}", "git_log"));
        assert!(route.response.is_some());
        let config = parse(
            r#","permissions":{"source":"config","staticMap":{"ci":["read"]},
            "defaultPermissions":["write"]},"http":{"cors":true}"#,
        );
        let config = config.unwrap();
        assert_eq!(&*config.permissions.clients[0].0, "ci");
        assert_eq!(config.permissions.default, [Box::from("write")]);
        assert!(warnings(&config)[0].contains("name them in `allowed_origins`"));
    }
}
