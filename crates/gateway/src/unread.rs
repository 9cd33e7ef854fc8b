//! Folders of Python tools that offer nothing now: still to be read, or not served at all.
//!
//! Whoever asks for what may stand in an unread folder waits for it, for a while, and is told if that was not enough.
//! Nothing is taken for unknown before all that it may be in was read.

use std::time::Duration;

use catalog::error::Error as Refusal;
use catalog::view::View;
use mcp::items::Kind;
use mcp::names::{Namespace, UpstreamName};
use tokio::time::timeout;
use upstream::error::Error as Problem;
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::absent::is_under;
use crate::client::Client;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::limits::UNREAD_MAX;
use crate::members::Members;

impl Gateway {
    /// Waits for the folders that an answer depends on.
    pub(crate) async fn read_first(&self, asking: &Asking<'_>) -> Result<(), Error> {
        match asking.request.method.as_str() {
            "tools/call" => match asking.request.subject("tools/call") {
                Ok(params) => self.read(asking.client, Some(params.name())).await,
                Err(_) => Ok(()),
            },
            "tools/list" => self.read_for(asking.client).await,
            _ => Ok(()),
        }
    }

    /// Waits for the folder of the one namespace that a client has named. Who looks at all of them is told of those that
    /// come later.
    pub async fn read_for(&self, client: &Client) -> Result<(), Error> {
        if client.view().scope().namespace.is_none() {
            return Ok(());
        }
        self.read(client, None).await
    }

    /// Waits for the folders that a client may see something of; if it asks for a tool, only until that is known.
    async fn read(&self, client: &Client, tool: Option<&str>) -> Result<(), Error> {
        let mut generation = self.0.generation.subscribe();
        let Some(wait) = self.lacking(client, tool) else { return Ok(()) };
        let waiting = timeout(wait, async {
            while self.lacking(client, tool).is_some() && generation.changed().await.is_ok() {}
        });
        if waiting.await.is_ok() {
            return Ok(());
        }
        match self.still_unread(&client.view(), tool) {
            Some(upstream) => Err(Problem::Unread { upstream, waited: wait }.into()),
            None => Ok(()),
        }
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

    /// The folder that is still to be read and may have a tool: by its namespace if the name begins with one, else any.
    fn still_unread(&self, view: &View, tool: Option<&str>) -> Option<UpstreamName> {
        let members = self.members();
        let shown = members.iter().filter(|(namespace, upstream)| {
            view.scope().holds(namespace) && self.is_shown(view, namespace, upstream)
        });
        let (mut by_name, mut others) = (None, None);
        for (namespace, upstream) in shown {
            let is_named = tool.is_some_and(|tool| is_under(view, namespace, tool));
            match (upstream.is_unread(), is_named) {
                (true, true) => by_name = by_name.or(Some(Some(upstream))),
                (false, true) => by_name = by_name.or(Some(None)),
                (true, false) => others = others.or(Some(upstream)),
                (false, false) => {}
            }
        }
        by_name.unwrap_or(others).map(|upstream| upstream.name().clone())
    }

    /// The folders that a client may see and that offer nothing now, each with the reason.
    pub(crate) fn unserved_in<'a>(
        &'a self,
        members: &'a Members,
        view: &'a View,
    ) -> impl Iterator<Item = (&'a Namespace, String)> {
        members.iter().filter_map(move |(namespace, upstream)| {
            let reason = upstream.refused().or_else(|| {
                upstream.is_unread().then(|| "is still being read; list again".to_owned())
            })?;
            let is_known =
                view.scope().holds(namespace) && self.is_shown(view, namespace, upstream);
            is_known.then_some((namespace, reason))
        })
    }

    /// Why a tool is unknown that would stand in a folder which is not served.
    pub(crate) fn refused_folder_of(&self, view: &View, refusal: &Refusal) -> Option<Error> {
        let Refusal::Unknown { kind: Kind::Tool, asked, .. } = refusal else { return None };
        let members = self.members();
        if !members.has_unserved {
            return None;
        }
        let (upstream, reason) = members.iter().find_map(|(namespace, upstream)| {
            let reason = upstream.refused()?;
            let is_meant = view.scope().holds(namespace)
                && is_under(view, namespace, asked)
                && self.is_shown(view, namespace, upstream);
            is_meant.then(|| (upstream.name().clone(), reason))
        })?;
        Some(Problem::Down { upstream, reason }.into())
    }
}
