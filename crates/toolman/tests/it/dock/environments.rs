//! Environments of namespaces, with real packages from the index.

use serde_json::json;

use super::{Data, Dock};

const VERSION: &str = "from fastmcp.tools import tool\n\n@tool\ndef version() -> str:\n    \"\"\"Tell.\"\"\"\n    import idna\n    return idna.__version__\n";

#[tokio::test]
async fn requirements_are_installed_for_their_namespace_alone() {
    // TD-09, TD-10, TD-128 in part
    let data = Data::new(&[
        ("with/t.py", VERSION),
        ("with/requirements.txt", "idna==3.10\n"),
        ("without/t.py", VERSION),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");
    let missing = dock.call("without", "version", &json!({})).await;
    assert_eq!(missing.status, 500);
    assert_eq!(missing.json()["error"]["code"], "dependency_error");
    assert!(data.path().join("venvs/with/current/bin/python").exists());

    data.write("with/requirements.txt", "idna==3.9\n");
    let done = dock.reload().await;
    assert_eq!(done["deps_synced"], json!(["with"]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.9");
    // Known by its hash, the former one is there at once.
    data.write("with/requirements.txt", "idna==3.10\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");

    // An install that fails keeps what is there.
    data.write("with/requirements.txt", "idna==0.0.0\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");
    // HARDENING D01
    data.write("with/requirements.txt", "idna==3.9\n--index-url https://example.com\n");
    dock.reload().await;
    let answer = dock.call("with", "version", &json!({})).await;
    assert_ne!(
        answer.json()["content"][0]["text"],
        "3.9",
        "options are refused, with all of the file"
    );
}
