//! The meta-tools of the surfaces `dynamic` and `static`.

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

impl Gateway {
    /// Carries out a call of one of the meta-tools.
    #[expect(clippy::unused_async, reason = "an upstream may have to be started first")]
    pub(super) async fn control_dynamic(
        &self,
        _asking: &Asking<'_>,
        name: &str,
        _arguments: Option<&str>,
    ) -> Result<String, Error> {
        Err(Error::Method(name.to_owned()))
    }
}
