//! Repositories that mean no good, built here: nothing is read, written or run outside. HARDENING G01 … G08

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::{Manager, commit, git, write};

/// What must never be read out.
const CANARY: &str = "canary-5f0c1d";

/// A repository, and what touches `mark` if anything of it is run.
type Build = fn(repository: &Path, mark: &Path);

/// What must become of it.
#[derive(Clone, Copy)]
enum Outcome {
    /// It is analysed, and these are its files, links as texts.
    Told(&'static [&'static str]),
    /// It is not cloned, for this reason.
    Refused(&'static str),
}

use Outcome::{Refused, Told};

const HOSTILE: [(&str, Outcome, Build); 18] = [
    ("a link to a file outside", Told(&["a.py"]), |repository, mark| {
        symlink(mark.with_file_name("canary"), repository.join("a.py")).unwrap();
        commit(repository);
    }),
    ("a link to a folder outside", Told(&["src"]), |repository, mark| {
        symlink(mark.parent().unwrap(), repository.join("src")).unwrap();
        commit(repository);
    }),
    ("a link to all files of the machine", Told(&["root"]), |repository, _| {
        symlink("/", repository.join("root")).unwrap();
        commit(repository);
    }),
    ("a link to itself", Told(&["loop", "round"]), |repository, _| {
        symlink("loop", repository.join("loop")).unwrap();
        symlink(".", repository.join("round")).unwrap();
        commit(repository);
    }),
    ("hooks", Told(&["kept.py"]), |repository, mark| {
        write(repository, "kept.py", "x = 1\n");
        commit(repository);
        for hook in
            ["post-checkout", "post-clone", "pre-receive", "post-merge", "reference-transaction"]
        {
            script(&repository.join(".git/hooks").join(hook), mark);
        }
    }),
    ("hooks in the tree", Told(&[".gitconfig", ".githooks/post-checkout"]), |repository, mark| {
        script(&repository.join(".githooks/post-checkout"), mark);
        write(repository, ".gitconfig", "[core]\n\thooksPath = .githooks\n");
        commit(repository);
        git(repository, &["config", "core.hooksPath", ".githooks"]);
    }),
    ("a hook of the side that sends", Told(&["kept.py"]), |repository, mark| {
        write(repository, "kept.py", "x = 1\n");
        commit(repository);
        script(&repository.join("pack"), mark);
        let pack = repository.join("pack").display().to_string();
        git(repository, &["config", "uploadpack.packObjectsHook", &pack]);
        git(repository, &["config", "core.fsmonitor", &pack]);
    }),
    ("a filter", Told(&[".gitattributes", "a.py"]), |repository, mark| {
        write(repository, ".gitattributes", "* filter=evil\n");
        write(repository, "a.py", "x = 1\n");
        commit(repository);
        git(repository, &["config", "filter.evil.smudge", &format!("touch {}", mark.display())]);
        git(repository, &["config", "filter.evil.required", "true"]);
    }),
    (
        "a submodule with a command for its address",
        Refused("gitmodulesUpdate"),
        |repository, mark| {
            let modules = format!(
                "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% {}\n\tupdate = !touch {}\n",
                mark.display(),
                mark.display()
            );
            write(repository, ".gitmodules", &modules);
            gitlink(repository, "x");
        },
    ),
    ("a submodule whose name is an option", Refused("gitmodulesUrl"), |repository, mark| {
        let modules = format!(
            "[submodule \"x\"]\n\tpath = x\n\turl = --upload-pack=touch {}\n",
            mark.display()
        );
        write(repository, ".gitmodules", &modules);
        gitlink(repository, "x");
    }),
    ("a submodule that leads out", Refused("gitmodulesName"), |repository, _| {
        write(repository, ".gitmodules", "[submodule \"../../x\"]\n\tpath = x\n\turl = ./\n");
        gitlink(repository, "x");
    }),
    ("a member named `..`", Refused("hasDotdot"), |repository, _| raw_tree(repository, "..")),
    ("a member named `.git`", Refused("hasDotgit"), |repository, _| raw_tree(repository, ".git")),
    ("a member named `.GIT`", Refused("hasDotgit"), |repository, _| raw_tree(repository, ".GIT")),
    ("a member with a slash", Refused("fullPathname"), |repository, _| {
        raw_tree(repository, "../../escaped");
    }),
    ("borrowed objects", Told(&["kept.py"]), |repository, mark| {
        write(repository, "kept.py", "x = 1\n");
        commit(repository);
        let alternates = repository.join(".git/objects/info/alternates");
        fs::write(alternates, mark.parent().unwrap().display().to_string()).unwrap();
    }),
    (
        "names that drive a terminal",
        Told(&["--option.py", "a [8m.py", "new\nline.py"]),
        |repository, _| {
            write(repository, "a\u{1b}[8m.py", "@mcp.tool()\ndef x(): 'X'\n");
            write(repository, "new\nline.py", "x = 1\n");
            write(repository, "--option.py", "x = 1\n");
            commit(repository);
        },
    ),
    (
        "a large file that is not there",
        Told(&[".gitattributes", ".lfsconfig", "a.bin"]),
        |repository, mark| {
            write(repository, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs\n");
            write(repository, ".lfsconfig", &format!("[lfs]\n\turl = file://{}\n", mark.display()));
            write(
                repository,
                "a.bin",
                "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99999999999\n",
            );
            commit(repository);
        },
    ),
];

fn script(path: &Path, mark: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\ntouch {}\nexec \"$@\"\n", mark.display())).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A commit with an entry that names a commit of another repository.
fn gitlink(repository: &Path, path: &str) {
    git(repository, &["add", "-A"]);
    let entry = format!("160000,1111111111111111111111111111111111111111,{path}");
    git(repository, &["update-index", "--add", "--cacheinfo", &entry]);
    git(repository, &["commit", "-q", "-m", "a"]);
}

/// A commit with a tree that git itself would not make.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
fn raw_tree(repository: &Path, name: &str) {
    fs::write(repository.join("content"), "escaped\n").unwrap();
    let blob = git(repository, &["hash-object", "-w", "content"]);
    let mut tree = format!("100644 {name}\0").into_bytes();
    let digits = |at: usize| u8::from_str_radix(&blob[at..at + 2], 16).unwrap();
    tree.extend((0..blob.len()).step_by(2).map(digits));
    let mut command = Command::new("git");
    command
        .args(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"])
        .current_dir(repository);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &tree).unwrap();
    let tree = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let made = git(repository, &["commit-tree", tree.trim(), "-m", "a"]);
    git(repository, &["update-ref", "HEAD", &made]);
}

/// Every path beneath a folder; a link is one that is not followed.
fn everything(root: &Path) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            found.push((entry.path().display().to_string(), kind.is_symlink()));
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn hostile_repositories_run_read_and_write_nothing_outside() {
    assert!(HOSTILE.len() >= 15);
    for (what, expected, build) in HOSTILE {
        let around = TempDir::new().unwrap();
        let outside = around.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("canary"), CANARY).unwrap();
        let mark = outside.join("mark");
        let repository = around.path().join("repository");
        fs::create_dir(&repository).unwrap();
        git(&repository, &["init", "-q"]);
        build(&repository, &mark);
        let before = everything(around.path());
        let manager = Manager::of_folder(around.path()).await;
        let url = repository.display().to_string();
        let own = everything(manager.path());
        let analysis = manager.call("analyze_repo", json!({"repo_url": url})).await;
        let told = format!("{analysis:?}");
        match (&analysis, expected) {
            (Ok(analysis), Told(files)) => assert_eq!(analysis["files"], json!(files), "{what}"),
            (Err(error), Refused(why)) => {
                assert!(
                    error.contains("was not cloned: git ended") && error.contains(why),
                    "{what}: {error}"
                );
                assert!(everything(&manager.path().join("repos")).is_empty(), "{what}");
            }
            _ => panic!("{what}: {told}"),
        }
        assert!(!told.contains(CANARY) && !told.contains("u{1b}"), "{what}: {told}");
        for path in [
            "a.py",
            "src/canary",
            "root/etc/passwd",
            "round/a.py",
            "../outside/canary",
            ".git/config",
        ] {
            let content =
                manager.call("read_repo_file", json!({"repo_url": url, "path": path})).await;
            let content = format!("{content:?}");
            assert!(!content.contains(CANARY) && !content.contains("root:x:"), "{what}: {content}");
        }
        assert!(!mark.exists(), "{what}: something of it was run");
        assert_eq!(everything(around.path()), before, "{what}: something was written outside");
        let kept = everything(manager.path());
        assert!(kept.iter().all(|(_, is_link)| !is_link), "{what}: {kept:?}");
        // What was cloned, and that it was.
        let inside = ["repos", "logs"].map(|name| manager.path().join(name).display().to_string());
        let is_elsewhere = |path: &str| !inside.iter().any(|place| path.starts_with(place));
        let others: Vec<_> = kept.into_iter().filter(|(path, _)| is_elsewhere(path)).collect();
        assert_eq!(others, own, "{what}: something was written elsewhere");
    }
}

#[tokio::test]
async fn failed_clone_leaves_nothing_and_says_why() {
    let around = TempDir::new().unwrap();
    let empty = around.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let manager = Manager::of_folder(around.path()).await;
    let url = empty.display().to_string();
    let error = manager.call("analyze_repo", json!({"repo_url": url})).await.unwrap_err();
    assert!(error.contains("was not cloned: git ended with exit code 128"), "{error}");
    let kept = everything(&manager.path().join("repos"));
    assert!(kept.is_empty(), "{kept:?}");
}
