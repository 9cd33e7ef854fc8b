//! The file of the vault, as it is written: JSON with one spelling.
//!
//! A file that says the same in other bytes is not ours, so that no byte of it can be changed unnoticed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::seal::Sealed;

/// The version that is written. The first one is that of ToolDock, see `fernet`.
pub const VERSION: u64 = 2;
pub const ALGORITHM: &str = "pbkdf2-hmac-sha256";

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    pub version: u64,
    pub kdf: Kdf,
    pub salt: String,
    /// The data key, sealed under the key that is derived from the master key.
    pub wrapped_key: Box64,
    /// Raised by every write.
    pub generation: u64,
    /// By scope and key.
    pub entries: BTreeMap<String, Entry>,
    pub created_at: String,
    /// The checksum of all that, under a key that belongs to the data key.
    pub mac: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Kdf {
    pub alg: String,
    pub iterations: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Box64 {
    pub nonce: String,
    pub ciphertext: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// That in which the value was set.
    pub generation: u64,
    pub nonce: String,
    pub ciphertext: String,
}

impl Envelope {
    /// Reads the file; `None` if it is not one of ours, byte for byte.
    pub fn parse(bytes: &[u8]) -> Option<Envelope> {
        let envelope: Envelope = serde_json::from_slice(bytes).ok()?;
        (envelope.text().as_bytes() == bytes).then_some(envelope)
    }

    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("strings and numbers are always JSON") + "\n"
    }

    /// What the checksum is made of: everything but itself.
    pub fn sealed_text(&mut self) -> String {
        let mac = std::mem::take(&mut self.mac);
        let text = self.text();
        self.mac = mac;
        text
    }
}

impl Box64 {
    pub fn of(sealed: &Sealed) -> Box64 {
        Box64 { nonce: encode(&sealed.nonce), ciphertext: encode(&sealed.ciphertext) }
    }

    pub fn sealed(&self) -> Option<Sealed> {
        unpack(&self.nonce, &self.ciphertext)
    }
}

impl Entry {
    pub fn sealed(&self) -> Option<Sealed> {
        unpack(&self.nonce, &self.ciphertext)
    }
}

pub fn unpack(nonce: &str, ciphertext: &str) -> Option<Sealed> {
    let nonce = decode(nonce)?.try_into().ok()?;
    Some(Sealed { nonce, ciphertext: decode(ciphertext)? })
}

pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}
