//! The end of an upstream that others have taken the place of.

use std::sync::Arc;

use tokio::time::{sleep, timeout};

use super::Upstream;
use crate::limits::RETIRE_GRACE;

impl Upstream {
    /// Whether two handles are of the same upstream.
    pub fn is(&self, other: &Upstream) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Ends the server and this upstream when the calls under way are over; does not wait for that. Nobody begins
    /// a call any more, but for those who have just looked it up.
    pub fn retire(&self) {
        let upstream = self.clone();
        tokio::spawn(async move {
            let patience = upstream.0.settings.call_timeout + RETIRE_GRACE;
            _ = timeout(patience, upstream.unused()).await;
            upstream.stop().await;
        });
    }

    /// Waits until no call has been under way for a moment.
    async fn unused(&self) {
        loop {
            sleep(RETIRE_GRACE).await;
            if !self.is_in_use() {
                return;
            }
        }
    }
}
