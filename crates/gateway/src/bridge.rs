//! A gateway that is a bridge: behind it is one server, which knows better than the catalog.
//!
//! What it offers may have changed a moment ago, or it is not there; its own words say more than ours.

use std::sync::atomic::Ordering;

use catalog::error::Error as Refusal;
use catalog::view::View;
use mcp::items::Kind;
use mcp::params::Params;
use upstream::answer::Answer;
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

impl Gateway {
    /// Passes on from now on what the catalog does not know. There must be one upstream, whose names
    /// are shown as they are.
    pub fn become_bridge(&self) {
        self.0.is_bridge.store(true, Ordering::Relaxed);
    }

    /// What a request is about, if only the server behind a bridge can say what it is.
    pub(crate) fn beyond(&self, asking: &Asking<'_>, view: &View) -> Option<(Upstream, Params)> {
        if !self.0.is_bridge.load(Ordering::Relaxed) {
            return None;
        }
        let request = asking.request;
        let subject = |method: &'static str| request.subject(method).ok().cloned();
        let (kind, params) = match request.method.as_str() {
            "tools/call" => (Kind::Tool, subject("tools/call")?),
            "resources/read" => (Kind::Resource, subject("resources/read")?),
            "prompts/get" => (Kind::Prompt, subject("prompts/get")?),
            "completion/complete" => Params::parse_reference(request.params.as_ref()).ok()?,
            _ => return None,
        };
        let found = match kind {
            Kind::Resource => view.resolve_uri(params.name()),
            _ => view.resolve(kind, params.name()),
        };
        let (_, upstream) = self.upstreams().next()?;
        match found {
            Err(Refusal::Unknown { .. }) => Some((upstream, params)),
            _ => None,
        }
    }

    pub(crate) async fn pass_unknown(
        &self,
        asking: &Asking<'_>,
        upstream: &Upstream,
        params: &Params,
    ) -> Result<Answer, Error> {
        let method = asking.request.method.as_str();
        self.forward(asking, method, params, upstream, params.name(), &[]).await
    }
}
