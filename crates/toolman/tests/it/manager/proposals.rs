//! Servers of a registry that a model proposes: a person puts them in place, and nothing is started before.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::binary::Folder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::Manager;
use crate::dock::{Data, served};
use crate::secrets_cli::{run as secrets, type_on_terminal};
use crate::{TOOLMAN, fake};

/// A registry that answers every search with these servers.
async fn registry(servers: &[Value]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let wrapped: Vec<Value> = servers.iter().map(|server| json!({"server": server})).collect();
    let body = json!({"servers": wrapped, "metadata": {"count": wrapped.len()}}).to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

/// A folder with an `npx` that notes that it was started, and is a server.
fn folder(tools_toml: &str) -> Folder {
    let folder = Folder::new(TOOLMAN).with_tools_toml(tools_toml);
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let started = folder.path().join("started").display().to_string();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {started}\necho \"$API_KEY\" >> {started}\nexec {}\n",
        fake("echo")
    );
    std::fs::write(bin.join("npx"), script).unwrap();
    std::fs::set_permissions(bin.join("npx"), PermissionsExt::from_mode(0o755)).unwrap();
    folder
}

/// Runs the binary where the configuration is; its exit code and all that it says.
async fn run(folder: &Folder, data: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = folder.command(arguments);
    let path =
        format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    command.arg("--data-dir").arg(data).env("PATH", path).stdin(std::process::Stdio::null());
    let output = command.output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

const MINE: &str = "# what I wrote myself\nsurface = \"filter\"   # and why\n\n[dock]\n";

#[tokio::test]
async fn proposed_server_is_started_only_after_a_person_has_approved_it() {
    // TD-140, HARDENING A02
    let package = json!({"registryType": "npm", "identifier": "@a/one", "version": "1.0.0",
        "environmentVariables": [{"name": "API_KEY", "isSecret": true}]});
    let url = registry(&[json!({"name": "io.github.a/one", "packages": [package]})]).await;
    let (data, folder) = (Data::new(&[]), folder(MINE));
    let (child, address) = served(&data, "manager", &[("MCP_REGISTRY_URL", &url)]).await;
    let manager = Manager { child, address };
    let asked = json!({"package": "io.github.a/one", "namespace": "one"});
    let proposed = manager.done("install_server", asked.clone()).await;
    let told = proposed["instructions"].as_str().unwrap();
    assert!(told.contains("toolman approve servers/one --data-dir "), "{told}");
    let file = folder.path().join("tools.toml");
    let path = data.path().display().to_string();
    secrets(&folder, &["set", "API_KEY", "--scope", "one", "--data-dir", &path], "hush-one").await;

    // Before, nothing is started, listed or written, also by who only looks.
    let (code, said) = run(&folder, data.path(), &["approve", "--list"]).await;
    assert_eq!((code, said.as_str()), (0, "servers/one\n"));
    let (code, said) = run(&folder, data.path(), &["approve", "servers/one"]).await;
    assert_eq!(code, 2);
    assert!(said.contains("there is nobody to ask"), "{said}");
    let arguments = ["approve", "servers/one", "--data-dir", path.as_str()];
    let typed = |keys| [("[y/N]", keys)];
    let (_, shown) = type_on_terminal(&folder, &arguments, &typed("n\n")).await;
    for words in
        ["command = \"npx\"", "\"@a/one@1.0.0\"", "io.github.a/one", "the secrets `API_KEY`"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let (_, listed) = run(&folder, data.path(), &["tools", "list", "--json"]).await;
    assert!(!listed.contains("one_echo"), "{listed}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), MINE);
    assert!(!folder.path().join("started").exists(), "nothing was started");

    let (code, shown) = type_on_terminal(&folder, &arguments, &typed("y\n")).await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("it is started with toolman, the next time"), "{shown}");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with(MINE), "what was there stays as it was: {written}");
    assert!(written.ends_with(proposed["entry"].as_str().unwrap()), "{written}");
    assert!(!folder.path().join("started").exists(), "nor by the approval");
    let (_, listed) = run(&folder, data.path(), &["tools", "list", "--json"]).await;
    assert!(listed.contains("one_echo"), "{listed}");
    let started = std::fs::read_to_string(folder.path().join("started")).unwrap();
    assert_eq!(started, "-y @a/one@1.0.0\nhush-one\n");
    let (_, said) = run(&folder, data.path(), &["approve"]).await;
    assert_eq!(said, "nothing waits for approval\n");

    // What can't stand beside the rest changes nothing, and can be thrown away.
    manager.done("install_server", asked).await;
    let (code, said) = run(&folder, data.path(), &["approve", "servers/one", "--yes"]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has a server `one` already"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    let (code, said) =
        run(&folder, data.path(), &["approve", "servers/one", "--reject", "--yes"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("threw away servers/one"), "{said}");
    assert!(!data.path().join("proposals/one.json").exists());
}

#[tokio::test]
async fn proposal_that_can_not_be_read_holds_up_no_other() {
    let package = json!({"registryType": "npm", "identifier": "one", "version": "1.0.0"});
    let url = registry(&[json!({"name": "io.github.a/one", "packages": [package]})]).await;
    let (data, folder) = (Data::new(&[]), folder(MINE));
    let (child, address) = served(&data, "manager", &[("MCP_REGISTRY_URL", &url)]).await;
    let manager = Manager { child, address };
    let asked = json!({"package": "io.github.a/one", "namespace": "one"});
    manager.done("install_server", asked).await;
    let broken = data.path().join("proposals/bad.json");
    std::fs::write(&broken, "{\"half\": ").unwrap();
    let approve = async |arguments: &[&str]| {
        run(&folder, data.path(), &[&["approve"], arguments].concat()).await
    };
    let (code, said) = approve(&["--list"]).await;
    assert_eq!((code, said.as_str()), (0, "servers/bad\nservers/one\n"));
    let (code, said) = approve(&["--yes"]).await;
    assert_eq!(code, 1, "{said}");
    for words in ["the proposal `bad` can't be read", "servers/bad --reject", "wrote servers/one"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (code, said) = approve(&["servers/bad", "--reject", "--yes"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(!broken.exists());
}

#[tokio::test]
async fn proposal_needs_a_file_to_be_written_into_and_says_what_is_to_be_set_first() {
    let package = json!({"registryType": "npm", "identifier": "two",
        "environmentVariables": [{"name": "TEAM_OF_TWO"}]});
    let url = registry(&[json!({"name": "io.github.a/two", "packages": [package]})]).await;
    let data = Data::new(&[]);
    let (child, address) = served(&data, "manager", &[("MCP_REGISTRY_URL", &url)]).await;
    let manager = Manager { child, address };
    manager.done("install_server", json!({"package": "io.github.a/two", "namespace": "two"})).await;
    let (code, said) = run(&Folder::new(TOOLMAN), data.path(), &["approve", "--yes"]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("there is no `tools.toml` here"), "{said}");
    let folder = folder("[dock]\n");
    let (code, said) = run(&folder, data.path(), &["approve", "--yes"]).await;
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("set these variables before you start toolman, or it won't: `TEAM_OF_TWO`"),
        "{said}"
    );
    let (code, said) = run(&folder, data.path(), &["check"]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("TEAM_OF_TWO"), "{said}");
}
