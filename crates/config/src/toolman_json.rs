//! Toolman's JSON: `servers` by name, and who may see what of them. TF-02, TF-12
//!
//! The files of MCP clients differ in the name of that one key, `mcpServers`.

use catalog::surface::Surface;
use toml::de::DeTable;

use crate::fault::Faults;
use crate::reader::Section;
use crate::tools_toml::{self, server};
use crate::{Config, Surroundings, performance};

/// Reads the file's table. What is returned counts only if no fault was found.
pub fn read(
    table: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Config {
    let mut top = Section::new(table, "at the top");
    let performance = performance::read(&mut top, faults);
    let mut drafts = Vec::new();
    let servers = top.get("servers");
    match servers.or_else(|| top.get("mcpServers")) {
        Some(value) => {
            let entries = value.entries(faults).unwrap_or_default();
            for (index, (name, value)) in entries.iter().enumerate() {
                drafts.extend(server::read_named(name, value, index + 1, surroundings, faults));
            }
        }
        None => {
            faults.report(None, "no `servers`; name at least one, under `servers` or `mcpServers`");
        }
    }
    // What other programs keep in the same file.
    for key in ["$schema", "version", "description", "metadata"] {
        _ = top.get(key);
    }
    let servers = server::finish(drafts, performance.call_timeout, faults);
    let config = tools_toml::rest(top, servers, Surface::Filter, surroundings, faults);
    Config { performance, ..config }
}
