//! `[tokens.*]`: tokens that prove agents, written as hashes.

use mcp::text::shorten;

use super::texts::expanded;
use crate::Surroundings;
use crate::fault::Faults;
use crate::http::{AgentToken, Secret, weakness};
use crate::mentions::Of;
use crate::reader::Value;

pub fn read(
    value: &Value<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Vec<AgentToken> {
    let entries = value.entries(faults).unwrap_or_default();
    entries.iter().filter_map(|(name, value)| token(name, value, surroundings, faults)).collect()
}

fn token(
    name: &str,
    value: &Value<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<AgentToken> {
    let mut section = value.section("in a token", faults)?;
    let agent = section.get("agent");
    let agent = agent.map(|value| value.string(faults).unwrap_or_default().to_owned());
    let (hash, text) = (section.get("sha256"), section.get("token"));
    section.close(&[], faults);
    let secret = match (hash, text) {
        (Some(_), Some(text)) => {
            text.report("stands beside `sha256`; keep the hash", faults);
            return None;
        }
        (Some(hash), None) => {
            let text = hash.string(faults)?;
            let bytes = from_hex(text.strip_prefix("sha256:").unwrap_or(text));
            if bytes.is_none() {
                let fix = "write 64 hexadecimal digits, as `toolman token` prints them";
                hash.report(&format!("is no hash; {fix}"), faults);
            }
            Secret::Sha256(bytes?)
        }
        (None, Some(text)) => {
            let token = expanded(&text, text.string(faults)?, surroundings.environment, faults)?;
            if let Some(problem) = weakness(&token) {
                text.report(&problem, faults);
                return None;
            }
            Secret::Text(token)
        }
        (None, None) => {
            let fix = "add `sha256 = \"…\"`; `toolman token` makes a new one";
            value.report(&format!("has no secret; {fix}"), faults);
            return None;
        }
    };
    // A token is named after its agent unless it says otherwise.
    let agent = agent.unwrap_or_else(|| name.to_owned());
    if agent.is_empty() {
        value.report(&format!("`{}` proves no agent; name one", shorten(name)), faults);
        return None;
    }
    value.mention(&agent, Of::Agents, faults);
    Some(AgentToken { secret, agent })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
