//! What files of clients are taken for.

use std::path::Path;

use catalog::surface::Surface;
use upstream::launch::{Command, CommandLine, Launch};

use crate::{Config, Surroundings};

/// Reads a client's file that lies at a path.
fn parse_at(path: &str, text: &str) -> Result<Config, String> {
    let file = Path::new(path);
    let environment = |name: &str| match name {
        "TOKEN" => Some("hush".to_owned()),
        "HOME" => Some("/ada".to_owned()),
        "PWD" => Some("/project".to_owned()),
        _ => None,
    };
    let folder = file.parent().unwrap();
    let surroundings = Surroundings { file: Path::new("f"), folder, environment: &environment };
    let surroundings = Surroundings {
        file: file.file_name().map_or(surroundings.file, Path::new),
        ..surroundings
    };
    crate::parse(text, &surroundings)
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Each server with how it is started, then each warning.
fn told(config: &Config) -> Vec<String> {
    let server = |server: &crate::Server| {
        let how = match &server.settings.launch {
            Launch::Command(Command { line: CommandLine::Direct { program, args }, env, cwd }) => {
                let args: Vec<_> = args.iter().map(upstream::template::Template::written).collect();
                let env: Vec<_> =
                    env.iter().map(|(name, value)| format!("{name}={}", value.written())).collect();
                let cwd = cwd.as_ref().map_or_else(String::new, |cwd| cwd.display().to_string());
                format!("{program} {} [{}] in {cwd}", args.join(" "), env.join(" "))
            }
            Launch::Url(remote) => format!("{} {:?}", remote.url.uri(), remote.transport),
            other => format!("{other:?}"),
        };
        format!("{}: {how}", server.settings.name)
    };
    let warnings = config.warnings.iter().map(ToString::to_string);
    config.servers.iter().map(server).chain(warnings).collect()
}

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let config = parse_at(path, text).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(told(&config), expected);
    assert_eq!(config.surface, Surface::Toolset);
}

#[test]
fn claude_desktop() {
    check(
        "/c/claude_desktop_config.json",
        r#"{"globalShortcut": "", "mcpServers": {
            "filesystem": {"command": "npx", "args": ["-y", "server-filesystem", "/tmp"]},
            "My Notes": {"command": "notes", "env": {"KEY": "${TOKEN}"}}},
            "preferences": {"chrome": [null, 1e400]}}"#,
        &[
            "filesystem: npx -y server-filesystem /tmp [] in /c",
            "My_Notes: notes  [KEY=hush] in /c",
            "claude_desktop_config.json:1:2: `globalShortcut`, `preferences` at the top mean nothing to Toolman; left out",
            "claude_desktop_config.json:3:13: `My Notes` is served under the name `My_Notes`",
        ],
    );
}

#[test]
fn claude_code_with_servers_of_one_folder() {
    check(
        "/ada/.claude.json",
        r#"{"numStartups": 7, "mcpServers": {"a": {"type": "stdio", "command": "user", "args": [], "env": {}},
              "b": {"type": "http", "url": "https://b.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN:-x}"}}},
            "projects": {
              "/project": {"allowedTools": [], "mcpServers": {"a": {"type": "stdio", "command": "local"}}},
              "/other": {"mcpServers": {"c": {"command": "c"}}},
              "/empty": {"mcpServers": {}}},
            "tipsHistory": {"x": 1}, "userID": "u", "theme": "dark", "oauthAccount": {}, "firstStartTime": "t"}"#,
        &[
            "b: https://b.example/mcp StreamableHttp",
            "a: local  [] in /ada",
            ".claude.json:1:2: `numStartups`, `tipsHistory`, `userID`, `theme`, `oauthAccount` and 1 more at the top mean nothing to Toolman; left out",
            ".claude.json:3:13: servers of the projects `/other` are left out",
        ],
    );
}

#[test]
fn cursor_with_variables_of_its_own() {
    check(
        "/project/.cursor/mcp.json",
        r#"{
  // what the team uses
  "mcpServers": {
    "db": {"command": "${workspaceFolder}/bin/db", "args": ["--home", "${userHome}"],
           "env": {"TOKEN": "${env:TOKEN}"}, "envFile": ".env",},
    "web": {"url": "https://web.example/mcp", "headers": {"X-Key": "${env:TOKEN}"}}, /* the last one */
  },
}"#,
        &[
            "db: /project/bin/db --home /ada [TOKEN=hush] in /project",
            "web: https://web.example/mcp Auto",
            "mcp.json:5:46: `envFile` in a server mean nothing to Toolman; left out",
        ],
    );
}

#[test]
fn vs_code_with_inputs() {
    check(
        "/project/.vscode/mcp.json",
        r#"{"inputs": [
    {"type": "promptString", "id": "github-token", "description": "d", "password": true},
    {"type": "pickString", "id": "level", "options": ["a"], "default": "a"}],
  "servers": {
    "github": {"type": "stdio", "command": "gh", "args": ["${input:level}"],
      "env": {"T": "${input:github-token}"}, "dev": {"watch": "x"}, "gallery": true},
    "fetch": {"type": "http", "url": "https://f.example/mcp"}}}"#,
        &[
            "github: gh a [T=<secret GITHUB_TOKEN>] in /project",
            "fetch: https://f.example/mcp StreamableHttp",
            "mcp.json:1:2: `inputs` are not asked for; the variables `GITHUB_TOKEN`, `LEVEL`, or secrets of these names, stand in",
            "mcp.json:6:46: `dev`, `gallery` in a server mean nothing to Toolman; left out",
        ],
    );
    // Without inputs it is known by its name.
    check(
        "/project/.vscode/mcp.json",
        r#"{"servers": {"a b": {"command": "x"}}}"#,
        &["a_b: x  [] in /project", "mcp.json:1:14: `a b` is served under the name `a_b`"],
    );
}

#[test]
fn windsurf_cline_roo_and_gemini() {
    check(
        "/c/mcp_config.json",
        r#"{"mcpServers": {
    "figma": {"serverUrl": "https://figma.example/mcp", "disabledTools": ["draw"]},
    "cline": {"type": "streamableHttp", "url": "https://c.example/mcp", "disabled": false, "autoApprove": ["a"], "timeout": 60},
    "roo": {"type": "streamable-http", "url": "https://r.example/mcp", "alwaysAllow": [], "disabled": true},
    "gemini": {"httpUrl": "https://g.example/mcp", "timeout": 600000, "trust": true, "includeTools": ["x"], "excludeTools": ["y"]},
    "old": {"transportType": "sse", "url": "https://o.example/sse"}}}"#,
        &[
            "figma: https://figma.example/mcp Auto",
            "cline: https://c.example/mcp StreamableHttp",
            "gemini: https://g.example/mcp Auto",
            "old: https://o.example/sse Sse",
            "mcp_config.json:3:92: `autoApprove` in a server mean nothing to Toolman; left out",
            "mcp_config.json:4:72: `alwaysAllow` in a server mean nothing to Toolman; left out",
            "mcp_config.json:5:63: `timeout` 600000 is in milliseconds",
            "mcp_config.json:5:71: `trust` in a server mean nothing to Toolman; left out",
        ],
    );
}

#[test]
fn zed_amp_opencode_and_crush() {
    check(
        "/c/settings.json",
        r#"// Zed
{"theme": "x", "context_servers": {"a": {"source": "custom", "command": {"path": "a", "args": ["1"], "env": {"K": "v"}}}}}"#,
        &[
            "a: a 1 [K=v] in /c",
            "settings.json:2:2: `theme` at the top mean nothing to Toolman; left out",
            "settings.json:2:42: `source` in a server mean nothing to Toolman; left out",
        ],
    );
    check(
        "/c/settings.json",
        r#"{"amp.mcpServers": {"a": {"command": "a"}}}"#,
        &["a: a  [] in /c"],
    );
    check(
        "/c/opencode.json",
        r#"{"$schema": "s", "mcp": {"a": {"type": "local", "command": ["bun", "x", "a"], "environment": {"K": "v"}, "enabled": true},
           "b": {"type": "remote", "url": "https://b.example/mcp", "enabled": false}}}"#,
        &["a: bun x a [K=v] in /c"],
    );
}

#[test]
fn names_that_become_one_are_told_apart() {
    check(
        "/c/mcp.json",
        r#"{"mcpServers": {"a b": {"command": "1"}, "a_b": {"command": "2"}, "ä": {"command": "3"}}}"#,
        &[
            "a_b: 1  [] in /c",
            "a_b_2: 2  [] in /c",
            "server: 3  [] in /c",
            "mcp.json:1:17: `a b` is served under the name `a_b`",
            "mcp.json:1:42: `a_b` is served under the name `a_b_2`",
            "mcp.json:1:67: `ä` is served under the name `server`",
        ],
    );
}

#[test]
fn what_is_hidden_there_is_hidden_here() {
    let text = r#"{"mcpServers": {"g": {"command": "g", "excludeTools": ["y"], "includeTools": ["x", "y"]}}}"#;
    let policies = parse_at("/c/m.json", text).unwrap().rulebook.policies;
    let dangerous = policies.dangerous.unwrap();
    assert!(dangerous.patterns.holds("g:y") && &*dangerous.at == "excludeTools");
    assert!(policies.exposed["g"].patterns.holds("x"));
}

#[test]
fn faults_name_what_is_written() {
    let fault = |text: &str| parse_at("/c/mcp.json", text).unwrap_err();
    assert_eq!(
        fault(r#"{"mcpServers": {"a": {"serverUrl": 7}}}"#),
        "mcp.json:1:36: `serverUrl` is an integer; it must be a string"
    );
    assert_eq!(
        fault(r#"{"mcpServers": {"a": {"command": "x", "environment": {"K": []}}}}"#),
        "mcp.json:1:60: `K` in `env` is an array; it must be a string, an integer or a boolean"
    );
    assert_eq!(
        fault(r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${env:NONE}"}}}}"#),
        "mcp.json:1:52: `K` in `env` uses `${NONE}`, which is not set; set it, or write `${NONE:-default}`"
    );
}

#[test]
fn toolmans_own_keys_count_beside_a_clients() {
    let text = r#"{"mcpServers": {"g": {"command": "g"}}, "surface": "filter", "exposed_tools": {"g": ["x"]}}"#;
    let config = parse_at("/c/m.json", text).unwrap();
    assert_eq!((config.surface, config.warnings.len()), (Surface::Filter, 0));
    assert!(config.rulebook.policies.exposed.contains_key("g"));
}
