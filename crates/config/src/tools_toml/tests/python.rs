//! Servers that are folders of Python tools.

use std::path::Path;
use std::time::Duration;

use super::check;
use crate::{Config, Surroundings};

fn parse(text: &str, folder: &Path) -> Config {
    let file = Path::new("tools.toml");
    let surroundings = Surroundings { file, folder, environment: &|_| None };
    crate::parse(text, &surroundings).unwrap()
}

#[test]
fn folder_is_a_server_with_the_options_of_its_own_file() {
    let root = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("my tools")).unwrap();
    let config = parse(
        "[[servers]]\ncommand = 'run'\n[[servers]]\nnamespace = 'a'\npython = 'my tools'\n\
         env = { A = '${secret:KEY}' }\nsecrets = ['OTHER']\ntimeout = 5\nnetwork = false\n\
         interpreter = 'python3.12'\nmax_concurrency = 2\nread = ['data']\nallow = ['x*']\n\
         [[servers]]\ncommand = 'run'\n\
         [[servers]]\npython = 'nowhere'\nenabled = false\n\
         [[endpoints]]\npath = '/a'\nnamespace = 'a'\n",
        root.path(),
    );
    assert_eq!((config.servers.len(), config.folders.len()), (2, 1));
    let named = &config.folders[0];
    assert_eq!((named.name.as_str(), named.namespace.as_str(), named.after), ("a", "a", 1));
    assert_eq!(named.path, root.path().join("my tools"));
    let manifest = &named.manifest;
    assert_eq!(manifest.env[0].1.secrets().count(), 1);
    assert_eq!(manifest.secrets, ["OTHER"]);
    assert_eq!(manifest.call_timeout, Some(Duration::from_secs(5)));
    assert_eq!((manifest.network, manifest.calls_max), (Some(false), Some(2)));
    assert_eq!(manifest.python.as_deref(), Some("python3.12"));
    assert_eq!(manifest.reads, [root.path().join("data")]);
    assert!(manifest.allow.as_ref().unwrap().matches_name("xy"));
}

#[test]
fn what_the_configuration_says_counts_for_more_than_the_folder() {
    let root = tempfile::TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("a")).unwrap();
    let own = "timeout: 9\nmemory_mb: 64\nsecrets: [ONE, TWO]\nenv: { A: own, B: own }\n";
    std::fs::write(root.path().join("a/tooldock.yaml"), own).unwrap();
    let config = parse(
        "[[servers]]\npython = 'a'\ntimeout = 5\nsecrets = ['TWO']\nenv = { A = 'x' }\n",
        root.path(),
    );
    let read = config.folders[0].read().manifest;
    assert_eq!(read.call_timeout, Some(Duration::from_secs(5)));
    assert_eq!(read.memory_mb, Some(64));
    assert_eq!(read.secrets, ["ONE", "TWO"]);
    let env: Vec<_> = read.env.iter().map(|(name, value)| (&**name, value.plain())).collect();
    assert_eq!(env, [("B", Some("own")), ("A", Some("x"))]);
}

#[test]
fn what_does_not_go_together_is_told_with_its_place() {
    // TA-11
    check(
        "[[servers]]\npython = '/usr'\ncommand = 'run'\nlazy = true\n",
        "2:10: `python` stands beside `command`; keep the one that is meant\n\
         4:8: `lazy` is for servers with a `command` or a `url`; remove it",
    );
    check(
        "[[servers]]\nurl = 'http://127.0.0.1/mcp'\npython = '/usr'\n",
        "3:10: `python` stands beside `url`; keep the one that is meant",
    );
    check(
        "[[servers]]\npython = 'nowhere'\nmemory_mb = 0\nallow = 'x'\n",
        "2:10: `python` is `nowhere`, where no folder is; name one with tools\n\
         3:13: `memory_mb` is 0; it must be from 64 to 4294967295\n\
         4:9: `allow` is a string; it must be an array",
    );
    check(
        "[[servers]]\nnamespace = 'A_b'\npython = '/usr'\nenv = { PATH = 'x' }\nsecrets = ['a-b']\n",
        "3:10: `python` has a namespace that can't be one: `A_b` is no name for a namespace; use lowercase letters, \
         digits and hyphens, such as `my-tools`\n\
         4:16: `PATH` in `env` can't be set: `PATH` decides which program runs; it can't be set here\n\
         5:12: secret 1 of `secrets` can't be one: `a-b` is no name of a variable; use letters, digits and `_`",
    );
    check(
        "[[servers]]\npython = '/usr'\npythn = 1\n",
        "3:1: unknown key `pythn` in `[[servers]]`; did you mean `python`?",
    );
}
