//! The cryptography of the vault: one key derivation, one cipher, one checksum.

use std::num::NonZeroU32;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::{hmac, pbkdf2, rand};
use zeroize::Zeroizing;

use crate::error::Error;

/// 256 bits that are wiped when dropped.
pub type KeyBytes = Zeroizing<[u8; 32]>;

/// What was encrypted: only the key and the same associated data open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    pub nonce: [u8; NONCE_LEN],
    /// With the tag at its end.
    pub ciphertext: Vec<u8>,
}

/// PBKDF2-HMAC-SHA256.
pub fn derive(master: &[u8], salt: &[u8], rounds: NonZeroU32) -> KeyBytes {
    let mut key = KeyBytes::default();
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, master, &mut key[..]);
    key
}

pub fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| Error::Crypto)?;
    Ok(bytes)
}

pub fn new_key() -> Result<KeyBytes, Error> {
    let mut key = KeyBytes::default();
    rand::fill(&mut key[..]).map_err(|_| Error::Crypto)?;
    Ok(key)
}

/// AES-256-GCM with a random nonce.
pub fn seal(key: &KeyBytes, associated: &[u8], plain: &[u8]) -> Result<Sealed, Error> {
    let cipher = RandomizedNonceKey::new(&AES_256_GCM, &key[..]).map_err(|_| Error::Crypto)?;
    // Encrypted in place: with room for the tag there is no other copy of the plain text.
    let mut ciphertext = Vec::with_capacity(plain.len() + AES_256_GCM.tag_len());
    ciphertext.extend_from_slice(plain);
    let nonce = cipher.seal_in_place_append_tag(Aad::from(associated), &mut ciphertext);
    let nonce = *nonce.map_err(|_| Error::Crypto)?.as_ref();
    Ok(Sealed { nonce, ciphertext })
}

/// `None` if the key or the associated data are others, or anything was changed.
pub fn open(key: &KeyBytes, associated: &[u8], sealed: &Sealed) -> Option<Zeroizing<Vec<u8>>> {
    let cipher = RandomizedNonceKey::new(&AES_256_GCM, &key[..]).ok()?;
    let mut plain = Zeroizing::new(sealed.ciphertext.clone());
    let nonce = Nonce::assume_unique_for_key(sealed.nonce);
    let length = cipher.open_in_place(nonce, Aad::from(associated), &mut plain).ok()?.len();
    plain.truncate(length);
    Some(plain)
}

/// A checksum that only who has the key can make: HMAC-SHA256 under a key of its own.
pub fn checksum(key: &KeyBytes, text: &[u8]) -> Vec<u8> {
    hmac::sign(&checksum_key(key), text).as_ref().to_vec()
}

/// Whether it is that of the text; takes equally long for every wrong one.
pub fn is_checksum(key: &KeyBytes, text: &[u8], checksum: &[u8]) -> bool {
    hmac::verify(&checksum_key(key), text, checksum).is_ok()
}

fn checksum_key(key: &KeyBytes) -> hmac::Key {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key[..]);
    let own = hmac::sign(&key, b"toolman secrets: checksum of the vault");
    hmac::Key::new(hmac::HMAC_SHA256, own.as_ref())
}
