//! Manifests of every kind.

use super::{dependencies, framework};

#[track_caller]
fn check(path: &str, text: &str, expected: &str) {
    let found = dependencies(path, text);
    let shown: Vec<String> =
        found.iter().map(|(name, version)| format!("{name} {version}")).collect();
    assert_eq!(shown.join("\n"), expected);
}

#[test]
fn dependencies_are_read_from_every_manifest() {
    check(
        "a/package.json",
        r#"{"dependencies": {"zod": "^3"}, "peerDependencies": {"x": "1"}, "devDependencies": {"vitest": "2"}}"#,
        "x 1\nzod ^3",
    );
    check(
        "pyproject.toml",
        "[project]\ndependencies = [\"httpx>=0.28\", \"mcp[cli] ~= 1.2; python_version > '3'\"]\n\
         [tool.poetry.dependencies]\npython = \"^3.11\"\nrich = {version = \"13\"}\n",
        "httpx >=0.28\nmcp ~= 1.2\nrich 13",
    );
    check(
        "requirements-dev.txt",
        "# c\n-r other.txt\nhttpx==1 # why\n\nfastmcp\n",
        "fastmcp \nhttpx ==1",
    );
    check(
        "setup.cfg",
        "[options]\ninstall_requires =\n    a>1\n    b\nzip_safe = no\n",
        "a >1\nb ",
    );
    check(
        "go.mod",
        "module x\nrequire a.b/c v1\nrequire (\n\td.e/f v2 // indirect\n)\n",
        "a.b/c v1\nd.e/f v2",
    );
    check(
        "Cargo.toml",
        "[dependencies]\nrmcp = \"3\"\nserde = { version = \"1\", features = [] }\n[dev-dependencies]\nx = \"1\"\n",
        "rmcp 3\nserde 1",
    );
    check(
        "x.dist-info/METADATA",
        "Name: x\nRequires-Dist: mcp (>=1.0)\nRequires-Dist: pytest; extra == 'dev'\n\nRequires-Dist: no\n",
        "mcp >=1.0",
    );
}

#[test]
fn broken_manifest_has_no_dependencies() {
    check("package.json", "{", "");
    check("pyproject.toml", "[", "");
    check("Cargo.toml", "dependencies = 3", "");
}

#[test]
fn framework_is_told_by_what_is_depended_on() {
    let by = |path: &str, text: &str| framework(&dependencies(path, text));
    assert_eq!(
        by("package.json", r#"{"dependencies": {"@modelcontextprotocol/sdk": "1"}}"#),
        Some("mcp-sdk")
    );
    assert_eq!(by("requirements.txt", "mcp\n"), Some("mcp"));
    assert_eq!(by("requirements.txt", "mcp\nfastmcp\n"), Some("fastmcp"));
    assert_eq!(by("go.mod", "require github.com/mark3labs/mcp-go v0.1\n"), Some("mcp-go"));
    assert_eq!(by("go.mod", "require github.com/modelcontextprotocol/go-sdk v1\n"), Some("go-sdk"));
    assert_eq!(by("Cargo.toml", "[dependencies]\nrmcp = \"3\"\n"), Some("rmcp"));
    assert_eq!(by("requirements.txt", "flask\n"), None);
}
