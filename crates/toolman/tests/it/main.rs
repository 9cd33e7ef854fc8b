//! What users of Toolman can observe, through its doors and through the real binary.

#![expect(clippy::unwrap_used, reason = "a test that meets one fails")]

mod activation;
mod attribution;
mod audit;
mod bad_input;
mod ceiling_attacks;
mod ceilings;
mod checks;
mod client_files;
mod client_profiles;
mod command_line;
mod conformance;
mod connect_stdio;
mod dock;
mod documented;
mod dynamic;
mod embedding;
mod faults;
mod hangups;
mod hearing;
mod http_limits;
mod http_load;
mod http_rules;
mod http_settings;
mod http_table;
mod http_upstreams;
mod large_results;
mod lazy;
mod lifecycle;
mod links;
mod manager;
mod many_upstreams;
mod modern;
mod nesting;
mod orphans;
mod own_sessions;
mod owners;
mod permissions;
mod places;
mod plans;
mod policies;
mod policy_trail;
mod protocol_support;
mod proxying;
mod real_peers;
mod real_remote_peers;
mod relay;
mod remote_servers;
mod rest;
mod routes;
mod secrets_cli;
mod secrets_environment;
mod secrets_hidden;
mod secrets_kills;
mod secrets_servers;
mod selections;
mod session_context;
mod sources;
mod starts;
mod survey;
mod toolset_cli;
mod toolset_files;
mod toolset_surface;
mod up;

/// The binary under test.
const TOOLMAN: &str = env!("CARGO_BIN_EXE_toolman");

/// Tests that measure time take it alone; tests that load the machine share it.
static MACHINE: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

/// The fake upstream as a shell command.
fn fake(arguments: &str) -> String {
    testkit::binary::Folder::fake(TOOLMAN, arguments)
}

/// The path of one of our example programs.
fn example(name: &str) -> String {
    testkit::binary::example(TOOLMAN, name).display().to_string()
}

/// A folder for the binary with one server a line: `namespace: arguments of the fake`.
fn folder(head: &str, servers: &[(&str, &str)]) -> testkit::binary::Folder {
    let mut text = format!("{head}\n");
    for (namespace, arguments) in servers {
        let command = fake(arguments);
        text += &format!("[[servers]]\nnamespace = \"{namespace}\"\ncommand = \"{command}\"\n");
    }
    testkit::binary::Folder::new(TOOLMAN).with_tools_toml(&text)
}
