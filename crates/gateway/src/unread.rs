//! Folders of Python tools that are still to be read: whoever asks for what may stand in one waits for it, for a while.

use std::time::Duration;

use catalog::error::Error as Refusal;
use mcp::items::Kind;
use tokio::time::timeout;
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::client::Client;
use crate::dispatch::Asking;
use crate::limits::UNREAD_MAX;

impl Gateway {
    /// Waits for the folders that an answer depends on.
    pub(crate) async fn read_first(&self, asking: &Asking<'_>) {
        match asking.request.method.as_str() {
            "tools/call" => {
                if let Ok(params) = asking.request.subject("tools/call") {
                    self.read(asking.client, Some(params.name())).await;
                }
            }
            "tools/list" => self.read_for(asking.client).await,
            _ => {}
        }
    }

    /// Waits for the folder of the one namespace that a client has named. Who looks at all of them is told of those that
    /// come later.
    pub async fn read_for(&self, client: &Client) {
        if client.view().scope().namespace.is_some() {
            self.read(client, None).await;
        }
    }

    /// Waits for the folders that a client may see something of; if it asks for a tool, only until that is known.
    async fn read(&self, client: &Client, tool: Option<&str>) {
        let mut generation = self.0.generation.subscribe();
        let Some(wait) = self.lacking(client, tool) else { return };
        _ = timeout(wait, async {
            while self.lacking(client, tool).is_some() && generation.changed().await.is_ok() {}
        })
        .await;
    }

    /// How long to wait for folders that are not read, if a client lacks any.
    fn lacking(&self, client: &Client, tool: Option<&str>) -> Option<Duration> {
        if !self.0.members.load().has_unread {
            return None;
        }
        let view = client.view();
        let is_unknown =
            |tool| matches!(view.resolve(Kind::Tool, tool), Err(Refusal::Unknown { .. }));
        if !tool.is_none_or(is_unknown) {
            return None;
        }
        let unread = self.upstreams_in(&view).filter(Upstream::is_unread);
        unread.map(|upstream| upstream.settings().call_timeout.min(UNREAD_MAX)).max()
    }
}
