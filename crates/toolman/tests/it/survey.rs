//! Real packages, offered by a registry on loopback: the tools that the manager finds in them, and what those want, are
//! what the running servers list.
//!
//! The table in `docs/survey.md` is what was seen here. `TOOLMAN_BLESS=1` writes it anew. TD-135

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use mcp::text::hexadecimal;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::LineClient;
use testkit::peers::{node_package, python_program};
use tokio::process::Command;

use crate::sources::Manager;
use crate::sources::site::{Site, base64};

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

    /// Offers it as its registry does: the archive, its version and its hash. Gives the version.
    async fn offer(&self, site: &Site, sources: &Path) -> String {
        let version = self.version(sources);
        let around = TempDir::new().unwrap();
        let url = |file: &str| format!("{}/files/{file}", site.address);
        match self.home {
            Home::Npm(name) => {
                let packed = pack(&around, "package.tgz", &["tar", "-czhf"], sources).await;
                let file = format!("{name}-{version}.tgz").replace('/', "-");
                let hash = base64(digest(&SHA512, &packed).as_ref());
                let dist = json!({"tarball": url(&file), "integrity": format!("sha512-{hash}")});
                let about = json!({"version": version, "dist": dist}).to_string();
                site.page(&format!("/{}/{version}", self.name.replace('/', "%2F")), about);
                site.page(&format!("/files/{file}"), packed);
            }
            Home::Python(_, module, _) => {
                let file = format!("{module}-{version}-py3-none-any.whl");
                let packed =
                    pack(&around, &file, &["python3", "-m", "zipfile", "-c"], sources).await;
                let digests = json!({"sha256": hexadecimal(digest(&SHA256, &packed).as_ref())});
                let wheel = json!({"packagetype": "bdist_wheel", "filename": file, "url": url(&file), "digests": digests});
                let about = json!({"info": {"version": version}, "urls": [wheel]}).to_string();
                site.page(&format!("/pypi/{}/{version}/json", self.name), about);
                site.page(&format!("/files/{file}"), packed);
            }
        }
        version
    }

    /// What the manager finds in the package that the registry has.
    async fn analysed(&self, manager: &Manager, version: &str) -> Value {
        let kind = if matches!(self.home, Home::Npm(_)) { "npm" } else { "pypi" };
        let arguments = json!({"package": self.name, "version": version, "package_type": kind, "namespace": "x"});
        manager.call("install_from_registry", arguments).await.unwrap()
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
    async fn listed(&self, folder: &Path) -> Tools {
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
        let listed = client.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| (word(&tool["name"]), wanted(&tool["inputSchema"]))).collect()
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

/// Tools by their names, each with the names of what it wants.
type Tools = BTreeMap<String, BTreeSet<String>>;

fn word(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The parameters of a schema; those that must be given are marked.
fn wanted(schema: &Value) -> BTreeSet<String> {
    let none = Vec::new();
    let required = schema["required"].as_array().unwrap_or(&none);
    let names = schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
    names.map(|name| marked(name, required.iter().any(|one| one == name))).collect()
}

fn marked(name: &str, is_required: bool) -> String {
    if is_required { format!("{name}!") } else { name.to_owned() }
}

/// The same of an analysis.
fn found(analysis: &Value) -> Tools {
    let parameters = |tool: &Value| {
        let all = tool["parameters"].as_array().unwrap().iter();
        all.map(|one| marked(one["name"].as_str().unwrap(), one["required"] == true)).collect()
    };
    let tools = analysis["tools_found"].as_array().unwrap().iter();
    tools.map(|tool| (word(&tool["name"]), parameters(tool))).collect()
}

/// The archive that a program makes of what a folder holds.
async fn pack(around: &TempDir, file: &str, program: &[&str], sources: &Path) -> Vec<u8> {
    let path = around.path().join(file);
    let mut names: Vec<_> =
        fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let mut folder = sources.to_owned();
    if file == "package.tgz" {
        // As npm does, all of it in one folder.
        folder = around.path().to_owned();
        std::os::unix::fs::symlink(sources, folder.join("package")).unwrap();
        names = vec!["package".into()];
    }
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(&path).args(names).current_dir(folder);
    assert!(command.status().await.unwrap().success());
    fs::read(path).unwrap()
}

/// Names that one side has and the other lacks.
fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if all.is_empty() { "–".to_owned() } else { all.join(", ") }
}

/// How much agrees, over all packages.
#[derive(Default)]
struct Sum {
    agreed: usize,
    all: usize,
}

impl Sum {
    fn add<T: Ord>(&mut self, found: &BTreeSet<T>, listed: &BTreeSet<T>) -> usize {
        let agreed = found.intersection(listed).count();
        self.agreed += agreed;
        self.all += found.union(listed).count();
        agreed
    }

    fn percent(&self) -> usize {
        self.agreed * 100 / self.all
    }
}

#[tokio::test]
async fn manager_finds_in_real_packages_what_their_servers_list() {
    // TD-135, TD-141
    let _loud = crate::MACHINE.read().await;
    let folder = TempDir::new().unwrap();
    let site = Site::start().await;
    let manager = Manager::of_site(&site).await;
    let (mut tools, mut parameters) = (Sum::default(), Sum::default());
    let (mut rows, mut described) = (String::new(), 0);
    for package in &PACKAGES {
        let sources = package.sources();
        let version = package.offer(&site, sources.path()).await;
        let analysis = package.analysed(&manager, &version).await;
        assert_eq!(analysis["version"], version);
        let (found, listed) = (found(&analysis), package.listed(folder.path()).await);
        let keys = |tools: &Tools| tools.keys().cloned().collect::<BTreeSet<_>>();
        let (found_names, listed_names) = (keys(&found), keys(&listed));
        tools.add(&found_names, &listed_names);
        let each = |tools: &Tools| {
            let all = tools.iter();
            all.flat_map(|(tool, wants)| wants.iter().map(move |one| format!("{tool}.{one}")))
                .collect::<BTreeSet<_>>()
        };
        let (found_wants, listed_wants) = (each(&found), each(&listed));
        let agreed = parameters.add(&found_wants, &listed_wants);
        let told = analysis["tools_found"].as_array().unwrap().iter();
        described += told.filter(|tool| tool["description"] != "").count();
        rows += &format!(
            "| `{}` {version} | {} | {} | {} | {} | {} | {agreed} of {} |\n",
            package.name,
            analysis["framework"].as_str().unwrap_or("–"),
            listed.len(),
            found.len(),
            names(listed_names.difference(&found_names)),
            names(found_names.difference(&listed_names)),
            found_wants.union(&listed_wants).count(),
        );
        for odd in found_wants.symmetric_difference(&listed_wants) {
            let side = if found_wants.contains(odd) { "found" } else { "listed" };
            println!("{}: only {side}: {odd}", package.name);
        }
    }
    let table = format!(
        "| package | framework | listed | found | missed | too many | parameters |\n|---|---|---|---|---|---|---|\n{rows}\n\
         {} of {} names agree: {} %. Of their parameters, {} of {} agree in name and in whether they must be given: {} %.\n",
        tools.agreed,
        tools.all,
        tools.percent(),
        parameters.agreed,
        parameters.all,
        parameters.percent()
    );
    println!("{table}");
    assert!(tools.percent() >= 95 && parameters.percent() >= 95, "{table}");
    assert!(described * 10 >= tools.agreed * 9, "only {described} have a description:\n{table}");
    compare_with_the_page(&table);
}

/// The page tells what is seen here.
fn compare_with_the_page(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/survey.md");
    let page = fs::read_to_string(&path).unwrap();
    let (head, known) = page.split_once(MARK).unwrap();
    if std::env::var_os("TOOLMAN_BLESS").is_some() {
        fs::write(&path, format!("{head}{MARK}{table}")).unwrap();
    } else {
        assert!(table == known, "docs/survey.md differs:\n{table}");
    }
}
