//! `toolman new`: a folder of tools to begin with.

use std::fs;

use config::dock::check_name;

use crate::cli::{Cli, Misuse};
use crate::{data_dir, host, terminal};

const TOOLS: &str = r#""""Tools of this namespace: every function with `@tool` is one."""

from fastmcp.tools import tool


@tool
def greet(name: str = "World") -> str:
    """Greet someone by name.

    Args:
        name: The person to greet.
    """
    return f"Hello, {name}!"
"#;

const MANIFEST: &str = "# What this namespace says of itself; see docs/dock.md.\n\
    description: \"What these tools are for\"\n\
    version: \"0.1.0\"\n\
    # secrets: [API_KEY]       # toolman secrets set API_KEY --scope NAMESPACE\n\
    # env: { BASE_URL: \"https://example.com\" }\n\
    # network: false\n";

/// Makes the folder; one that is there is left alone.
pub fn run(cli: &Cli, name: &str) -> anyhow::Result<i32> {
    check_name(name).map_err(Misuse)?;
    let config = host::configuration(cli)?;
    let has_file = config.is_some();
    let chosen = config.as_ref().and_then(|config| config.dock.as_ref()?.folder.clone());
    let folder = match chosen {
        Some(folder) => folder,
        None => data_dir::folder(cli)?.join("tools"),
    };
    let folder = folder.join(name);
    if folder.exists() {
        return Err(Misuse(format!("`{}` is there already", folder.display())).into());
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("tools.py"), TOOLS)?;
    fs::write(folder.join("tooldock.yaml"), MANIFEST)?;
    fs::write(folder.join("requirements.txt"), "# One package a line, such as: httpx>=0.28\n")?;
    let shown = folder.display();
    let is_served = config.is_none_or(|config| config.dock.is_some());
    let serve = match (has_file, is_served) {
        (false, _) => "serve it with `toolman serve --data-dir DIR`",
        (true, true) => "serve it with `toolman serve`",
        (true, false) => "put a section `[dock]` into the configuration and serve it",
    };
    terminal::print(&format!(
        "made {shown}\nedit tools.py, see what `toolman check {shown}` says of it, then {serve}; a core that runs \
         takes it in with `toolman reload`\n"
    ))?;
    Ok(0)
}
