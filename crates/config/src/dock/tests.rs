//! Folders of tools in temporary folders.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{Folder, folders};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(files: &[(&str, &str)]) -> (TempDir, Vec<Folder>, Vec<String>) {
    let root = TempDir::new().unwrap();
    for (file, text) in files {
        write(root.path(), file, text);
    }
    let (found, problems) = folders(root.path());
    (root, found, problems)
}

#[test]
fn folders_are_namespaces_and_files_with_a_leading_mark_are_no_tools() {
    // TD-36, TD-37, TD-39, TD-40, TD-41, TD-43
    let (_root, found, problems) = read(&[
        ("shared/hello.py", "x"),
        ("shared/_private.py", "x"),
        ("shared/.hidden.py", "x"),
        ("shared/__pycache__/hello.py", "x"),
        ("shared/.git/hook.py", "x"),
        ("shared/README.md", "x"),
        ("shared/LICENSE", "x"),
        ("my-tools/b.py", "x"),
        ("my-tools/a.py", "x"),
        ("_ignored/a.py", "x"),
        (".hidden/a.py", "x"),
        ("stray.py", "x"),
        ("empty/README.md", "x"),
    ]);
    let shown: Vec<_> = found
        .iter()
        .map(|folder| {
            let files: Vec<_> = folder.sources.iter().map(|source| source.file.as_str()).collect();
            format!("{}: {}", folder.name, files.join(" "))
        })
        .collect();
    assert_eq!(shown, ["empty: ", "my-tools: a.py b.py", "shared: hello.py"]);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn names_that_can_not_be_served_are_told_with_the_rule() {
    // TD-37, TD-42, HARDENING F07
    let long = format!("{}/a.py", "x".repeat(65));
    let (_root, found, problems) =
        read(&[("_system/a.py", ""), ("Upper/a.py", ""), ("a.b/a.py", ""), (&long, "")]);
    assert!(found.is_empty());
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains("use lowercase letters")));
}

#[test]
fn manifest_says_what_is_needed_and_set() {
    // TD-47
    let (_root, found, _) = read(&[(
        "weather/tooldock.yaml",
        "description: \"Weather\"\nversion: 1.0.0\nauthor: someone\nsecrets:\n  - WEATHER_API_KEY\n\
         env:\n  BASE_URL: https://example.com\n  RETRIES: 3\nmax_concurrency: 2\ndeny: ['internal_*']\n",
    )]);
    let manifest = &found[0].manifest;
    assert_eq!(found[0].faults, Vec::<String>::new());
    assert_eq!(manifest.secrets, ["WEATHER_API_KEY"]);
    let env: Vec<_> =
        manifest.env.iter().map(|(k, v)| format!("{k}={}", v.plain().unwrap())).collect();
    assert_eq!(env, ["BASE_URL=https://example.com", "RETRIES=3"]);
    assert_eq!(manifest.calls_max, Some(2));
    assert!(manifest.deny.as_ref().unwrap().matches_name("internal_x"));
}

#[test]
fn what_is_wrong_is_kept_beside_what_is_right() {
    // TD-44, HARDENING K12, D01
    let (_root, found, _) = read(&[
        ("a/tooldock.yaml", "env:\n  LD_PRELOAD: x\n  'A=B': y\n"),
        ("a/requirements.txt", "httpx\n--index-url https://example.com\n"),
        ("a/good.py", "x = 1"),
        ("b/tooldock.yaml", "surprise: 1\n"),
    ]);
    assert_eq!(found[0].sources.len(), 1);
    let faults = found[0].faults.join("\n");
    assert!(faults.contains("requirements.txt:2: `--index-url https://example.com`: options"));
    assert!(faults.contains("tooldock.yaml: `LD_PRELOAD` decides"), "{faults}");
    assert!(faults.contains("`A=B` is no name"), "{faults}");
    assert_eq!(found[1].faults.len(), 1, "{:?}", found[1].faults);
    assert!(found[0].is_refused && found[1].is_refused, "what they forbid is not known");
}

#[test]
fn version_changes_with_whatever_tools_can_read() {
    let files = [("a/t.py", "1"), ("a/_helper.py", "1"), ("a/data/x.json", "1")];
    let (root, found, _) = read(&files);
    let again = folders(root.path()).0;
    assert_eq!(found[0].version, again[0].version);
    for (file, _) in files {
        write(root.path(), file, "2");
        let changed = folders(root.path()).0;
        assert_ne!(found[0].version, changed[0].version, "{file}");
        write(root.path(), file, "1");
    }
    write(root.path(), "a/__pycache__/t.pyc", "1");
    assert_eq!(found[0].version, folders(root.path()).0[0].version);
}

#[test]
fn dependencies_may_stand_in_a_pyproject() {
    let (_root, found, _) =
        read(&[("a/pyproject.toml", "[project]\nname = 'a'\ndependencies = ['httpx>=0.28']\n")]);
    assert_eq!(found[0].packages, ["httpx>=0.28"]);
}
