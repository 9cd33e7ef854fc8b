//! `deploy/compose.yaml`: core and manager as two services.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::binary::Folder;
use tokio::process::Command;

use super::{Manager, tool};
use crate::TOOLMAN;
use crate::dock::Dock;

fn compose() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/compose.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn compose_file_has_two_services_over_one_volume() {
    // TD-156
    let file = compose();
    let services = file["services"].as_object().unwrap();
    let names: Vec<_> = services.keys().map(String::as_str).collect();
    assert_eq!(names, ["toolman-core", "toolman-manager"]);
    for (name, service) in services {
        let user = service["user"].as_str().unwrap();
        assert_eq!(user, "${TOOLDOCK_UID:-1000}:${TOOLDOCK_GID:-1000}", "{name}");
        let mounts: Vec<_> = service["volumes"].as_array().unwrap().iter().collect();
        assert!(mounts.contains(&&json!("data:/data")), "{name}");
        let environment = &service["environment"];
        for key in ["BEARER_TOKEN", "MANAGER_INTERNAL_TOKEN"] {
            let value = environment[key].as_str().unwrap();
            assert!(value.starts_with(&format!("${{{key}:?")), "{name}: {value}");
        }
        assert!(service["healthcheck"]["test"].to_string().contains("/health"), "{name}");
        assert!(service["networks"]["internal"]["ipv4_address"].is_string(), "{name}");
        assert!(service["networks"]["public"].is_object(), "{name}: ports are published there");
        assert_eq!(service["env_file"][0], json!({"path": ".env", "required": false}), "{name}");
        let is_config = |mount: &&&Value| mount.as_str().unwrap().contains(":/config");
        assert_eq!(mounts.iter().filter(is_config).count(), 1, "{name} finds its tools.toml");
    }
    let manager = &services["toolman-manager"];
    assert_eq!(manager["depends_on"]["toolman-core"]["condition"], "service_healthy");
    let memory = manager["environment"]["XDG_RUNTIME_DIR"].as_str().unwrap();
    let mounted = manager["tmpfs"][0].as_str().unwrap();
    assert_eq!(mounted.split(':').next(), Some(memory), "secrets are edited in memory");
    let address = manager["networks"]["internal"]["ipv4_address"].as_str().unwrap();
    let allowed = &services["toolman-core"]["environment"]["INTERNAL_ALLOWED_CIDRS"];
    assert_eq!(allowed, &json!(format!("{address}/32,127.0.0.1/32")), "and reloads from inside");
    let core = services["toolman-core"]["networks"]["internal"]["ipv4_address"].as_str().unwrap();
    assert_eq!(manager["environment"]["CORE_URL"], format!("http://{core}:8000"));
    assert_eq!(file["networks"]["internal"]["internal"], true, "it leads nowhere else");
    let told = manager["environment"]["TOOLMAN_EXEC"].as_str().unwrap();
    assert!(told.ends_with(manager["container_name"].as_str().unwrap()), "{told}");
    assert_eq!(services["toolman-core"]["environment"]["TOOLMAN_EXEC"], told);
    assert!(file["networks"]["internal"]["ipam"]["config"][0]["subnet"].is_string());
    assert!(file["volumes"]["data"].is_null() || file["volumes"]["data"].is_object());
    let is_targeted = |service: &str, stage: &str| services[service]["build"]["target"] == stage;
    assert!(is_targeted("toolman-core", "${TOOLMAN_IMAGE:-core}"));
    assert!(is_targeted("toolman-manager", "manager"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/Dockerfile");
    let stages = std::fs::read_to_string(path).unwrap();
    let (core, manager) = stages.split_once("AS manager").unwrap();
    let installs_git = |stage: &str| {
        stage.lines().any(|line| line.contains("apt-get install") && line.contains(" git"))
    };
    assert!(!installs_git(core) && installs_git(manager), "only the manager needs git");
    assert!(core.contains("FROM core AS full") && manager.contains("EDITOR=nano"), "{stages}");
}

#[test]
fn example_of_the_settings_names_what_the_compose_file_and_the_documents_name() {
    // TD-146, TD-156
    let read = |path: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    };
    let (example, composed) = (read("deploy/.env.example"), read("deploy/compose.yaml"));
    let lines = example.lines().map(|line| line.trim_start_matches('#'));
    let named: Vec<_> =
        lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for part in composed.split("${").skip(1) {
        let name = part.split([':', '}']).next().unwrap();
        assert!(named.contains(&name), "{name}");
    }
    let documents = read("docs/dock.md") + &read("docs/manager.md");
    for name in named {
        assert!(documents.contains(name), "{name}");
    }
    for ignored in [".git", "**/target", "deploy/.env"] {
        assert!(read(".dockerignore").lines().any(|line| line == ignored), "{ignored}");
    }
}

/// A command as a service of the file has it, over a folder that stands for the volume, on this machine alone.
fn service(folder: &Folder, name: &str, volume: &Path) -> Command {
    let service = &compose()["services"][name];
    let words = service["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words: Vec<_> =
        words.map(|word| if word.starts_with("0.0.0.0:") { "127.0.0.1:0" } else { word }).collect();
    let mut command = folder.command(&words);
    for (key, value) in service["environment"].as_object().unwrap() {
        let value = match (key.as_str(), value.as_str().unwrap()) {
            ("DATA_DIR", _) => volume.to_str().unwrap(),
            ("TOOLMAN_EXEC", _) => "exec in a container",
            ("SECRETS_KEY", _) => "a master key for the tests of compose",
            // Tokens are set by whoever starts it, and levels have a default.
            (_, value) if value.starts_with("${") => continue,
            (_, value) => value,
        };
        command.env(key, value);
    }
    command
}

#[tokio::test]
async fn services_of_the_compose_file_begin_with_an_empty_volume() {
    // TD-156, TD-33
    let folder = Folder::new(TOOLMAN);
    let volume = folder.path().join("volume");
    std::fs::create_dir(&volume).unwrap();
    let core = Dock::spawn(service(&folder, "toolman-core", &volume)).await;
    assert_eq!(core.ask("GET", "/health", &[], "").await.status, 200);
    let none = core.ask("GET", "/namespaces", &[], "").await.json();
    assert_eq!(none["namespaces"], json!([]));
    let mut command = service(&folder, "toolman-manager", &volume);
    command.env("CORE_URL", format!("http://{}", core.address));
    let Dock { child, address } = Dock::spawn(command).await;
    let manager = Manager { child, address };
    manager.done("create_namespace", json!({"name": "first"})).await;
    let code = tool("shout", "return text.upper()");
    let laid = json!({"namespace": "first", "filename": "a.py", "code": code});
    let written = manager.done("write_tool", laid).await;
    assert_eq!(written["pending"], true, "a person is asked");
    let next = written["next"].as_str().unwrap();
    assert!(next.contains("run: exec in a container toolman approve first/a.py"), "{next}");
    let mut approve = service(&folder, "toolman-manager", &volume);
    approve = {
        let mut person = folder.command(&["approve", "--yes"]);
        person.envs(approve.as_std().get_envs().filter_map(|(key, value)| Some((key, value?))));
        person
    };
    assert!(approve.output().await.unwrap().status.success());
    let reload = {
        let mut inside = folder.command(&["reload"]);
        let core = service(&folder, "toolman-core", &volume);
        inside.envs(core.as_std().get_envs().filter_map(|(key, value)| Some((key, value?))));
        inside.output().await.unwrap()
    };
    assert!(reload.status.success(), "from inside: {reload:?}");
    assert_eq!(core.text("first", "shout", &json!({"text": "a"})).await, "A");
}

#[tokio::test]
async fn secrets_are_edited_where_the_compose_file_has_memory() {
    // TD-59, TD-156: there it is `/tmp`; here any folder in memory will do.
    let folder = Folder::new(TOOLMAN);
    let memory = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let editor = folder.path().join("editor.sh");
    std::fs::write(
        &editor,
        "#!/bin/sh\nprintf %s \"$1\" > where\nprintf 'global:\\n  KEY: a value\\n' > \"$1\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = folder.command(&["secrets", "edit"]);
    command.env("EDITOR", &editor).env("XDG_RUNTIME_DIR", memory.path());
    let output = command.output().await.unwrap();
    let place = std::fs::read_to_string(folder.path().join("where")).unwrap();
    assert!(Path::new(&place).starts_with(memory.path()), "{place}: {output:?}");
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0, "and it is wiped");
}
