//! Folders of tools in temporary folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::{Dock, Folder, Manager, folders};
use crate::limits::{DOCK_FILES_MAX, TOOL_FILE_BYTES_MAX};

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
    assert_eq!(found[0].packages.as_deref().unwrap(), ["httpx>=0.28"]);
}

#[test]
fn manifest_that_can_not_be_read_refuses_the_folder() {
    // HARDENING K12
    let large = format!("# {}\ndeny: ['x']\n", "x".repeat(TOOL_FILE_BYTES_MAX));
    let (root, found, _) = read(&[
        ("large/tooldock.yaml", &large),
        ("misspelt/tooldock.yml", "deny: ['x']\n"),
        ("fine/tooldock.yaml", "deny: ['x']\n"),
        ("binary/t.py", ""),
        ("dangling/t.py", ""),
        ("outside/t.py", ""),
        ("folder/tooldock.yaml/x", ""),
    ]);
    assert_eq!(found.len(), 7);
    fs::write(root.path().join("binary/tooldock.yaml"), b"deny: ['\xff']").unwrap();
    symlink("nowhere", root.path().join("dangling/tooldock.yaml")).unwrap();
    symlink("../fine/tooldock.yaml", root.path().join("outside/tooldock.yaml")).unwrap();
    for folder in folders(root.path()).0 {
        let is_fine = folder.name.as_str() == "fine";
        assert_eq!(folder.is_refused, !is_fine, "{}", folder.name);
        assert_eq!(folder.faults.len(), usize::from(!is_fine), "{:?}", folder.faults);
        let told = folder.faults.join("");
        assert!(is_fine || told.starts_with("tooldock.y"), "{told}");
        assert_eq!(folder.name.as_str() == "misspelt", told.contains("name it `tooldock.yaml`"));
    }
}

#[test]
fn manifest_beside_too_much_is_read_and_the_folder_is_refused() {
    let (root, _, _) = read(&[("a/tooldock.yaml", "deny: ['x']\n")]);
    for file in 0..=DOCK_FILES_MAX {
        fs::write(root.path().join(format!("a/{file:05}")), "").unwrap();
    }
    let folder = folders(root.path()).0.remove(0);
    assert!(folder.manifest.deny.is_some() && folder.is_refused);
    assert_eq!(folder.faults.len(), 1, "{:?}", folder.faults);
    assert!(folder.faults[0].contains("holds more than 2000 files"), "{:?}", folder.faults);
}

#[test]
fn what_is_no_file_of_the_folder_is_not_read() {
    let (root, _, _) = read(&[("a/t.py", "x"), ("b/t.py", "x")]);
    let a = root.path().join("a");
    mknodat(CWD, a.join("pipe.txt"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    mknodat(CWD, a.join("pipe.py"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("/dev/zero", a.join("zero.py")).unwrap();
    symlink("../b/t.py", a.join("out.py")).unwrap();
    symlink("t.py", a.join("in.py")).unwrap();
    symlink("..", a.join("up")).unwrap();
    let folder = folders(root.path()).0.remove(0);
    let files: Vec<_> = folder.sources.iter().map(|source| source.file.as_str()).collect();
    assert_eq!(files, ["in.py", "t.py"]);
    assert_eq!(
        folder.faults,
        [
            "out.py: is a link that leads out of the folder; put the file itself there",
            "pipe.py: is no file; pipes, sockets and devices are not served",
            "zero.py: is a link that leads out of the folder; put the file itself there",
        ]
    );
}

#[test]
fn version_changes_with_names_of_folders_and_with_the_end_of_large_files() {
    let large = "x".repeat(2 * TOOL_FILE_BYTES_MAX);
    let (root, found, _) = read(&[("a/one/x.json", "1"), ("a/large.bin", &large)]);
    let version = || folders(root.path()).0.remove(0).version;
    let first = version();
    assert_eq!(first, found[0].version);
    fs::rename(root.path().join("a/one"), root.path().join("a/two")).unwrap();
    let renamed = version();
    assert_ne!(first, renamed);
    write(root.path(), "a/large.bin", &format!("{}y", &large[1..]));
    assert_ne!(renamed, version());
}

#[test]
fn numbers_that_nothing_could_be_done_with_are_refused_with_their_bounds() {
    let (_root, found, _) = read(&[(
        "a/tooldock.yaml",
        "max_concurrency: 18446744073709551615\ntimeout: 4294967295\nmemory_mb: 0\nrate_limit: 0\n\
         processes: 0\nenv: { A: \"x\\0y\" }\n",
    )]);
    let faults = found[0].faults.join("\n");
    for told in [
        "`max_concurrency` is 18446744073709551615; it must be from 1 to 10000",
        "`timeout` must be a number of seconds above 0, at most 86400",
        "`memory_mb` is 0; it must be from 64 to 4294967295",
        "`rate_limit` is 0; it must be from 1 to 4294967295",
        "`processes` is 0; it must be from 1 to 4294967295",
        "the value of `A` holds a NUL",
    ] {
        assert!(faults.contains(told), "{told}: {faults}");
    }
    assert!(found[0].is_refused);
}

#[test]
fn environment_counts_for_more_than_the_file_in_each_setting_of_the_watcher() {
    // TD-118, TD-146
    let watches = |file: Dock, variables: &[(&str, &str)]| {
        let value = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        file.with_environment(&value).unwrap().watches().map(|quiet| quiet.as_millis())
    };
    let file =
        Dock { is_watching: Some(true), quiet: Duration::from_millis(70), ..Dock::default() };
    assert_eq!(watches(Dock::default(), &[]), None);
    assert_eq!(watches(Dock::default(), &[("ENABLE_FS_WATCHER", "1")]), Some(1_500));
    assert_eq!(watches(file.clone(), &[("ENABLE_FS_WATCHER", "1")]), Some(70));
    assert_eq!(watches(file.clone(), &[("FS_WATCHER_DEBOUNCE_MS", "80")]), Some(80));
    assert_eq!(watches(file, &[("ENABLE_FS_WATCHER", "0")]), None);
}

#[test]
fn manager_is_known_by_its_address_in_either_family() {
    // TD-113
    let manager = Manager::of(&|_| None).unwrap();
    for (address, is_known) in [
        ("172.30.0.10", true),
        ("::ffff:172.30.0.10", true),
        ("::ffff:127.0.0.1", true),
        ("::1", true),
        ("::ffff:172.30.0.11", false),
    ] {
        assert_eq!(manager.may_be_at(address.parse().unwrap()), is_known, "{address}");
    }
}

#[test]
fn packages_are_those_of_one_file_and_not_known_if_that_is_refused() {
    let project = "[project]\ndependencies = [\"rich\"]\n";
    let (_root, found, _) = read(&[
        ("a/pyproject.toml", project),
        ("a/requirements.txt", "httpx\n"),
        ("b/pyproject.toml", project),
        ("c/pyproject.toml", project),
        ("c/requirements.txt", "-e .\n"),
        ("d/pyproject.toml", "[project]\ndependencies = [\"-e .\"]\n"),
        ("e/t.py", ""),
    ]);
    let packages: Vec<_> = found.iter().map(|folder| folder.packages.clone()).collect();
    let one = |name: &str| Some(vec![name.to_owned()]);
    assert_eq!(packages, [one("httpx"), one("rich"), None, None, Some(Vec::new())]);
}
