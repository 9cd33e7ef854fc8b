//! Real packages from the registries: the tools that their sources tell of are those that the running servers list.
//!
//! The table in `docs/survey.md` is what was seen here. `TOOLMAN_BLESS=1` writes it anew. TD-135

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::LineClient;
use testkit::peers::{node_package, python_program};
use tokio::process::Command;

/// The table is beneath this line of the page.
const MARK: &str = "<!-- the table is made by a test -->\n";

/// A package, and how its server is started.
struct Package {
    /// As its registry calls it.
    name: &'static str,
    home: Home,
    arguments: &'static [&'static str],
}

enum Home {
    /// The name that it is installed under.
    Npm(&'static str),
    /// The environment, the module and the program.
    Python(&'static str, &'static str, &'static str),
}

const fn npm(name: &'static str, arguments: &'static [&'static str]) -> Package {
    Package { name, home: Home::Npm(name), arguments }
}

const PACKAGES: [Package; 13] = [
    npm("@modelcontextprotocol/server-everything", &["stdio"]),
    Package {
        name: "@modelcontextprotocol/server-everything",
        home: Home::Npm("server-everything-2024"),
        arguments: &[],
    },
    npm("@modelcontextprotocol/server-filesystem", &["."]),
    npm("@modelcontextprotocol/server-github", &[]),
    npm("@modelcontextprotocol/server-memory", &[]),
    npm("@modelcontextprotocol/server-sequential-thinking", &[]),
    npm("@modelcontextprotocol/server-slack", &[]),
    Package {
        name: "duckduckgo-mcp-server",
        home: Home::Python("sdk2", "duckduckgo_mcp_server", "duckduckgo-mcp-server"),
        arguments: &[],
    },
    Package {
        name: "mcp-server-calculator",
        home: Home::Python("sdk1", "mcp_server_calculator", "mcp-server-calculator"),
        arguments: &[],
    },
    Package {
        name: "mcp-server-fetch",
        home: Home::Python("sdk2", "mcp_server_fetch", "mcp-server-fetch"),
        arguments: &[],
    },
    Package {
        name: "mcp-server-git",
        home: Home::Python("sdk2", "mcp_server_git", "mcp-server-git"),
        arguments: &[],
    },
    Package {
        name: "mcp-server-sqlite",
        home: Home::Python("sdk1", "mcp_server_sqlite", "mcp-server-sqlite"),
        arguments: &["--db-path", "notes.db"],
    },
    Package {
        name: "mcp-server-time",
        home: Home::Python("sdk2", "mcp_server_time", "mcp-server-time"),
        arguments: &["--local-timezone", "UTC"],
    },
];

impl Package {
    /// A copy of what the registry ships: no more than an archive would hold.
    fn sources(&self) -> TempDir {
        let copy = TempDir::new().unwrap();
        match self.home {
            Home::Npm(name) => {
                let script = node_package(name);
                let script = Path::new(script.trim_start_matches("node "));
                copy_folder(script.parent().unwrap().parent().unwrap(), copy.path());
            }
            Home::Python(set, module, _) => {
                let library =
                    Path::new(&python_program(set, "python")).parent().unwrap().join("../lib");
                let site = fs::read_dir(&library)
                    .unwrap()
                    .next()
                    .unwrap()
                    .unwrap()
                    .path()
                    .join("site-packages");
                copy_folder(&site.join(module), &copy.path().join(module));
                let about = fs::read_dir(&site).unwrap().map(|entry| entry.unwrap().path());
                let is_it = |path: &PathBuf| {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    name.starts_with(&format!("{module}-")) && name.ends_with(".dist-info")
                };
                let about = about.into_iter().find(is_it).unwrap();
                copy_folder(&about, &copy.path().join(about.file_name().unwrap()));
            }
        }
        copy
    }

    fn version(&self, sources: &Path) -> String {
        match self.home {
            Home::Npm(_) => {
                let manifest = fs::read(sources.join("package.json")).unwrap();
                let manifest: Value = serde_json::from_slice(&manifest).unwrap();
                manifest["version"].as_str().unwrap().to_owned()
            }
            Home::Python(..) => {
                let mut folders = fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
                let about = folders
                    .find(|path| path.extension().is_some_and(|end| end == "dist-info"))
                    .unwrap();
                let about = fs::read_to_string(about.join("METADATA")).unwrap();
                about.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap().to_owned()
            }
        }
    }

    /// What the running server lists, to a client that can do everything.
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    async fn listed(&self, folder: &Path) -> BTreeSet<String> {
        let mut command = match self.home {
            Home::Npm(name) => {
                let mut command = Command::new("node");
                command.arg(node_package(name).trim_start_matches("node "));
                command
            }
            Home::Python(set, _, program) => Command::new(python_program(set, program)),
        };
        command.args(self.arguments).current_dir(folder).kill_on_drop(true);
        // Some servers want to be told who they are before they tell what they can do.
        command.env("SLACK_BOT_TOKEN", "xoxb-none").env("SLACK_TEAM_ID", "T0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut client = LineClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let capabilities = json!({
            "roots": {"listChanged": true},
            "sampling": {"tools": {}, "context": {}},
            "elicitation": {"form": {}, "url": {}},
            "tasks": {"requests": {
                "sampling": {"createMessage": {}}, "elicitation": {"create": {}},
            }},
        });
        client.initialize(capabilities).await;
        client.tool_names().await.into_iter().collect()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "node_modules" && entry.file_name() != "__pycache__" {
            copy_folder(&entry.path(), &target);
        }
    }
}

#[tokio::test]
async fn sources_of_real_packages_tell_what_their_servers_list() {
    let _loud = crate::MACHINE.read().await;
    let folder = TempDir::new().unwrap();
    let mut rows = String::new();
    let (mut agreed, mut all, mut described) = (0, 0, 0);
    for package in &PACKAGES {
        let sources = package.sources();
        let report = ::survey::survey(sources.path()).unwrap();
        let found: BTreeSet<String> =
            report.tools_found.iter().map(|tool| tool.name.clone()).collect();
        let listed = package.listed(folder.path()).await;
        agreed += found.intersection(&listed).count();
        all += found.union(&listed).count();
        described += report.tools_found.iter().filter(|tool| !tool.description.is_empty()).count();
        let names = |names: Vec<&String>| {
            if names.is_empty() {
                "–".to_owned()
            } else {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            }
        };
        rows += &format!(
            "| `{}` {} | {} | {} | {} | {} | {} |\n",
            package.name,
            package.version(sources.path()),
            report.framework.unwrap_or("–"),
            listed.len(),
            found.len(),
            names(listed.difference(&found).collect()),
            names(found.difference(&listed).collect()),
        );
    }
    let percent = agreed * 100 / all;
    let table = format!(
        "| package | framework | listed | found | missed | too many |\n|---|---|---|---|---|---|\n{rows}\n\
         {agreed} of {all} names agree: {percent} %.\n"
    );
    println!("{table}");
    assert!(percent >= 95, "{table}");
    assert!(described * 10 >= agreed * 9, "only {described} have a description:\n{table}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/survey.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, known) = page.split_once(MARK).unwrap();
    if std::env::var_os("TOOLMAN_BLESS").is_some() {
        fs::write(&path, format!("{head}{MARK}{table}")).unwrap();
    } else {
        assert!(table == known, "docs/survey.md differs:\n{table}");
    }
}
