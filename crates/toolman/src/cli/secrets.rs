//! `toolman secrets …`: what can be said of secrets. Never a value: that is typed, or comes from stdin.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Secrets {
    /// Set a secret: its value is asked for without being shown, or read from stdin
    Set {
        #[command(flatten)]
        which: Which,
        /// Refused: a value on the command line can be read by others
        #[arg(hide = true)]
        stray: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change all secrets at once in `$EDITOR`
    Edit,
    /// List the secrets and whether they are set; never a value
    List {
        /// Only those of this namespace, or `global`
        #[arg(long, value_name = "SCOPE")]
        scope: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Compare what namespaces declare with what is set
    ///
    /// They declare by `secrets:` in `tools/NAMESPACE/tooldock.yaml`, or by `${secret:NAME}` in the
    /// configuration. Ends with 1 if a secret is not set.
    Check {
        /// The namespace to look at [default: all]
        namespace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Note that a secret is wanted: a placeholder that somebody has yet to set
    Prepare {
        #[command(flatten)]
        which: Which,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a secret, and what is known of it
    Rm {
        #[command(flatten)]
        which: Which,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take another master key; or, with `--data`, encrypt every value anew
    Rotate {
        /// Encrypt every value anew under another data key, and keep the master key
        #[arg(long, conflicts_with = "new_key_file")]
        data: bool,
        /// Take the key in this file, which is made if need be [default: a new key in the place of the old]
        #[arg(long, value_name = "FILE")]
        new_key_file: Option<PathBuf>,
    },
    /// Set all secrets of an `.env` file
    Import {
        /// Lines with `KEY=value`
        file: PathBuf,
        /// Whom they are for: a namespace, or `global`
        #[arg(long, value_name = "SCOPE", default_value = "global")]
        scope: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write all secrets, encrypted with the same master key, for programs that read ToolDock's stores
    Export {
        /// How the file is encrypted
        #[arg(long, value_enum)]
        format: Format,
        /// A file that is not there yet
        file: PathBuf,
    },
}

/// A secret.
#[derive(Debug, Args)]
pub struct Which {
    /// Its name: capital letters, digits and `_`
    #[arg(value_name = "KEY", required_unless_present = "named")]
    pub key: Option<String>,

    /// Its name, as ToolDock has it
    #[arg(long = "key", value_name = "KEY", id = "named", hide = true)]
    pub named: Option<String>,

    /// Whom it is for: a namespace, or `global`
    #[arg(long, value_name = "SCOPE", default_value = "global")]
    pub scope: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    /// PBKDF2 and Fernet
    Fernet,
}
