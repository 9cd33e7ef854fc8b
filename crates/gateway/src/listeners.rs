//! `subscriptions/listen`: the streams on which a client of the modern era hears of changes.
//!
//! Each has a filter; nothing is sent that it does not ask for, and what is sent names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use mcp::items::Kind;
use mcp::json::{self, Fault};
use mcp::modern;
use mcp::rpc::{Outcome, Raw};
use mcp::translate::on_subscription;

use crate::Gateway;
use crate::client::{Client, Outlet};
use crate::error::Error;
use crate::limits::{LISTEN_BYTES_MAX, LISTENERS_MAX, WATCHES_MAX};
use crate::outbox::Outbox;
use crate::request::Request;

const METHOD: &str = "subscriptions/listen";

/// The filter members with the kinds whose changes they ask for.
const LISTS: [(&str, Kind); 3] = [
    ("toolsListChanged", Kind::Tool),
    ("promptsListChanged", Kind::Prompt),
    ("resourcesListChanged", Kind::Resource),
];

/// What a client wants to hear of.
#[derive(Debug, Default)]
struct Filter {
    lists: Vec<(&'static str, Kind)>,
    uris: Vec<String>,
}

/// The streams of one client, by numbers of our own: two may have the same id.
#[derive(Debug, Default)]
pub struct Listeners {
    last: u64,
    open: BTreeMap<u64, Listener>,
}

#[derive(Debug)]
struct Listener {
    subscription: Raw,
    methods: Vec<&'static str>,
    outbox: Outbox,
    /// What waits for its place in the queue already; once is enough.
    waiting: BTreeSet<String>,
}

impl Listeners {
    /// A number for a stream that is about to be opened.
    fn reserve(&mut self) -> Result<u64, Error> {
        if self.open.len() >= LISTENERS_MAX {
            return Err(Error::Crowded { what: "streams of changes", limit: LISTENERS_MAX });
        }
        self.last += 1;
        Ok(self.last)
    }

    /// Opens a stream with its first message, if there is room for that; nothing comes before.
    fn open(&mut self, number: u64, first: &Bytes, listener: Listener) -> Option<Listener> {
        if !listener.outbox.try_send(first.clone()) {
            return Some(listener);
        }
        self.open.insert(number, listener);
        None
    }

    /// Tells those that asked for it that lists have changed; whether anybody has asked for one of these.
    pub fn announce(&mut self, client: &Arc<Client>, kinds: &[Kind]) -> bool {
        let mut is_told = false;
        let methods: BTreeSet<_> = kinds.iter().map(|kind| kind.changed_method()).collect();
        for (number, listener) in &mut self.open {
            for method in &methods {
                if !listener.methods.contains(method) {
                    continue;
                }
                let frame = on_subscription(method, &listener.subscription, None);
                listener.tell(client, *number, method, frame);
                is_told = true;
            }
        }
        is_told
    }

    /// Tells one of them that a resource is another now.
    pub fn tell_updated(&mut self, client: &Arc<Client>, number: u64, uri: &str) {
        let Some(listener) = self.open.get_mut(&number) else { return };
        let member = format!(r#""uri":{}"#, json::quote(uri));
        let method = "notifications/resources/updated";
        let frame = on_subscription(method, &listener.subscription, Some(&member));
        listener.tell(client, number, uri, frame);
    }
}

impl Listener {
    /// Sends now, or when there is room: a change that gets lost would never be noticed.
    fn tell(&mut self, client: &Arc<Client>, number: u64, what: &str, frame: Bytes) {
        if self.outbox.try_send(frame.clone()) || !self.waiting.insert(what.to_owned()) {
            return;
        }
        let (client, outbox, what) = (Arc::clone(client), self.outbox.clone(), what.to_owned());
        tokio::spawn(async move {
            outbox.has_room().await;
            client.with_listeners(|listeners| {
                if let Some(listener) = listeners.open.get_mut(&number) {
                    listener.waiting.remove(&what);
                }
            });
            outbox.send(frame).await;
        });
    }
}

impl Gateway {
    /// Serves one stream, until its client leaves or we do.
    pub(crate) async fn listen(
        &self,
        client: &Arc<Client>,
        request: &Request,
        outlet: &Outlet,
    ) -> Result<Outcome, Error> {
        let underway = client.begin(&request.id)?;
        let filter = Filter::parse(request.params.as_ref())
            .map_err(|fault| Error::Params { method: METHOD, fault })?;
        let view = client.view();
        let is_offered = |(_, kind): &(_, Kind)| self.offers(&view, *kind);
        let lists: Vec<_> = filter.lists.into_iter().filter(is_offered).collect();
        let mut listener = Listener {
            subscription: Raw::trusted(Bytes::copy_from_slice(request.id.as_bytes())),
            methods: lists.iter().map(|(_, kind)| kind.changed_method()).collect(),
            outbox: outlet.outbox().clone(),
            waiting: BTreeSet::new(),
        };
        let number = client.with_listeners(Listeners::reserve)?;
        let _open = Open { gateway: self, client, number };
        let uris = self.watch_for_listener(client, number, &filter.uris);
        let mut honoured: Vec<String> =
            lists.iter().map(|(member, _)| format!(r#""{member}":true"#)).collect();
        if !uris.is_empty() {
            let uris: Vec<_> = uris.iter().map(|uri| json::quote(uri)).collect();
            honoured.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        let member = format!(r#""notifications":{{{}}}"#, honoured.join(","));
        let method = "notifications/subscriptions/acknowledged";
        let first = on_subscription(method, &request.id, Some(&member));
        while let Some(unopened) =
            client.with_listeners(|listeners| listeners.open(number, &first, listener))
        {
            if outlet.outbox().is_gone() {
                return Err(Error::Cancelled);
            }
            outlet.outbox().has_room().await;
            listener = unopened;
        }
        tokio::select! {
            () = underway.cancelled() => return Err(Error::Cancelled),
            () = client.leaving.cancelled() => {}
            () = self.0.winding_down.cancelled() => {}
        }
        let id = String::from_utf8_lossy(request.id.as_bytes());
        let key = modern::SUBSCRIPTION_ID;
        let result = format!(r#"{{"resultType":"complete","_meta":{{"{key}":{id}}}}}"#);
        Ok(Outcome::Result(Raw::trusted(result)))
    }
}

impl Filter {
    fn parse(params: Option<&Raw>) -> Result<Filter, Fault> {
        let params = params.ok_or(Fault::Missing("notifications"))?;
        if params.as_bytes().len() > LISTEN_BYTES_MAX {
            let expected = "shorter: the stream keeps it for as long as it lasts";
            return Err(Fault::WrongType { member: "notifications", expected });
        }
        let [wanted] = params.members(["notifications"])?;
        let wanted = wanted.ok_or(Fault::Missing("notifications"))?;
        let [tools, prompts, resources, uris] = json::members(
            wanted.as_bytes(),
            [LISTS[0].0, LISTS[1].0, LISTS[2].0, "resourceSubscriptions"],
        )?;
        let wants = |(at, text): (usize, Option<&str>)| match text {
            None | Some("false") => Ok(None),
            Some("true") => Ok(Some(LISTS[at])),
            Some(_) => {
                let expected = "`true` or `false`";
                Err(Fault::WrongType { member: LISTS[at].0, expected })
            }
        };
        let asked = [tools, prompts, resources].into_iter().enumerate().map(wants);
        let lists: Result<Vec<_>, Fault> = asked.collect();
        let member = "resourceSubscriptions";
        let wrong = Fault::WrongType { member, expected: "a list of URIs, and not too many" };
        let uris = json::elements(uris.unwrap_or("[]")).map_err(|_| wrong.clone())?;
        if uris.len() > WATCHES_MAX {
            return Err(wrong);
        }
        let uris = uris.into_iter().map(|uri| json::string(uri).map(String::from));
        let uris: Option<Vec<String>> = uris.collect();
        Ok(Filter { lists: lists?.into_iter().flatten().collect(), uris: uris.ok_or(wrong)? })
    }
}

/// A stream that is open; forgotten when dropped.
struct Open<'a> {
    gateway: &'a Gateway,
    client: &'a Arc<Client>,
    number: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.client.with_listeners(|listeners| listeners.open.remove(&self.number));
        self.gateway.unwatch_listener(self.client, self.number);
    }
}
