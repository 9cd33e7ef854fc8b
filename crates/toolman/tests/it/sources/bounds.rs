//! A `git` that does as it likes: it is confined and bounded, and what it leaves is removed. HARDENING §4.5, G08

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use testkit::processes::{command_line, descendants};

use super::{Manager, repository};

/// A manager for which `git` is a script; `$TARGET` is where it is to clone to.
pub async fn with_git(around: &TempDir, script: &str, more: &[(&str, &str)]) -> Manager {
    let programs = around.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let git = programs.join("git");
    let head = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo git version 2.50.1; exit; fi\n\
        for TARGET; do :; done\n";
    fs::write(&git, format!("{head}{script}")).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.display());
    let own = [("PATH", path.as_str()), ("ALLOWED_REPO_PATHS", around.path().to_str().unwrap())];
    Manager::with(&[&own[..], more].concat()).await
}

/// Nothing is kept of a clone that failed, and nobody works on it any more.
pub fn assert_nothing_is_left(manager: &Manager) {
    let repos = fs::read_dir(manager.path().join("repos")).unwrap();
    assert_eq!(repos.count(), 0, "something is left");
    let running = descendants(manager.pid());
    let running: Vec<_> = running.into_iter().map(command_line).collect();
    assert!(running.is_empty(), "{running:?}");
}

#[tokio::test]
async fn git_writes_nowhere_but_where_it_clones_to() {
    let around = TempDir::new().unwrap();
    let repository = repository(around.path());
    let outside = around.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let script = format!(
        "touch {0}/made; echo x > {1}/src/index.ts; touch ../../mark ../../tools/mark; cat ../../secret; \
         mkdir -p \"$TARGET/.git\" && echo 0123 > \"$TARGET/.git/HEAD\" && cp -r {1}/src \"$TARGET/\"",
        outside.display(),
        repository.display()
    );
    let manager = with_git(&around, &script, &[]).await;
    fs::write(manager.path().join("secret"), "canary-77ab").unwrap();
    let url = repository.display().to_string();
    let analysis = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap();
    assert_eq!(analysis["files"], json!(["src/index.ts"]), "its own folder is open to it");
    assert_eq!(analysis["notes"], json!([]), "this machine's kernel must have Landlock");
    let before = "const key";
    assert!(fs::read_to_string(repository.join("src/index.ts")).unwrap().starts_with(before));
    let marks =
        [outside.join("made"), manager.path().join("mark"), manager.path().join("tools/mark")];
    assert!(marks.iter().all(|mark| !mark.exists()), "{marks:?}");
    assert!(!analysis.to_string().contains("canary-77ab"));
}

#[tokio::test]
async fn clone_that_is_too_large_has_too_many_files_or_takes_too_long_is_ended() {
    let scripts = [
        ("mkdir \"$TARGET\"; truncate -s 301M \"$TARGET/large\"; sleep 600", "it is larger than"),
        ("mkdir \"$TARGET\"; cd \"$TARGET\"; seq 40100 | xargs touch; sleep 600", "or 40000 files"),
        ("mkdir \"$TARGET\"; sleep 600 & sleep 600", "did not end within 2s"),
        ("mkdir \"$TARGET\"; truncate -s 301M \"$TARGET/large\"", "it is larger than"),
    ];
    for (script, expected) in scripts {
        let around = TempDir::new().unwrap();
        let repository = repository(around.path());
        let seconds = if expected.contains("2s") { "2" } else { "600" };
        let manager = with_git(&around, script, &[("REPO_CLONE_SECONDS", seconds)]).await;
        let began = Instant::now();
        let url = repository.display().to_string();
        let error = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap_err();
        assert!(error.contains("was not cloned") && error.contains(expected), "{script}: {error}");
        assert!(began.elapsed() < Duration::from_secs(30), "{script}: {:?}", began.elapsed());
        assert_nothing_is_left(&manager);
    }
}

#[tokio::test]
async fn git_with_known_holes_is_told_of_and_one_that_is_missing_too() {
    let around = TempDir::new().unwrap();
    let repository = repository(around.path()).display().to_string();
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|file| file.exists())
        .unwrap();
    let script = format!("exec {} \"$@\"", real.display());
    let manager = with_git(&around, &script, &[]).await;
    let git = around.path().join("programs/git");
    let text = fs::read_to_string(&git).unwrap().replace("2.50.1", "2.30.2");
    fs::write(&git, text).unwrap();
    let analysis = manager.call("analyze_repo", json!({"repo_url": repository})).await.unwrap();
    let note = analysis["notes"][0].as_str().unwrap();
    assert!(note.contains("(2.30.2)") && note.contains("update it"), "{note}");
    let allowed = Path::new(&repository).parent().unwrap().to_str().unwrap();
    let without = [("PATH", "/nowhere"), ("ALLOWED_REPO_PATHS", allowed)];
    let manager = Manager::with(&without).await;
    let error = manager.call("analyze_repo", json!({"repo_url": repository})).await.unwrap_err();
    assert!(error.contains("`git` is not installed"), "{error}");
}

#[tokio::test]
async fn git_is_told_to_ask_nobody_and_follow_nothing() {
    // What it makes of that is shown beside `sources::git` with a real one.
    let around = TempDir::new().unwrap();
    let repository = repository(around.path()).display().to_string();
    let script = "mkdir -p \"$TARGET/.git\"; { env; printf '%s\\n' \"$@\"; head -c 1 | wc -c; } > \"$TARGET/told\"";
    let manager =
        with_git(&around, script, &[("GIT_SSH_COMMAND", "touch x"), ("HTTPS_PROXY", "http://x")])
            .await;
    manager.call("analyze_repo", json!({"repo_url": repository})).await.unwrap();
    let read = json!({"repo_url": repository, "path": "told"});
    let told = manager.call("read_repo_file", read).await.unwrap();
    let told = told["content"].as_str().unwrap();
    let lines: Vec<&str> = told.lines().collect();
    for line in [
        "GIT_ALLOW_PROTOCOL=file",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_ASKPASS=/bin/false",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_LFS_SKIP_SMUDGE=1",
        "http.followRedirects=false",
        "core.hooksPath=/dev/null",
        "core.symlinks=false",
        "protocol.ext.allow=never",
        "transfer.fsckObjects=true",
        "--no-recurse-submodules",
        "--depth=1",
        "--template=",
        "--",
    ] {
        assert!(lines.contains(&line), "{line} is missing in:\n{told}");
    }
    assert_eq!(lines.last(), Some(&"0"), "there is nobody to answer");
    for variable in ["GIT_SSH_COMMAND", "HTTPS_PROXY", "BEARER_TOKEN", "MANAGER_INTERNAL_TOKEN"] {
        assert!(!told.contains(variable), "{variable}");
    }
}
