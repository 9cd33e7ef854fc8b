//! The vault: encrypted values, and the proof that nobody has changed them.
//!
//! A random data key seals every value together with its place: scope, key and the generation in which it was
//! set. The data key itself is sealed under a key that is derived from the master key, so that another master
//! key means another wrapping and nothing else. A checksum under the data key binds all entries to each other.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use crate::envelope::{self, ALGORITHM, Box64, Envelope, Kdf, VERSION};
use crate::error::Error;
use crate::fernet;
use crate::limits::{ROUNDS, ROUNDS_MAX};
use crate::master::MasterKey;
use crate::names::Name;
use crate::seal::{self, KeyBytes, Sealed};
use crate::value::SecretValue;

pub struct Vault {
    data_key: KeyBytes,
    /// How the data key is kept; not yet said in a vault that is new or was of ToolDock.
    wrapping: Option<Wrapping>,
    generation: u64,
    entries: BTreeMap<Name, Entry>,
    created_at: String,
}

struct Wrapping {
    salt: Vec<u8>,
    rounds: NonZeroU32,
    wrapped: Sealed,
}

struct Entry {
    generation: u64,
    sealed: Sealed,
}

impl Vault {
    /// An empty one that follows on a generation that was written before, if any.
    pub(crate) fn new(created_at: String, generation: u64) -> Result<Vault, Error> {
        Ok(Vault {
            data_key: seal::new_key()?,
            wrapping: None,
            generation,
            entries: BTreeMap::new(),
            created_at,
        })
    }

    /// Opens what was read from `path`. An empty file is no empty vault. K03
    pub(crate) fn open(bytes: &[u8], master: &MasterKey, path: &Path) -> Result<Vault, Error> {
        let damaged = |problem| Error::Damaged { path: path.to_owned(), problem };
        let wrong_key =
            || Error::WrongKey { path: path.to_owned(), origin: master.origin().to_owned() };
        if bytes.is_empty() {
            return Err(damaged("it is empty"));
        }
        if let Some(envelope) = Envelope::parse(bytes) {
            return Vault::open_envelope(envelope, master, path);
        }
        match version(bytes) {
            Some(1) => {
                let envelope = fernet::Envelope::parse(bytes);
                let envelope = envelope.ok_or_else(|| damaged("it is cut off or changed"))?;
                let secrets = envelope.open(master).map_err(|failure| match failure {
                    fernet::Failure::WrongKey => wrong_key(),
                    fernet::Failure::Damaged(problem) => damaged(problem),
                })?;
                let mut vault = Vault::new(envelope.created_at, 0)?;
                for (name, value) in secrets {
                    vault.set(name, &value)?;
                }
                Ok(vault)
            }
            Some(version) if version > VERSION => {
                Err(Error::Version { path: path.to_owned(), version })
            }
            _ => Err(damaged("it is cut off or changed")),
        }
    }

    fn open_envelope(
        mut envelope: Envelope,
        master: &MasterKey,
        path: &Path,
    ) -> Result<Vault, Error> {
        let damaged = |problem| Error::Damaged { path: path.to_owned(), problem };
        let broken = || damaged("it is cut off or changed");
        if envelope.version != VERSION {
            return Err(Error::Version { path: path.to_owned(), version: envelope.version });
        }
        if envelope.kdf.alg != ALGORITHM {
            return Err(damaged("it asks for another way to derive keys"));
        }
        let rounds = NonZeroU32::new(envelope.kdf.iterations);
        let rounds = rounds.filter(|rounds| (ROUNDS..=ROUNDS_MAX).contains(&rounds.get()));
        let rounds = rounds.ok_or_else(|| damaged("it asks for too few or too many rounds"))?;
        let salt = envelope::decode(&envelope.salt).ok_or_else(broken)?;
        let wrapped = envelope.wrapped_key.sealed().ok_or_else(broken)?;
        let data_key = unwrap(master, &salt, rounds, &wrapped).ok_or_else(|| Error::WrongKey {
            path: path.to_owned(),
            origin: master.origin().to_owned(),
        })?;
        let checksum = envelope::decode(&envelope.mac).ok_or_else(broken)?;
        let text = envelope.sealed_text();
        if !seal::is_checksum(&data_key, text.as_bytes(), &checksum) {
            return Err(Error::Altered { path: path.to_owned() });
        }
        let mut entries = BTreeMap::new();
        for (place, entry) in &envelope.entries {
            let name = Name::of_path(place).ok_or_else(broken)?;
            let sealed = entry.sealed().ok_or_else(broken)?;
            entries.insert(name, Entry { generation: entry.generation, sealed });
        }
        Ok(Vault {
            data_key,
            wrapping: Some(Wrapping { salt, rounds, wrapped }),
            generation: envelope.generation,
            entries,
            created_at: envelope.created_at,
        })
    }

    /// How often it was written.
    pub(crate) fn created_at(&self) -> &str {
        &self.created_at
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.entries.keys()
    }

    pub fn holds(&self, name: &Name) -> bool {
        self.entries.contains_key(name)
    }

    /// The generation in which a value was set: another one means another value.
    pub fn set_in(&self, name: &Name) -> Option<u64> {
        self.entries.get(name).map(|entry| entry.generation)
    }

    /// A value; `None` if there is none.
    pub fn value(&self, name: &Name) -> Result<Option<SecretValue>, Error> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        let plain = seal::open(&self.data_key, &place(name, entry.generation), &entry.sealed);
        // The checksum was right: whoever has the key has made it so.
        let value = plain.and_then(|plain| SecretValue::from_bytes(&plain).ok());
        value.map(Some).ok_or(Error::Crypto)
    }

    pub fn set(&mut self, name: Name, value: &SecretValue) -> Result<(), Error> {
        let generation = self.generation + 1;
        let associated = place(&name, generation);
        let sealed = seal::seal(&self.data_key, &associated, value.expose().as_bytes())?;
        self.entries.insert(name, Entry { generation, sealed });
        Ok(())
    }

    /// Whether there was one.
    pub fn remove(&mut self, name: &Name) -> bool {
        self.entries.remove(name).is_some()
    }

    /// Takes another data key, and encrypts every value anew.
    pub fn renew(&mut self) -> Result<(), Error> {
        let mut renewed = Vault::new(self.created_at.clone(), self.generation)?;
        for name in self.entries.keys() {
            if let Some(value) = self.value(name)? {
                renewed.set(name.clone(), &value)?;
            }
        }
        *self = renewed;
        Ok(())
    }

    /// Forgets how the data key is kept: the next writing says it anew.
    pub(crate) fn unwrapped(&mut self) {
        self.wrapping = None;
    }

    /// The next generation of the file.
    pub(crate) fn write(&mut self, master: &MasterKey) -> Result<String, Error> {
        self.generation += 1;
        if self.wrapping.is_none() {
            self.wrapping = Some(wrap(master, &self.data_key)?);
        }
        let Some(wrapping) = &self.wrapping else { return Err(Error::Crypto) };
        let entry = |(name, entry): (&Name, &Entry)| {
            let Box64 { nonce, ciphertext } = Box64::of(&entry.sealed);
            let generation = entry.generation;
            (name.path(), envelope::Entry { generation, nonce, ciphertext })
        };
        let mut envelope = Envelope {
            version: VERSION,
            kdf: Kdf { alg: ALGORITHM.into(), iterations: wrapping.rounds.get() },
            salt: envelope::encode(&wrapping.salt),
            wrapped_key: Box64::of(&wrapping.wrapped),
            generation: self.generation,
            entries: self.entries.iter().map(entry).collect(),
            created_at: self.created_at.clone(),
            mac: String::new(),
        };
        let checksum = seal::checksum(&self.data_key, envelope.text().as_bytes());
        envelope.mac = envelope::encode(&checksum);
        Ok(envelope.text())
    }
}

/// The version that a file claims, if it is JSON at all.
fn version(bytes: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u64,
    }
    serde_json::from_slice(bytes).ok().map(|Versioned { version }| version)
}

/// What a value is sealed together with. No name holds a NUL, so no two places are the same bytes.
fn place(name: &Name, generation: u64) -> Vec<u8> {
    let (scope, key) = (name.scope.as_str(), &name.key);
    format!("toolman secret {VERSION}\0{scope}\0{key}\0{generation}").into_bytes()
}

fn wrapping_place(salt: &[u8], rounds: NonZeroU32) -> Vec<u8> {
    let salt = envelope::encode(salt);
    format!("toolman data key {VERSION}\0{ALGORITHM}\0{rounds}\0{salt}").into_bytes()
}

fn wrap(master: &MasterKey, data_key: &KeyBytes) -> Result<Wrapping, Error> {
    let salt = seal::random::<16>()?.to_vec();
    let rounds = NonZeroU32::new(ROUNDS).ok_or(Error::Crypto)?;
    let key = master.derive(&salt, rounds);
    let wrapped = seal::seal(&key, &wrapping_place(&salt, rounds), &data_key[..])?;
    Ok(Wrapping { salt, rounds, wrapped })
}

fn unwrap(
    master: &MasterKey,
    salt: &[u8],
    rounds: NonZeroU32,
    wrapped: &Sealed,
) -> Option<KeyBytes> {
    let key = master.derive(salt, rounds);
    let plain = seal::open(&key, &wrapping_place(salt, rounds), wrapped)?;
    let mut data_key = KeyBytes::default();
    if plain.len() != data_key.len() {
        return None;
    }
    data_key.copy_from_slice(&plain);
    Some(data_key)
}
