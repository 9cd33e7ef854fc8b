//! The profiles that are shipped: a row a client program.
//!
//! Each row says where it is from. *Observed*: the program was run against Toolman, in that version. *Documented*: by its
//! makers, or in public lists of clients. What nobody knows is left as it is for all.

use std::sync::LazyLock;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use mcp::names::UriStyle;

use super::{Belongs, Lists, Naming, Profile, Reads};

/// A program, patterns of the names in its `clientInfo`, and what it does otherwise than others.
type Row = (&'static str, &'static [&'static str], fn(&mut Profile));

/// How long a reply waits for a client that is known to list again. It is only the bound: the reply goes as soon as the
/// client has listed.
const RELISTING_MAX: Duration = Duration::from_millis(500);

const TABLE: &[Row] = &[
    // Observed, 2.1.327: `tools/list` 14 to 18 ms after the notice, but its turn goes on with the tools before unless the
    // reply waits. Tools are `mcp__SERVER__NAME`, and deferred unless marked. It cuts instructions at 2,048 characters, and
    // descriptions of tools at 4,096; documented are 2,048 for both.
    ("claude-code", &["claude-code"], |profile| {
        lists(profile, Lists::Late);
        profile.reads = Reads::Structured;
        profile.description_max = Some(2_048);
        profile.defers_tools = true;
        endpoint(profile);
    }),
    // Observed, 0.169.0: never lists again, over either transport; a tool that it has not listed is "unsupported".
    // It goes on without a server that has not answered in about a second.
    ("codex", &["codex-mcp-client", "Codex"], |profile| {
        lists(profile, Lists::Once);
        profile.reads = Reads::Structured;
        profile.patience = Duration::from_millis(800);
        endpoint(profile);
    }),
    // Observed, 1.18.33: `tools/list` 3 to 60 ms after the notice, a turn late unless the reply waits.
    ("opencode", &["opencode"], |profile| {
        lists(profile, Lists::Late);
        endpoint(profile);
    }),
    // Observed, 0.61.0: `tools/list` 2 to 25 ms after the notice, a turn late unless the reply waits.
    ("gemini-cli", &["gemini-cli-mcp-client*"], |profile| {
        lists(profile, Lists::Late);
        endpoint(profile);
    }),
    // Observed, 0.24.4: never lists again within a run. The name ends with that of the server in its settings.
    ("qwen-code", &["qwen-cli-mcp-client*"], |profile| {
        lists(profile, Lists::Once);
        endpoint(profile);
    }),
    // Observed, 1.0.102: lists again 4 to 36 ms after the notice and waits for that by itself.
    ("copilot-cli", &["copilot-cli", "github-copilot-developer"], |profile| {
        lists(profile, Lists::AtOnce);
        profile.reads = Reads::Both;
        endpoint(profile);
    }),
    // Documented: they take up changes of the list of tools.
    ("vscode", &["Visual Studio Code*", "Visual-Studio-Code*", "Code - OSS"], relisting),
    ("cursor", &["cursor*", "Cursor*"], relisting),
    ("windsurf", &["windsurf*", "Windsurf*"], relisting),
    ("cline", &["Cline", "cline"], relisting),
    ("kilo-code", &["Kilo-Code", "Kilo Code"], relisting),
    // Their names are documented; what they do is not known. What is observed while they run decides.
    ("claude-desktop", &["claude-ai", "claude-desktop", "Claude Desktop"], unchanged),
    ("zed", &["Zed", "zed"], unchanged),
    ("roo-code", &["Roo-Code", "Roo Code"], unchanged),
    ("continue", &["continue-client", "continue-cli-client"], unchanged),
    ("goose", &["goose*"], unchanged),
    ("lm-studio", &["lmstudio*", "LM Studio*"], unchanged),
    ("kiro", &["kiro*", "Kiro*", "Q-DEV-CLI"], unchanged),
    ("amp", &["amp-mcp-client"], unchanged),
    ("crush", &["crush"], unchanged),
    ("antigravity", &["antigravity-client"], unchanged),
    // Observed: the Python SDK (1.30, 2.3) names itself so for all that build on it and say nothing else. LangChain's adapters
    // (0.3), llama-index (0.6), CrewAI (1.15) and smolagents (1.26) list once; smolagents passes on the first text only;
    // LangChain and llama-index open a session for each call; SDK 1 refuses a list with a URI that is none.
    // openai-agents (0.24) lists each turn; a stub costs it little.
    (
        "python-sdk",
        &["mcp", "langchain", "llama-index", "crewai", "smolagents", "openai-agents"],
        |profile| {
            lists(profile, Lists::Once);
            profile.reads = Reads::FirstBlock;
            profile.naming.uri_style = UriStyle::Rfc;
            profile.selection = Belongs::Principal;
            profile.is_shared = true;
        },
    ),
    // Observed, 4.2.0, of pydantic-ai 2.66: lists once, passes on the structure alone, refuses URIs that are none.
    ("fastmcp", &["fastmcp*", "FastMCP*", "pydantic-ai"], |profile| {
        lists(profile, Lists::Once);
        profile.reads = Reads::Structured;
        profile.naming.uri_style = UriStyle::Rfc;
    }),
    // Observed, 1.7.1: lists once; cannot even connect over HTTP where a URI is none.
    ("mcp-use", &["mcp-use*"], |profile| {
        lists(profile, Lists::Once);
        profile.naming.uri_style = UriStyle::Rfc;
    }),
    // Observed, 2.12.0: a session for each command.
    ("inspector-cli", &["inspector-cli*"], |profile| profile.selection = Belongs::Principal),
    // People look at it; there is no turn for which something could be late.
    (
        "inspector",
        &["mcp-inspector*", "inspector-client*", "@modelcontextprotocol/inspector*"],
        unchanged,
    ),
    // Names that their users choose, where they choose none. `mcp-remote` has the name of the client before its own.
    ("mcp-remote", &["mcp-remote*"], unchanged),
    ("rmcp", &["rmcp*"], unchanged),
    ("typescript-sdk", &["mcp-typescript-client*"], unchanged),
];

fn unchanged(_: &mut Profile) {}

fn relisting(profile: &mut Profile) {
    lists(profile, Lists::AtOnce);
}

fn lists(profile: &mut Profile, lists: Lists) {
    profile.lists = lists;
    profile.reply_wait = match lists {
        Lists::Once => Duration::ZERO,
        Lists::Late | Lists::AtOnce => RELISTING_MAX,
        Lists::Unknown => profile.reply_wait,
    };
}

fn endpoint(profile: &mut Profile) {
    profile.naming = Naming { uri_style: profile.naming.uri_style, ..Naming::ENDPOINT };
}

/// The patterns of all rows, with the row of each.
static NAMES: LazyLock<(GlobSet, Vec<usize>)> = LazyLock::new(|| {
    let (mut patterns, mut rows) = (GlobSetBuilder::new(), Vec::new());
    for (at, (_, names, _)) in TABLE.iter().enumerate() {
        for pattern in names.iter().filter_map(|name| Glob::new(name).ok()) {
            patterns.add(pattern);
            rows.push(at);
        }
    }
    (patterns.build().unwrap_or_default(), rows)
});

/// The profile of whoever calls itself so, or is called so in this table.
pub fn find(name: &str, _version: &str) -> Profile {
    let mut profile = Profile::default();
    let (patterns, rows) = &*NAMES;
    let by_pattern = || patterns.matches(name).first().map(|at| &TABLE[rows[*at]]);
    let known = TABLE.iter().find(|(shown, _, _)| *shown == name).or_else(by_pattern);
    if let Some((shown, _, differ)) = known {
        profile.name = (*shown).into();
        differ(&mut profile);
    }
    profile
}
