//! Who wants to hear when a resource changes.
//!
//! An upstream is told once of a resource, however many clients watch it, and told again when
//! nobody does.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

use bytes::Bytes;
use mcp::json;
use mcp::names::UpstreamName;
use mcp::rpc::{self, Raw};
use upstream::relay::Upcall;

use crate::Gateway;
use crate::client::Client;
use crate::error::Error;
use crate::limits::WATCHES_MAX;

/// One client's wish.
#[derive(Debug)]
pub struct Watch {
    client: u64,
    /// The stream that asked for it; none in a session.
    listener: Option<u64>,
    /// The URI as the client wrote it.
    asked: String,
    upstream: UpstreamName,
    /// The URI at the upstream.
    uri: String,
}

impl Gateway {
    /// Watches for a session.
    pub(crate) fn watch_in_session(&self, client: &Arc<Client>, uri: &str) -> Result<(), Error> {
        self.watch(client, None, uri)
    }

    /// Watches for a stream; those of the URIs that can be watched.
    pub(crate) fn watch_for_listener(
        &self,
        client: &Arc<Client>,
        listener: u64,
        uris: &[String],
    ) -> Vec<String> {
        let can_be = |uri: &&String| self.watch(client, Some(listener), uri).is_ok();
        uris.iter().filter(can_be).cloned().collect()
    }

    fn watch(&self, client: &Client, listener: Option<u64>, asked: &str) -> Result<(), Error> {
        let view = client.view();
        let target = view.resolve_uri(asked)?;
        self.check_expanded(&view, asked, &target)?;
        let upstream = target.item.origin.upstream.clone();
        let known = self.upstream(&upstream).and_then(|known| known.status().introduction);
        if !known.is_some_and(|known| known.declares_part("resources", "subscribe")) {
            return Err(Error::Unwatchable { upstream });
        }
        let uri = target.upstream_name.to_owned();
        let mut watches = self.watches();
        let of_it = |watch: &&Watch| watch.client == client.id && watch.listener == listener;
        let own = watches.iter().filter(of_it);
        if own.clone().any(|watch| watch.asked == asked) {
            return Ok(());
        }
        if own.count() >= WATCHES_MAX {
            return Err(Error::Crowded { what: "watched resources", limit: WATCHES_MAX });
        }
        let asked = asked.to_owned();
        watches.push(Watch { client: client.id, listener, asked, upstream: upstream.clone(), uri });
        // One that left meanwhile would be told of for ever.
        if client.is_closed() {
            watches.pop();
            return Err(Error::Cancelled);
        }
        self.tell_watched(&watches, &upstream);
        Ok(())
    }

    pub(crate) fn unwatch_in_session(&self, client: &Client, asked: &str) {
        self.unwatch(|watch| {
            watch.client == client.id && watch.listener.is_none() && watch.asked == asked
        });
    }

    pub(crate) fn unwatch_listener(&self, client: &Client, listener: u64) {
        self.unwatch(|watch| watch.client == client.id && watch.listener == Some(listener));
    }

    /// Forgets all wishes of a client that is gone.
    pub(crate) fn unwatch_all(&self, client: &Client) {
        self.unwatch(|watch| watch.client == client.id);
    }

    fn unwatch(&self, is_over: impl Fn(&Watch) -> bool) {
        let mut watches = self.watches();
        let mut touched = BTreeSet::new();
        watches.retain(|watch| {
            let is_over = is_over(watch);
            if is_over {
                touched.insert(watch.upstream.clone());
            }
            !is_over
        });
        for upstream in touched {
            self.tell_watched(&watches, &upstream);
        }
    }

    /// Under the lock, so that the last word is about the last change.
    fn tell_watched(&self, watches: &[Watch], upstream: &UpstreamName) {
        let of_it = watches.iter().filter(|watch| watch.upstream == *upstream);
        if let Some(upstream) = self.upstream(upstream) {
            upstream.watch(of_it.map(|watch| watch.uri.clone()).collect());
        }
    }

    /// Passes on that a resource has changed to those who asked for it.
    pub(crate) fn resource_updated(&self, upstream: &UpstreamName, params: &Raw) {
        let Ok([Some(text)]) = params.members(["uri"]) else { return };
        let Some(uri) = json::string(text) else { return };
        let mut heard = Vec::new();
        for watch in self.watches().iter().filter(|watch| watch.upstream == *upstream) {
            // What lies below a watched resource may be named instead of it.
            if let Some(below) = uri.strip_prefix(watch.uri.as_str())
                && (below.is_empty()
                    || below.starts_with(['/', '?', '#'])
                    || watch.uri.ends_with('/'))
            {
                let (asked, uri) = (watch.asked.clone(), format!("{}{below}", watch.asked));
                heard.push((watch.client, watch.listener, asked, uri));
            }
        }
        for (client, listener, asked, uri) in heard {
            let client = self.clients().connected.get(&client).cloned();
            let Some(client) = client else { continue };
            // It may have lost the right to hear of it since.
            let view = client.view();
            let target = view.resolve_uri(&asked);
            if !target.is_ok_and(|target| self.check_expanded(&view, &asked, &target).is_ok()) {
                continue;
            }
            match listener {
                Some(number) => client.with_listeners(|listeners| {
                    listeners.tell_updated(&client, number, &uri);
                }),
                None => client.send(Upcall::Notice(renamed(params, text, &uri))),
            }
        }
    }

    fn watches(&self) -> MutexGuard<'_, Vec<Watch>> {
        self.0.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notification with the client's name for the resource, otherwise byte for byte.
fn renamed(params: &Raw, uri: &str, shown: &str) -> Bytes {
    let shown = json::quote(shown);
    let span = json::span(params.as_bytes(), uri);
    let params = json::splice(params.as_bytes(), &[(span, shown.as_bytes())]);
    rpc::notification("notifications/resources/updated", Some(&params))
}
