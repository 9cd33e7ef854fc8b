//! ToolDock's store: one Fernet token under a key that PBKDF2 derives from the master key. TD-52, TD-53, TD-54
//!
//! It is read, and written for programs that know nothing else. Its payload is JSON:
//! `{"global": {KEY: value}, "namespaces": {namespace: {KEY: value}}}`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::SystemTime;

use aws_lc_rs::cipher::{
    AES_128, DecryptionContext, PaddedBlockDecryptingKey, PaddedBlockEncryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::Error;
use crate::limits::ROUNDS_MAX;
use crate::master::MasterKey;
use crate::names::{Key, Name, Scope};
use crate::seal::{self, KeyBytes};
use crate::value::SecretValue;

/// The rounds of the one public implementation, which the file does not say.
const ROUNDS: u32 = 390_000;
/// The fewest rounds that are believed.
const ROUNDS_MIN: u32 = 100_000;
const VERSION: u8 = 0x80;
/// Version, time, first block.
const HEAD: usize = 1 + 8 + 16;
const TAG: usize = 32;

/// A file of that form.
#[derive(Deserialize, Serialize)]
pub struct Envelope {
    version: u64,
    kdf: Value,
    salt: String,
    ciphertext: String,
    #[serde(default)]
    pub created_at: String,
}

/// Why a file of that form can't be read.
pub enum Failure {
    WrongKey,
    Damaged(&'static str),
}

#[derive(Deserialize, Serialize)]
struct Payload<T: Ord> {
    #[serde(default)]
    global: BTreeMap<T, Option<T>>,
    #[serde(default)]
    namespaces: BTreeMap<T, BTreeMap<T, Option<T>>>,
}

impl Envelope {
    pub fn parse(bytes: &[u8]) -> Option<Envelope> {
        serde_json::from_slice(bytes).ok()
    }

    pub fn open(&self, master: &MasterKey) -> Result<Vec<(Name, SecretValue)>, Failure> {
        let salt = decode(&self.salt).ok_or(Failure::Damaged("its salt is no base64"))?;
        let rounds = self.rounds().ok_or(Failure::Damaged("it asks for too few rounds"))?;
        let token = decode(&self.ciphertext).ok_or(Failure::Damaged("its text is no base64"))?;
        let key = master.derive(&salt, rounds);
        let plain = decrypt(&key, &token).ok_or(Failure::WrongKey)?;
        let no_payload = Failure::Damaged("it holds no secrets");
        // The texts of the payload are wiped by the values that take them.
        let Ok(payload) = serde_json::from_slice::<Payload<String>>(&plain) else {
            return Err(no_payload);
        };
        let mut found = Vec::new();
        let global = payload.global.into_iter().map(|(key, value)| (Scope::Global, key, value));
        let of_namespaces = payload.namespaces.into_iter().flat_map(|(namespace, values)| {
            let scope = Scope::Namespace(namespace.into());
            values.into_iter().map(move |(key, value)| (scope.clone(), key, value))
        });
        for (scope, key, value) in global.chain(of_namespaces) {
            // An empty one is as good as none.
            let value = value.map(|value| SecretValue::new(Zeroizing::new(value)));
            let Some(Ok(value)) = value else { continue };
            let bad_name = || Failure::Damaged("it holds a secret whose name can't be used");
            scope.as_str().parse::<Scope>().map_err(|_| bad_name())?;
            let key = Key::kept(&key).map_err(|_| bad_name())?;
            found.push((Name { scope, key }, value));
        }
        Ok(found)
    }

    fn rounds(&self) -> Option<NonZeroU32> {
        let written = self.kdf.get("iterations").and_then(Value::as_u64);
        let rounds = written.map_or(Some(ROUNDS), |rounds| u32::try_from(rounds).ok())?;
        NonZeroU32::new(rounds).filter(|rounds| (ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds.get()))
    }
}

/// A file for programs that read nothing else.
pub fn write(
    secrets: &[(Name, SecretValue)],
    master: &MasterKey,
    created_at: String,
) -> Result<String, Error> {
    let mut payload = Payload { global: BTreeMap::new(), namespaces: BTreeMap::new() };
    for (name, value) in secrets {
        let values = match &name.scope {
            Scope::Global => &mut payload.global,
            Scope::Namespace(namespace) => payload.namespaces.entry(&**namespace).or_default(),
        };
        values.insert(name.key.as_str(), Some(value.expose()));
    }
    let plain = Zeroizing::new(serde_json::to_vec(&payload).map_err(|_| Error::Crypto)?);
    let salt: [u8; 16] = seal::random()?;
    let rounds = NonZeroU32::new(ROUNDS).ok_or(Error::Crypto)?;
    let token = encrypt(&master.derive(&salt, rounds), &plain)?;
    let envelope = Envelope {
        version: 1,
        kdf: "pbkdf2-sha256".into(),
        salt: URL_SAFE.encode(salt),
        ciphertext: URL_SAFE.encode(token),
        created_at,
    };
    Ok(serde_json::to_string(&envelope).map_err(|_| Error::Crypto)? + "\n")
}

/// A Fernet token; the first half of the key signs, the second encrypts.
fn encrypt(key: &KeyBytes, plain: &[u8]) -> Result<Vec<u8>, Error> {
    let (signing, encrypting) = key.split_at(16);
    let wrong = |_| Error::Crypto;
    let cipher = UnboundCipherKey::new(&AES_128, encrypting).map_err(wrong)?;
    let cipher = PaddedBlockEncryptingKey::cbc_pkcs7(cipher).map_err(wrong)?;
    // With room for the padding there is no other copy of the plain text.
    let mut text = Vec::with_capacity(plain.len() + 16);
    text.extend_from_slice(plain);
    let context = cipher.encrypt(&mut text).map_err(wrong)?;
    let first: &[u8] = (&context).try_into().map_err(wrong)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut token = vec![VERSION];
    token.extend(now.as_secs().to_be_bytes());
    token.extend_from_slice(first);
    token.extend(text);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, signing), &token);
    token.extend_from_slice(tag.as_ref());
    Ok(token)
}

fn decrypt(key: &KeyBytes, token: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (signing, encrypting) = key.split_at(16);
    if token.len() < HEAD + TAG || token[0] != VERSION {
        return None;
    }
    let (signed, tag) = token.split_at(token.len() - TAG);
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, signing), signed, tag).ok()?;
    let first: [u8; 16] = signed[9..HEAD].try_into().ok()?;
    let cipher = UnboundCipherKey::new(&AES_128, encrypting).ok()?;
    let cipher = PaddedBlockDecryptingKey::cbc_pkcs7(cipher).ok()?;
    let mut text = signed[HEAD..].to_vec();
    let context = DecryptionContext::Iv128(FixedLength::from(first));
    let plain = cipher.decrypt(&mut text, context).ok();
    let plain = plain.map(|plain| Zeroizing::new(plain.to_vec()));
    text.zeroize();
    plain
}

/// Either alphabet, with or without padding: what wrote the file is not known.
fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()
}
