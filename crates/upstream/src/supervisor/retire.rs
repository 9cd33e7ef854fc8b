//! The end of an upstream that others have taken the place of.

use std::sync::Arc;

use tokio::time::{sleep, timeout};

use super::Upstream;
use crate::connection::Connection;
use crate::launch::Process;
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
            _ = timeout(patience, until_not(|| upstream.is_in_use())).await;
            upstream.stop().await;
        });
    }

    /// Ends a server that another one takes the place of, when the calls under way are over; does not wait for that.
    pub(super) fn relieve(&self, connection: Connection, process: Option<Process>) {
        let upstream = self.clone();
        tokio::spawn(async move {
            let patience = upstream.0.settings.call_timeout + RETIRE_GRACE;
            tokio::select! {
                _ = timeout(patience, until_not(|| connection.is_in_use())) => {}
                () = upstream.0.stop.cancelled() => {}
            }
            connection.say_farewell().await;
            connection.close("was started anew, as a secret has changed".into());
            if let Some(process) = process {
                process.end().await;
            }
        });
    }

    /// Ends the server and this upstream as soon as may be; does not wait for that.
    pub fn give_up(&self) {
        self.0.stop.cancel();
    }
}

/// Waits until no call has been under way for a moment.
async fn until_not(is_in_use: impl Fn() -> bool) {
    loop {
        sleep(RETIRE_GRACE).await;
        if !is_in_use() {
            return;
        }
    }
}
