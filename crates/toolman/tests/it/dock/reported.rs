//! What is wrong with folders is told wherever somebody looks; what is right is not complained of.

use serde_json::{Value, json};
use testkit::binary::Folder;

use super::hostile::check;
use super::{Data, Dock, HELLO};
use crate::TOOLMAN;

#[tokio::test]
async fn faults_of_folders_are_told_by_check_and_by_reloads() {
    // TD-44
    let data = Data::new(&[
        ("a/t.py", HELLO),
        ("a/bad.py", "def broken(:\n"),
        ("a/requirements.txt", "--index-url https://example.com\n"),
    ]);
    let (code, text) = check(&data).await;
    assert_eq!(code, Some(1), "{text}");
    for fault in ["bad.py:1", "requirements.txt:1: "] {
        assert_eq!(text.matches(fault).count(), 1, "{fault} once: {text}");
    }
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    let told = dock.reload().await["problems"].to_string();
    assert!(told.contains("a: bad.py:1") && told.contains("a: requirements.txt:1: "), "{told}");
}

#[tokio::test]
async fn tool_whose_name_another_file_has_is_told_once_with_its_line() {
    // TD-44
    let data = Data::new(&[("a/first.py", HELLO), ("a/second.py", HELLO)]);
    let told =
        "second.py:3: the tool `hello` is already defined in `first.py`, which keeps the name";
    let (code, text) = check(&data).await;
    assert_eq!((code, text.matches(told).count()), (Some(1), 1), "{text}");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.reload().await["problems"], json!([format!("a: {told}")]));
    assert_eq!(dock.tools("a").await, ["hello"]);
}

#[tokio::test]
async fn variable_that_is_not_set_is_told_with_the_way_to_set_it() {
    let text = "import os\nfrom fastmcp.tools import tool\n\n@tool\ndef look() -> str:\n    \"\"\"Look.\"\"\"\n    return os.environ['MY_KEY']\n\n@tool\ndef write() -> None:\n    \"\"\"Write.\"\"\"\n    open('/etc/passwd', 'a')\n";
    let data = Data::new(&[("a/t.py", text)]);
    let inside = [("TOOLMAN_EXEC", "docker exec -it m")];
    let dock = Dock::start_with(&data, &inside).await;
    let answer = dock.call("a", "look", &json!({})).await;
    let command = "`docker exec -it m toolman secrets set MY_KEY --scope a`";
    assert!(answer.body.contains(command), "{answer:?}");
    let answer = dock.call("a", "write", &json!({})).await;
    assert!(answer.body.contains("name the path under `write`"), "{answer:?}");
}

#[tokio::test]
async fn method_of_a_class_is_reported_and_not_offered() {
    // TD-44
    let text = "from fastmcp.tools import tool\n\nclass Shop:\n    @tool\n    def sell(self, what: str) -> str:\n        \"\"\"Sell.\"\"\"\n        return what\n";
    let data = Data::new(&[("a/t.py", HELLO), ("a/shop.py", text)]);
    let (code, told) = check(&data).await;
    assert_eq!(code, Some(1), "{told}");
    let fault = "shop.py:4: the tool `sell` is a method of `Shop`: nobody could pass `self`";
    assert_eq!(told.matches(fault).count(), 1, "{told}");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.tools("a").await, ["hello"]);
    assert!(dock.workers("a").is_empty(), "the source tells all");
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.tools("a").await, ["hello"], "the worker says the same");
}

#[tokio::test]
async fn namespaces_may_have_tools_of_the_same_name() {
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    let (code, text) = check(&data).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("all is well"), "{text}");
}

#[tokio::test]
async fn secrets_of_folders_elsewhere_are_checked_too() {
    // TD-47, TD-64, TD-134
    let folder = Folder::new(TOOLMAN).with_tools_toml("[dock]\nfolder = \"mine\"\n");
    std::fs::create_dir_all(folder.path().join("mine/weather")).unwrap();
    let manifest = folder.path().join("mine/weather/tooldock.yaml");
    std::fs::write(manifest, "secrets: [WEATHER_KEY]\n").unwrap();
    let output = folder.run(&["secrets", "check"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("WEATHER_KEY of `weather`: missing"), "{text}");
}

#[tokio::test]
async fn data_directory_may_be_named_from_where_one_is() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let (parent, name) = (data.path().parent().unwrap(), data.path().file_name().unwrap());
    let mut command = Folder::new(TOOLMAN).command(&["check"]);
    command.arg("--data-dir").arg(name).current_dir(parent);
    let output = command.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(data.path().join("venvs/a/current/bin/python").exists());
}

#[tokio::test]
async fn files_are_judged_without_being_run() {
    // TD-44, TD-48, TD-126, HARDENING F01, F03
    let data = Data::new(&[]);
    let ran = data.path().join("ran");
    let weak = format!(
        "from fastmcp.tools import tool\nopen({ran:?}, 'w').close()\n\n@tool\ndef bare(a, b: int):\n    return a\n"
    );
    let looped =
        "from fastmcp.tools import tool\n\ndef one(): 'One.'\n\nfor f in (one,):\n    tool(f)\n";
    for (file, text) in [
        ("good.py", HELLO),
        ("weak.py", &weak),
        ("bad.py", "x = 1\ndef f(:\n"),
        ("loop.py", looped),
    ] {
        std::fs::write(data.path().join(file), text).unwrap();
    }
    let judged = async |arguments: &[&str]| {
        let mut command = Folder::new(TOOLMAN).command(&[&["check"], arguments].concat());
        command.arg("--data-dir").arg(data.path().join("data")).current_dir(data.path());
        let output = command.output().await.unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = judged(&["good.py", "loop.py"]).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("good.py: hello\n"), "{text}");
    assert!(text.contains("loop.py: no tools, and what only running it tells\n"), "{text}");
    let (code, text) = judged(&["good.py", "weak.py", "bad.py"]).await;
    assert_eq!(code, Some(1), "{text}");
    for line in [
        "weak.py:5:1: warning: the tool `bare` has no docstring\n",
        "weak.py:5:10: warning: the parameter `a` of `bare` has no type hint\n",
        "bad.py:2:7: error: syntax error: ",
        "tools: 2, errors: 1, warnings: 2; nothing was run\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (code, text) = judged(&["weak.py", "--json"]).await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["files"][0]["tools"]), (Some(0), &json!(["bare"])));
    assert_eq!(told["files"][0]["warnings"][1]["column"], 10);
    assert!(!ran.exists(), "nothing was run");
    // A folder is its tool files.
    let (code, text) = judged(&["."]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("errors: 1, warnings: 2"), "{text}");
    assert_eq!(judged(&["nowhere.py"]).await.0, Some(2));
}

#[tokio::test]
async fn what_was_read_is_remembered_and_a_damaged_memory_is_harmless() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let cache = data.path().join("cache/scan");
    let files = || -> Vec<_> {
        std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let dock = Dock::start(&data).await;
    assert_eq!(dock.tools("a").await, ["hello"]);
    drop(dock);
    let [file] = &files()[..] else { panic!("one file, one memory: {:?}", files()) };
    // It is believed: another list there is another list.
    let kept = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, kept.replace("\"hello\"", "\"other\"")).unwrap();
    assert_eq!(Dock::start(&data).await.tools("a").await, ["other"]);
    for damage in ["", "{", "[]", "{\"tools\":7}", &kept[..kept.len() / 2]] {
        std::fs::write(file, damage).unwrap();
        assert_eq!(Dock::start(&data).await.tools("a").await, ["hello"], "{damage}");
        assert_eq!(std::fs::read_to_string(file).unwrap(), kept, "and it is mended");
    }
}
