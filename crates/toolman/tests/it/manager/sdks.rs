//! The manager, driven by official client libraries, which hold every result to its schema.

use testkit::peers::python_program;

use super::both;
use crate::dock::{HELLO, TOKEN};
use crate::real_peers::run;

#[tokio::test]
async fn official_clients_make_a_tool_by_the_manager() {
    // TD-117, TD-119, TD-120 … TD-134, TD-137, TD-138, TD-143, TD-144
    let _loud = crate::MACHINE.read().await;
    let (_data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let url = format!("http://{}/mcp", manager.address);
    run(&python_program("sdk1", "python"), "manager.py", &[&url, TOKEN, "python"]).await;
    run("node", "manager.mjs", &[&url, TOKEN, "typescript"]).await;
}
