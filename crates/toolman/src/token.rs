//! `toolman token`: a new token for an agent, and what to write into the configuration.

use std::fmt::Write as _;

use gateway::auth::{sha256, unguessable};
use serde_json::json;

use crate::cli::{Misuse, Token};
use crate::terminal;

pub fn run(token: &Token) -> anyhow::Result<i32> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let agent = &token.agent;
    if agent.is_empty() || !agent.chars().all(is_key) {
        let reason = "name the agent in letters, digits, `-` and `_`";
        return Err(Misuse(reason.to_owned()).into());
    }
    let secret = unguessable();
    let mut hash = String::new();
    for byte in sha256(&secret) {
        _ = write!(hash, "{byte:02x}");
    }
    let text = if token.json {
        format!("{:#}\n", json!({"agent": agent, "token": secret, "sha256": hash}))
    } else {
        format!(
            "Token of agent `{agent}`, shown this once:\n  {secret}\n\n\
             For the configuration, which needs the hash only:\n  \
             [tokens.{agent}]\n  sha256 = \"{hash}\"\n"
        )
    };
    terminal::print(&text)?;
    Ok(0)
}
