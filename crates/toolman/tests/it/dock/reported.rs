//! What is wrong with folders is told wherever somebody looks; what is right is not complained of.

use serde_json::json;
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
async fn namespaces_may_have_tools_of_the_same_name() {
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    let (code, text) = check(&data).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("all is well"), "{text}");
}

#[tokio::test]
async fn secrets_of_folders_elsewhere_are_checked_too() {
    // TD-66
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
