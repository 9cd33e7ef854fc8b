//! The control tools of the surface `toolset`.

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

impl Gateway {
    /// Carries out a call of one of the control tools.
    #[expect(clippy::unused_async, reason = "toolsets are saved elsewhere")]
    pub(super) async fn control_toolsets(
        &self,
        _asking: &Asking<'_>,
        name: &str,
        _arguments: Option<&str>,
    ) -> Result<String, Error> {
        Err(Error::Method(name.to_owned()))
    }
}
