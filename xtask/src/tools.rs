//! The programs that count instructions and system calls: installed where they are missing.

use std::path::Path;
use std::process::Command;

use crate::peers::debian;
use crate::peers::site::Site;
use crate::program::Failure;

/// The programs, and what each is needed for.
const TOOLS: [(&str, &str); 2] =
    [("valgrind", "counts instructions"), ("strace", "counts system calls")];

/// Makes them usable, or says what to install.
pub fn install(workspace: &Path) -> Result<(), String> {
    let site = Site::open(&workspace.join("target/peers"))?;
    for (tool, purpose) in TOOLS {
        let version = || site.run(Command::new(tool).arg("--version"));
        if let Err(Failure::Missing { .. }) = version() {
            debian::install(&site, &[tool])
                .map_err(|why| format!("`{tool}` {purpose}; install it ({why})"))?;
        }
        version().map_err(|problem| format!("`{tool}` {purpose} and does not run: {problem}"))?;
    }
    Ok(())
}
