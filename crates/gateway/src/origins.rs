//! Which server has named a resource to a client: a read of it goes there.
//!
//! Links in results stand as their servers wrote them, without the prefix that tells servers apart. So for each client
//! the last of them are remembered, where there are several servers to choose from.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use catalog::error::Error as Refusal;
use catalog::view::{Target, View};
use mcp::links;
use mcp::names::UpstreamName;
use mcp::rpc::Outcome;
use upstream::answer::Answer;

use crate::dispatch::Asking;
use crate::limits::{LINK_BYTES_MAX, LINKS_PER_CLIENT_MAX, LINKS_PER_RESULT_MAX};

/// Whence a client knows resources, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Origins(Mutex<VecDeque<Known>>);

#[derive(Debug)]
struct Known {
    /// Which of the client's programs was told; see `upstream::relay::Who`.
    program: u64,
    uri: Box<str>,
    upstream: UpstreamName,
}

impl Origins {
    fn note(&self, program: u64, uri: &str, upstream: &UpstreamName) {
        if uri.len() > LINK_BYTES_MAX {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.program != program || *known.uri != *uri);
        if known.len() >= LINKS_PER_CLIENT_MAX {
            known.pop_front();
        }
        known.push_back(Known { program, uri: uri.into(), upstream: upstream.clone() });
    }

    fn of(&self, program: u64, uri: &str) -> Option<UpstreamName> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|known| known.program == program && *known.uri == *uri);
        found.map(|known| known.upstream.clone())
    }
}

impl Asking<'_> {
    /// The server that has named the resource to this client, where that could be one of several.
    pub(crate) fn origin(&self, view: &View, uri: &str) -> Option<UpstreamName> {
        let program = self.outlet.relay.who.program;
        view.catalog().mixes_links().then(|| self.client.origins.of(program, uri))?
    }

    /// The resource that the client wants to read.
    pub(crate) fn resolve_read<'v>(
        &self,
        view: &'v View,
        uri: &'v str,
    ) -> Result<Target<'v>, Refusal> {
        match self.origin(view, uri) {
            Some(upstream) => view.resolve_uri_of(&upstream, uri),
            None => view.resolve_uri(uri),
        }
    }

    /// Remembers which server has named resources in an answer.
    pub(crate) fn note_links(&self, view: &View, target: &Target<'_>, answer: &Answer) {
        if !view.catalog().mixes_links() {
            return;
        }
        if let Answer::Whole(Outcome::Result(result)) = answer {
            let program = self.outlet.relay.who.program;
            for uri in links::uris(result, LINKS_PER_RESULT_MAX) {
                self.client.origins.note(program, &uri, &target.item.origin.upstream);
            }
        }
    }
}
