//! Repositories and registries through the manager's tools: read, told of, proposed; never run.

pub mod bounds;
mod hostile;
mod nested;
mod registry;
pub mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::dock::Data;
use crate::manager::Manager as Served;
use site::Site;

/// `toolman manager` with a data directory of its own; there is no core.
pub struct Manager {
    pub served: Served,
    data: Data,
}

impl Manager {
    pub async fn with(variables: &[(&str, &str)]) -> Manager {
        let data = Data::new(&[]);
        let served = Served::start(&data, variables).await;
        Manager { served, data }
    }

    /// One that may read repositories in this folder.
    pub async fn of_folder(folder: &Path) -> Manager {
        Manager::with(&[("ALLOWED_REPO_PATHS", folder.to_str().unwrap())]).await
    }

    /// One that knows only these registries.
    pub async fn of_site(site: &Site) -> Manager {
        Manager::with(&site.variables()).await
    }

    pub fn pid(&self) -> u32 {
        self.served.child.id().unwrap()
    }

    /// Its data directory.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// What a call gives, or the error that is told to the model.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.served.call(tool, &arguments).await;
        if answer["isError"] == true {
            return Err(answer["content"][0]["text"].as_str().unwrap_or_default().to_owned());
        }
        Ok(answer["structuredContent"].clone())
    }
}

/// Runs git on a repository that a test makes.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t.test",
        "-c",
        "core.protectNTFS=false",
    ]);
    command.args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]);
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn commit(folder: &Path) {
    git(folder, &["add", "-A", "-f"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "a"]);
}

/// A repository with a server of the official SDK.
pub fn repository(folder: &Path) -> PathBuf {
    let repository = folder.join("weather");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "-q"]);
    write(
        &repository,
        "package.json",
        r#"{"dependencies": {"@modelcontextprotocol/sdk": "^1.0.0", "zod": "^3"}}"#,
    );
    write(
        &repository,
        "src/index.ts",
        "const key = process.env.WEATHER_API_KEY;\n\
         server.registerTool('forecast', { description: 'Tells \u{1b}[8mthe weather',\n\
           inputSchema: { city: z.string().describe('where') } },\n\
           async ({ city }) => fetch(`https://api.weather.test/v1/${city}`));\n",
    );
    commit(&repository);
    repository
}

#[tokio::test]
async fn repository_is_analysed_and_read_without_running_anything() {
    // TD-135, TD-136, TD-142
    let around = TempDir::new().unwrap();
    let repository = repository(around.path());
    let manager = Manager::of_folder(around.path()).await;
    let url = repository.display().to_string();
    let early =
        manager.call("read_repo_file", json!({"repo_url": url, "path": "package.json"})).await;
    assert!(early.unwrap_err().contains("was not analysed yet; call `analyze_repo` with it first"));
    let analysis = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap();
    assert_eq!(analysis["repo_url"], url);
    assert_eq!(analysis["version"], git(&repository, &["rev-parse", "HEAD"]));
    assert_eq!(analysis["language"], "typescript");
    assert_eq!(analysis["framework"], "mcp-sdk");
    assert_eq!(analysis["files"], json!(["package.json", "src/index.ts"]));
    assert_eq!(
        analysis["tools_found"],
        json!([{
            "name": "forecast", "file": "src/index.ts", "line": 2,
            // What could drive a terminal is gone.
            "description": "Tells  [8mthe weather",
            "parameters": [{"name": "city", "type": "string", "description": "where", "required": true}],
        }])
    );
    assert_eq!(
        analysis["dependencies"],
        json!({"@modelcontextprotocol/sdk": "^1.0.0", "zod": "^3"})
    );
    assert_eq!(analysis["apis_called"], json!(["api.weather.test"]));
    assert_eq!(analysis["secrets_needed"], json!(["WEATHER_API_KEY"]));
    let file = manager
        .call("read_repo_file", json!({"repo_url": url, "path": "src/index.ts"}))
        .await
        .unwrap();
    assert!(file["content"].as_str().unwrap().starts_with("const key"));

    // The clone is used again until it is asked for anew.
    write(&repository, "src/more.ts", "server.tool('more', 'More', run);\n");
    commit(&repository);
    let tools = |analysis: &Value| analysis["tools_found"].as_array().unwrap().len();
    let again = manager
        .call("install_from_repo", json!({"repo_url": url, "namespace": "weather"}))
        .await
        .unwrap();
    assert_eq!((tools(&again), &again["namespace"]), (1, &json!("weather")));
    let anew =
        manager.call("analyze_repo", json!({"repo_url": url, "refresh": true})).await.unwrap();
    assert_eq!(tools(&anew), 2);
    let wrong =
        manager.call("install_from_repo", json!({"repo_url": url, "namespace": "_system"})).await;
    assert!(wrong.unwrap_err().contains("_system"));
}

#[tokio::test]
async fn addresses_that_could_mean_something_else_are_refused() {
    // HARDENING G01
    let around = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    let repository = repository(outside.path());
    let manager = Manager::of_folder(around.path()).await;
    std::os::unix::fs::symlink(outside.path(), around.path().join("link")).unwrap();
    let mark = outside.path().join("mark");
    let wrong = [
        ("--upload-pack=touch mark".to_owned(), "begins with `-`"),
        (format!("--upload-pack=touch${{IFS}}{}", mark.display()), "begins with `-`"),
        ("-x".to_owned(), "begins with `-`"),
        (format!("ext::sh -c touch% {}", mark.display()), "holds a character that no address has"),
        ("ext::sh".to_owned(), "is no `https` address"),
        (format!("file://{}", repository.display()), "no other protocol is used"),
        ("ssh://git@github.com/a/b".to_owned(), "no other protocol is used"),
        ("git@github.com:a/b".to_owned(), "is no `https` address"),
        ("http://github.com/a/b".to_owned(), "no other protocol is used"),
        ("HTTPS://github.com/a/b".to_owned(), "no other protocol is used"),
        ("https://user:hunter2@github.com/a/b".to_owned(), "holds a user or password"),
        ("https://github.com".to_owned(), "has no plain path"),
        ("https://github.com/a/../b".to_owned(), "has no plain path"),
        ("https://github.com/a?b=c".to_owned(), "has no plain path"),
        ("https://-x/a/b".to_owned(), "names no host that can be asked"),
        ("https://[::1]/a/b".to_owned(), "names no host that can be asked"),
        ("https://host:0/a/b".to_owned(), "names no host that can be asked"),
        ("https://a b/c".to_owned(), "holds a character that no address has"),
        ("https://a/b\nc".to_owned(), "holds a character that no address has"),
        (String::new(), "is empty or too long"),
        (repository.display().to_string(), "is no folder that the operator allows"),
        (
            around.path().join("link/weather").display().to_string(),
            "is no folder that the operator allows",
        ),
        (around.path().join("../x").display().to_string(), "is no folder that the operator allows"),
        ("https://127.0.0.1/a/b".to_owned(), "which is no public address"),
        ("https://localhost/a/b".to_owned(), "which is no public address"),
        ("https://169.254.169.254/a/b".to_owned(), "which is no public address"),
    ];
    for (url, expected) in wrong {
        let error = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap_err();
        assert!(error.contains(expected), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
        let error = manager
            .call("read_repo_file", json!({"repo_url": url, "path": "a"}))
            .await
            .unwrap_err();
        assert!(!error.is_empty());
    }
    assert!(!mark.exists());
}
