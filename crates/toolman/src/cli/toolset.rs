//! `toolman toolset …`: what can be said of saved toolsets.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Toolset {
    /// Save a toolset: the servers are started, and its tools are pinned as they are now
    Build {
        /// 2 to 50 lowercase letters, digits and hyphens
        name: String,
        /// Tools under any of their names, ref ids, patterns, or `server:*`; at most 100 tools
        #[arg(required = true, value_name = "TOOL")]
        tools: Vec<String>,
        /// What it is for, in at most 200 characters
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the saved toolsets, with `*` before the one that is equipped
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a toolset and what became of each of its tools
    Show {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Equip a toolset from the next start on, where `surface = "toolset"`
    Equip {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Equip none from the next start on
    Unequip {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a toolset
    Delete {
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what is not as it was when the tools were chosen, member by member
    ///
    /// Ends with 1 if a tool is stale or missing.
    Diff {
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the same, and pin the tools as they are now
    Approve {
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print toolsets as one JSON file that `import` reads
    Export {
        /// The toolsets to print [default: all]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print JSON, as it does anyway
        #[arg(long)]
        json: bool,
    },
    /// Add the toolsets of a file: one that was exported, or one of hypertool
    ///
    /// That is its `toolsets.json`, `config.json` or `groups.json`, or the folder with them; or the folder or
    /// the `.htp` archive of a persona. Ends with 1 if one could not be added.
    Import {
        /// A file or folder [default: ~/.toolprint/hypertool-mcp]
        file: Option<PathBuf>,
        /// Replace toolsets of the same name
        #[arg(long)]
        force: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Propose a toolset of what was used with success, by the audit trail
    ///
    /// Of all agents, or of the one of `--agent NAME`.
    Suggest {
        /// Only what was used since then: `1h` or `7d` ago, or a day such as 2026-07-28
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Print a file for `import`
        #[arg(long)]
        json: bool,
    },
}
