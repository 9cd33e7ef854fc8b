//! What the environment says of sources.

use super::Settings;

#[test]
fn environment_says_where_sources_come_from() {
    let read = |pairs: &'static [(&'static str, &'static str)]| {
        Settings::read(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let usual = read(&[]).unwrap();
    assert_eq!(usual.registry.to_string(), "https://registry.modelcontextprotocol.io/");
    assert!(usual.local.is_empty());
    let set = read(&[
        ("MCP_REGISTRY_URL", "http://127.0.0.1:8080"),
        ("NPM_REGISTRY_URL", "https://npm.example.com/mirror"),
        ("ALLOWED_REPO_PATHS", "/srv/a:/srv/b"),
    ])
    .unwrap();
    assert_eq!(set.registry.to_string(), "http://127.0.0.1:8080/");
    assert_eq!(set.npm.to_string(), "https://npm.example.com/mirror");
    assert_eq!(set.local.len(), 2);
    let wrong = read(&[
        ("MCP_REGISTRY_URL", "http://example.com"),
        ("PYPI_URL", "pypi"),
        ("ALLOWED_REPO_PATHS", "here"),
    ]);
    assert_eq!(
        wrong.unwrap_err(),
        "`MCP_REGISTRY_URL` must begin with `https://`; `PYPI_URL` is no URL; write one such as \
         `https://example.com/mcp`; `ALLOWED_REPO_PATHS` names `here`, which does not begin with `/`"
    );
}
