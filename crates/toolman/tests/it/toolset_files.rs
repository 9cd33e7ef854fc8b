//! Where toolsets are kept, and how they come from elsewhere.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use testkit::binary::Folder;

use crate::{MACHINE, folder};

const SERVERS: [(&str, &str); 2] = [("git", "echo tree fail"), ("hub", "echo issue")];

async fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(&[&["toolset"], arguments].concat()).await;
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn library(folder: &Folder) -> PathBuf {
    folder.path().join("data/toolman/toolsets.json")
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Writes a file of the folder, and gives its name.
fn write<'a>(folder: &Folder, name: &'a str, text: &str) -> &'a str {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    name
}

/// A file with one toolset of one tool.
fn one(name: &str, tool: &str) -> String {
    json!({name: {"name": name, "tools": [{"namespacedName": tool}]}}).to_string()
}

#[tokio::test]
async fn toolsets_are_kept_across_runs_in_a_file_for_this_user_alone() {
    // HT-22, HT-34, HT-35, HT-37
    let folder = folder("", &SERVERS);
    run(&folder, &["build", "dev", "git_echo"]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&library(&folder)), 0o600);
    assert_eq!(mode(library(&folder).parent().unwrap()), 0o700);
    let text = std::fs::read_to_string(library(&folder)).unwrap();
    assert!(
        text.starts_with("{\n  \"dev\": {\n    \"name\": \"dev\",\n"),
        "a line for each: {text}"
    );
    let (_, said) = run(&folder, &["list"]).await;
    assert!(said.contains("dev"), "{said}");
    // Another place is taken as it is told.
    let elsewhere = folder.path().join("elsewhere");
    let arguments =
        ["--data-dir", elsewhere.to_str().unwrap(), "toolset", "build", "two", "git_echo"];
    assert!(folder.run(&arguments).await.status.success());
    assert_eq!(read(&elsewhere.join("toolsets.json"))["two"]["name"], "two");
}

#[tokio::test]
async fn existing_file_is_read_as_it_is_and_keeps_what_is_not_known() {
    // HT-36, HT-38
    let folder = folder("", &SERVERS);
    let old = r#"{"$schema":"x","old":{"name":"old","description":"d","version":"1.0.0",
      "createdAt":"2025-08-01T10:00:00.000Z","colour":[1.50],"tools":[{"namespacedName":"git.echo","x-rank":1}]},
      "rest":{"tools":[{"refId":"sha256:00"}],  "odd" : 1e400}}"#;
    write(&folder, "data/toolman/toolsets.json", old);
    let (code, said) = run(&folder, &["show", "old"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("git.echo  resolved  not pinned"), "{said}");
    assert_eq!(run(&folder, &["approve", "old", "--yes"]).await.0, Some(0));
    assert_eq!(run(&folder, &["build", "new", "hub_echo"]).await.0, Some(0));
    let text = std::fs::read_to_string(library(&folder)).unwrap();
    let untouched = r#""rest": {"tools":[{"refId":"sha256:00"}],  "odd" : 1e400}"#;
    assert!(text.contains(untouched), "{text}");
    assert!(text.contains("\"$schema\": \"x\"") && text.contains("\"colour\": [1.50]"), "{text}");
    assert!(text.contains("\"x-rank\": 1"), "{text}");
    assert!(text.contains("\"createdAt\": \"2025-08-01T10:00:00.000Z\""), "{text}");
}

#[tokio::test]
async fn broken_file_is_told_with_its_place_and_never_overwritten() {
    let folder = folder("", &SERVERS);
    let broken = "{\n  \"dev\": {\"tools\": [}\n}";
    write(&folder, "data/toolman/toolsets.json", broken);
    write(&folder, "one.json", &one("one", "git.echo"));
    for arguments in
        [&["list"][..], &["import", "one.json"], &["build", "new", "git_echo"], &["equip", "dev"]]
    {
        let (code, said) = run(&folder, arguments).await;
        assert_eq!(code, Some(1), "{said}");
        let place = "data/toolman/toolsets.json:2:21: not valid JSON: expected value; mend the file, or \
            move it away to begin anew: it is not written to";
        assert!(said.contains(place), "{said}");
    }
    assert_eq!(std::fs::read_to_string(library(&folder)).unwrap(), broken);
    // Whoever does not need it is not disturbed.
    let mut running = folder.start().await;
    assert!(!running.client.tool_names().await.is_empty());
}

#[tokio::test]
async fn data_directory_that_can_not_be_made_stops_nothing_but_saving() {
    let folder = folder("surface = \"filter\"\n", &SERVERS);
    write(&folder, "data", "a file where the folder should be");
    let mut running = folder.start().await;
    assert_eq!(running.client.tool_names().await.len(), 5);
    let (code, said) = run(&folder, &["build", "dev", "git_echo"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("can't use the data directory `"), "{said}");
    assert!(said.ends_with("; name another one\n"), "{said}");
    assert!(run(&folder, &["list"]).await.1.starts_with("no toolset is saved"));
}

#[tokio::test]
async fn link_to_the_file_stays_one() {
    let folder = folder("", &SERVERS);
    write(&folder, "dotfiles/toolsets.json", "{}");
    std::fs::create_dir_all(library(&folder).parent().unwrap()).unwrap();
    let target = folder.path().join("dotfiles/toolsets.json");
    std::os::unix::fs::symlink(&target, library(&folder)).unwrap();
    let file = write(&folder, "one.json", &one("one", "git.echo"));
    assert_eq!(run(&folder, &["import", file]).await.0, Some(0));
    assert!(library(&folder).is_symlink());
    assert_eq!(read(&target)["one"]["name"], "one");
}

#[tokio::test]
async fn export_is_one_file_that_import_takes_elsewhere() {
    // HT-43
    let here = folder("", &SERVERS);
    run(&here, &["build", "dev", "git_echo", "hub_issue", "--description", "for work"]).await;
    run(&here, &["build", "other", "git_tree"]).await;
    let exported = here.run(&["toolset", "export"]).await.stdout;
    let there = folder("", &SERVERS);
    write(&there, "all.json", &String::from_utf8(exported).unwrap());
    let (code, said) = run(&there, &["import", "all.json"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "added `dev`\nadded `other`\n"));
    assert_eq!(read(&library(&there))["dev"]["tools"], read(&library(&here))["dev"]["tools"]);
    assert_eq!(run(&there, &["diff", "dev"]).await.0, Some(0), "the pins hold");
    let (_, said) = run(&there, &["import", "all.json"]).await;
    assert_eq!(said, "same `dev`\nsame `other`\n");
    let exported = here.run(&["toolset", "export", "other", "--json"]).await.stdout;
    let exported: Value = serde_json::from_slice(&exported).unwrap();
    assert_eq!(exported.as_object().unwrap().keys().collect::<Vec<_>>(), ["other"]);
    // What is there is not lost by accident.
    write(&there, "dev.json", &one("dev", "hub.echo"));
    let (code, said) = run(&there, &["import", "dev.json"]).await;
    assert_eq!(code, Some(1));
    assert_eq!(said, "conflict `dev`: another toolset has this name; `--force` replaces it\n");
    let (code, said) = run(&there, &["import", "dev.json", "--force"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "replaced `dev`\n"));
    write(
        &there,
        "bad.json",
        &json!({"A b": {"tools": [{"refId": "x"}]}, "empty": {"tools": []}}).to_string(),
    );
    let (code, said) = run(&there, &["import", "bad.json"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("wrong `A b`: `A b` can't be the name of a toolset"), "{said}");
    assert!(said.contains("wrong `empty`: a toolset needs a tool"), "{said}");
}

#[tokio::test]
async fn files_of_hypertool_are_imported_and_its_pins_are_known() {
    // HT-34, HT-38
    let folder = folder("", &SERVERS);
    // sha256 of {"name":"echo","serverName":"git","inputSchema":{"type":"object","properties":{"x":{"type":"integer"}}}}
    let hash = "a665710e978f4e4ed30651b001524885bef4a299c0abb1692876b335434af187";
    let settings = json!({"mcpConfigPath": "x", "version": "1", "lastEquippedToolset": "web-dev", "toolsets": {"web-dev":
        {"name": "web-dev", "version": "1.0.0", "createdAt": "2025-08-01T10:00:00.000Z",
        "tools": [{"namespacedName": "git.echo", "refId": hash}, {"namespacedName": "git.gone", "refId": hash}]}}});
    write(&folder, ".toolprint/hypertool-mcp/config.json", &settings.to_string());
    let groups = json!({"version": "1", "groups": [{"id": "1", "name": "hubs", "serverIds": ["hub"]},
        {"id": "2", "name": "lost", "serverIds": ["nowhere"]}]});
    write(&folder, ".toolprint/hypertool-mcp/groups.json", &groups.to_string());
    let mut command = folder.command(&["toolset", "import"]);
    let output = command.env("HOME", folder.path()).stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with(
            "added `web-dev`\nadded `hubs`\nwrong `lost`: no tool is named `nowhere:*`"
        ),
        "{said}"
    );
    let note = "note: `web-dev` was equipped there; `toolman toolset equip web-dev` does it here\n";
    assert!(said.ends_with(note), "{said}");
    assert_eq!(read(&library(&folder))["hubs"]["tools"].as_array().unwrap().len(), 2);
    let (code, said) = run(&folder, &["diff", "web-dev"]).await;
    assert_eq!(code, Some(1));
    // Its hash means `git.echo`, whatever stands beside it.
    assert!(said.contains("git.gone  withheld  it is now called `git_echo`"), "{said}");
    assert!(!said.contains("git.echo  "), "{said}");
    let (_, said) = run(&folder, &["show", "web-dev"]).await;
    assert!(
        said.contains("git.echo  resolved  pinned by hypertool's hash, without its description"),
        "{said}"
    );
    assert_eq!(run(&folder, &["approve", "web-dev", "--yes"]).await.0, Some(0));
    let renewed = &read(&library(&folder))["web-dev"]["tools"][0]["refId"];
    assert!(renewed.as_str().unwrap().starts_with("sha256:"), "{renewed}");
}

#[tokio::test]
async fn files_of_hypertool_are_read_where_they_are() {
    // HT-34, HT-38
    let folder = folder("surface = \"toolset\"", &SERVERS);
    let toolset = |tool: &str| json!({"name": "dev", "tools": [{"namespacedName": tool}]});
    let settings = json!({"toolsets": {"dev": toolset("git.tree"), "web": toolset("git.fail")}});
    let path = ".toolprint/hypertool-mcp/config.json";
    write(&folder, path, &settings.to_string());
    write(
        &folder,
        ".toolprint/hypertool-mcp/toolsets.json",
        &json!({"dev": toolset("git.echo")}).to_string(),
    );
    let run = async |arguments: &[&str]| {
        let mut command = folder.command(&[&["toolset"], arguments].concat());
        let output =
            command.env("HOME", folder.path()).stdin(Stdio::null()).output().await.unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let list: Value = serde_json::from_str(&run(&["list", "--json"]).await.1).unwrap();
    assert_eq!(list["toolsets"][0]["tools"], json!(["git.echo"]), "the newer file counts: {list}");
    assert_eq!(list["toolsets"][1]["name"], "web");
    assert!(!library(&folder).exists(), "reading writes nothing");
    let (code, said) = run(&["delete", "web", "--yes"]).await;
    assert!(code == Some(1) && said.contains("`web` is hypertool's, in `"), "{said}");
    // What is changed is ours from then on, and what is not stays where it is.
    assert_eq!(run(&["approve", "dev", "--yes"]).await.0, Some(0));
    let own = read(&library(&folder));
    assert!(own["dev"]["tools"][0]["refId"].is_string() && own["web"].is_null(), "{own}");
    assert_eq!(read(&folder.path().join(path)), settings);
    assert_eq!(run(&["equip", "web"]).await.0, Some(0));
}

#[tokio::test]
async fn pins_of_hypertool_are_renewed_when_their_toolset_is_equipped() {
    // HT-38; a hash that matches is upgraded with a note.
    let folder = folder("surface = \"toolset\"", &SERVERS);
    let hash = "a665710e978f4e4ed30651b001524885bef4a299c0abb1692876b335434af187";
    let tools = json!([
        {"namespacedName": "git.echo", "refId": hash, "x-own": 1},
        {"namespacedName": "git.gone", "refId": "00"},
    ]);
    // It is the client's own: the operator's are for a person to approve.
    let saved = json!({"dev": {"name": "dev", "owner": "", "tools": tools, "x-own": 2},
        "ops": {"name": "ops", "tools": tools}});
    write(&folder, "data/toolman/toolsets.json", &saved.to_string());
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let equipped = client.call("equip-toolset", json!({"name": "dev"})).await;
    let warnings = equipped["structuredContent"]["warnings"].as_array().unwrap();
    let note = "`git.echo` was pinned by a hash of hypertool, which leaves out its description; all of it \
        is pinned now, as it is";
    assert_eq!(warnings[0], note, "{equipped}");
    assert_eq!(warnings.len(), 2, "what is missing is told as ever: {equipped}");
    let renewed = &read(&library(&folder))["dev"];
    let tool = &renewed["tools"][0];
    assert!(tool["refId"].as_str().unwrap().starts_with("sha256:"), "{renewed}");
    assert_ne!(tool["refId"], format!("sha256:{hash}"));
    assert_eq!(tool["definition"]["description"], "does echo");
    assert_eq!((&tool["x-own"], &renewed["x-own"]), (&json!(1), &json!(2)));
    assert_eq!(renewed["tools"][1]["refId"], "00", "what does not match stays as it is");
    let again = client.call("equip-toolset", json!({"name": "dev"})).await;
    assert_eq!(again["structuredContent"]["warnings"].as_array().unwrap().len(), 1, "{again}");
    let other = client.call("equip-toolset", json!({"name": "ops"})).await;
    let warning = other["structuredContent"]["warnings"][0].as_str().unwrap();
    assert!(warning.ends_with("approve it to pin all of it"), "{warning}");
    assert_eq!(read(&library(&folder))["ops"]["tools"][0]["refId"], hash);
    assert_eq!(client.call("git_echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    toolman.client.close().await;
    toolman.ended().await;
    let log = toolman.log().await;
    assert!(log.contains("was pinned by a hash of hypertool"), "{log}");
}

/// An archive with one file.
fn packed(name: &str, text: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    archive.append(&header, text.as_bytes()).unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}

#[tokio::test]
async fn personas_are_imported_from_a_folder_or_an_archive() {
    let folder = folder("", &SERVERS);
    let persona = "name: kit\ndescription: everything to work with\ntoolsets:\n  - name: git-only\n    \
        toolIds: [git.echo, git.tree]\n";
    write(&folder, "kit/persona.yaml", persona);
    write(&folder, "kit/mcp.json", r#"{"mcpServers":{"git":{"command":"x"}}}"#);
    let (code, said) = run(&folder, &["import", "kit"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.starts_with("added `git-only`\nnote: persona `kit` is made for the servers `git`"),
        "{said}"
    );
    let (code, said) = run(&folder, &["diff", "git-only"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "every tool is what it was\n"));
    std::fs::write(folder.path().join("kit.htp"), packed("./persona.yaml", persona)).unwrap();
    assert_eq!(run(&folder, &["import", "kit.htp"]).await.1, "same `git-only`\n");
    std::fs::write(folder.path().join("trap.htp"), packed("../persona.yaml", persona)).unwrap();
    let (code, said) = run(&folder, &["import", "trap.htp"]).await;
    let words =
        "toolman: trap.htp: `../persona.yaml` leads out of the archive; it is not unpacked\n";
    assert_eq!((code, said.as_str()), (Some(2), words));
    assert!(!folder.path().parent().unwrap().join("persona.yaml").exists());
    write(&folder, "kit/persona.yaml", &format!("{persona}secret: 1\n"));
    let (code, said) = run(&folder, &["import", "kit"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("persona.yaml: no persona: ") && said.contains("secret"), "{said}");
}

#[tokio::test]
async fn several_processes_that_save_at_once_lose_nothing() {
    let folder = folder("", &SERVERS);
    let mut running = Vec::new();
    for number in 0..16 {
        let name = format!("set-{number}");
        let file = format!("{name}.json");
        write(&folder, &file, &one(&name, "git.echo"));
        let mut command = folder.command(&["toolset", "import", &file]);
        running.push(tokio::spawn(
            async move { command.stdin(Stdio::null()).output().await.unwrap() },
        ));
    }
    for output in running {
        let output = output.await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(read(&library(&folder)).as_object().unwrap().len(), 16);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn killed_at_any_moment_the_file_is_the_old_one_or_the_new_one() {
    let _machine = MACHINE.read().await;
    let folder = folder("", &SERVERS);
    // Large enough that writing it takes a while.
    let large = |mark: &str| {
        let padding = "x".repeat(60_000);
        let tool =
            json!({"namespacedName": "git.echo", "definition": {"name": mark, "x": padding}});
        json!({"dev": {"name": "dev", "description": mark, "tools": [tool]}}).to_string()
    };
    let files = ["a.json", "b.json"];
    for (file, mark) in files.iter().zip(["a", "b"]) {
        write(&folder, file, &large(mark));
    }
    assert_eq!(run(&folder, &["import", files[0]]).await.0, Some(0));
    let inode = || std::fs::metadata(library(&folder)).unwrap().ino();
    let (mut old, mut new) = (0, 0);
    let mut moment = Duration::from_millis(5);
    for round in 0..500_u32 {
        let (before, mark) = (inode(), ["b", "a"][(round % 2) as usize]);
        let file = format!("{mark}.json");
        let mut command = folder.command(&["toolset", "import", &file, "--force"]).into_std();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        while started.elapsed() < moment && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let saved = read(&library(&folder));
        let dev = &saved["dev"];
        let found = dev["description"].as_str().unwrap();
        assert!(["a", "b"].contains(&found), "round {round}");
        assert_eq!(dev["tools"][0]["definition"]["name"], found, "round {round}: one or the other");
        assert_eq!(dev["tools"][0]["definition"]["x"].as_str().unwrap().len(), 60_000);
        // The next one is killed later if this was too early, else earlier: around the moment that matters.
        let step = moment / (8 + round % 24);
        if inode() == before {
            old += 1;
            moment += step;
        } else {
            assert_eq!(found, mark, "round {round}");
            new += 1;
            moment -= step;
        }
    }
    assert!(old > 50 && new > 50, "both happen: {old} old, {new} new");
    // What was left behind is in nobody's way.
    assert_eq!(run(&folder, &["import", files[0], "--force"]).await.0, Some(0));
    let left = std::fs::read_dir(library(&folder).parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.len() <= 3, "{left:?}");
}
