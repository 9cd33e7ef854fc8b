//! A secret value. It can't be shown, copied or written by accident, and is wiped when dropped.

use zeroize::Zeroizing;

use crate::error::ValueError;
use crate::limits::VALUE_BYTES_MAX;

/// Deliberately without `Debug`, `Display`, `Serialize` and `Clone`.
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    pub fn new(text: Zeroizing<String>) -> Result<SecretValue, ValueError> {
        if text.is_empty() {
            return Err(ValueError::Empty);
        }
        if text.len() > VALUE_BYTES_MAX {
            return Err(ValueError::TooLong);
        }
        if text.contains('\0') {
            return Err(ValueError::Nul);
        }
        Ok(SecretValue(text))
    }

    /// The same from bytes, which stay with whoever wipes them.
    pub fn from_bytes(bytes: &[u8]) -> Result<SecretValue, ValueError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ValueError::NotText)?;
        SecretValue::new(Zeroizing::new(text.to_owned()))
    }

    /// The value itself: for whoever hands it to a server, and for nobody else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}
