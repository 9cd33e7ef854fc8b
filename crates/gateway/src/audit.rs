//! Recording what clients use: who, what, when, and what became of it.
//!
//! On the way of a call only references are taken and queued. What a record says in words, and where
//! it is kept, is made out by whoever takes the records, in a thread of its own.

mod texts;
mod trail;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use catalog::view::View;
use mcp::json;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use mcp::text::shorten;
use mcp::version::{Era, Revision};
use tokio::time::Instant;
use upstream::answer::{Answer, Ending};

use crate::Gateway;
use crate::client::Client;
use crate::dispatch::Asking;
use crate::error::Error;

pub use texts::Texts;
pub use trail::{Batch, Trail};
pub use upstream::veil::Find;

/// One use of something, or the wish for it.
pub struct Record {
    began: Instant,
    pub latency: Duration,
    pub client: Arc<Client>,
    /// What the client could see then.
    pub view: Arc<View>,
    pub method: &'static str,
    pub texts: Texts,
    /// What was asked for, where the parameters are absent.
    pub asked: Option<Box<str>>,
    /// The server that had named the resource which was read, where that could be one of several.
    pub origin: Option<UpstreamName>,
    pub bytes_in: usize,
    pub revision: Option<Revision>,
    pub end: End,
}

/// What became of it.
pub enum End {
    Answered {
        is_result: bool,
        bytes: usize,
    },
    /// A result has passed in pieces.
    Streamed {
        bytes: u64,
        failure: Option<Error>,
    },
    Failed(Error),
}

impl Record {
    /// The number of the client, by which its records belong together.
    pub fn session(&self) -> u64 {
        self.client.id
    }

    /// When it was asked, by a clock that shows `now` now. Only the time that passes is measured on the way of a call.
    pub fn at(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.began.elapsed()).unwrap_or(now)
    }

    /// Lets go of what belongs to others.
    fn forgo_shared(&mut self) {
        self.asked = self.texts.forgo_shared().and_then(|params| {
            let key = if self.method == "resources/read" { "uri" } else { "name" };
            let [name] = json::members(&params, [key]).ok()?;
            Some(shorten(&json::string(name?)?).into())
        });
    }
}

/// A request that is to be recorded; one that is dropped before its end was cancelled.
pub(crate) struct Note<'a> {
    trail: &'a Arc<Trail>,
    asking: &'a Asking<'a>,
    view: &'a Arc<View>,
    method: &'static str,
    began: Instant,
    is_over: bool,
}

impl Gateway {
    /// Records from now on what clients use.
    pub fn keep_trail(&self, trail: Arc<Trail>) {
        let finds = Arc::clone(&trail);
        self.0.starter.spawner.veil().tell(Box::new(move |find| finds.add_find(find)));
        _ = self.0.trail.set(trail);
    }

    /// How often the value of a secret was found in what upstreams say, and hidden.
    pub fn hidden(&self) -> u64 {
        self.0.starter.spawner.veil().found.load(Ordering::Relaxed)
    }

    pub fn trail(&self) -> Option<&Arc<Trail>> {
        self.0.trail.get()
    }

    /// Begins a note of a request, if such are recorded.
    pub(crate) fn note<'a>(
        &'a self,
        asking: &'a Asking<'a>,
        view: &'a Arc<View>,
    ) -> Option<Note<'a>> {
        let trail = self.0.trail.get()?;
        let method = match asking.request.method.as_str() {
            "tools/call" => "tools/call",
            "resources/read" => "resources/read",
            "prompts/get" => "prompts/get",
            _ => return None,
        };
        Some(Note { trail, asking, view, method, began: Instant::now(), is_over: false })
    }
}

impl Note<'_> {
    /// Records how it ended, or has that done at the end of what is still coming.
    pub fn finish(mut self, answer: Result<Answer, Error>) -> Result<Answer, Error> {
        self.is_over = true;
        let end = match answer {
            Ok(Answer::Coming(mut coming)) => {
                let (trail, began) = (Arc::clone(self.trail), self.began);
                let mut record = self.record(End::Streamed { bytes: 0, failure: None }, None);
                coming.at_end(Box::new(move |ending: Ending<'_>, bytes| {
                    let failure = match ending {
                        Some(Ok(())) => None,
                        Some(Err(error)) => Some(Error::Upstream(error.clone())),
                        None => Some(Error::Cancelled),
                    };
                    record.latency = began.elapsed();
                    record.end = End::Streamed { bytes, failure };
                    trail.add(record);
                }));
                return Ok(Answer::Coming(coming));
            }
            Ok(Answer::Whole(ref outcome)) => {
                let (is_result, raw) = match outcome {
                    Outcome::Result(result) => (true, result),
                    Outcome::Error(error) => (false, error),
                };
                let end = End::Answered { is_result, bytes: raw.as_bytes().len() };
                self.trail.add(self.record(end, Some(raw)));
                return answer;
            }
            Err(ref error) => End::Failed(error.clone()),
        };
        self.trail.add(self.record(end, None));
        answer
    }

    fn origin(&self) -> Option<UpstreamName> {
        if self.method != "resources/read" {
            return None;
        }
        self.asking.origin(self.view, self.asking.request.subject_name()?)
    }

    fn record(&self, end: End, outcome: Option<&Raw>) -> Record {
        let Asking { client, request, era, .. } = self.asking;
        Record {
            began: self.began,
            latency: self.began.elapsed(),
            client: Arc::clone(client),
            view: Arc::clone(self.view),
            method: self.method,
            texts: Texts::of(&request.id, request.params.as_ref(), outcome),
            asked: None,
            origin: self.origin(),
            bytes_in: request.params.as_ref().map_or(0, |params| params.as_bytes().len()),
            revision: match era {
                Era::Legacy => client.introduction().map(|known| known.revision),
                Era::Modern => Some(Revision::NEWEST_MODERN),
            },
            end,
        }
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.trail.add(self.record(End::Failed(Error::Cancelled), None));
        }
    }
}

/// The name and version in what a client says of itself.
pub fn client_name(info: &str) -> Option<Box<str>> {
    let [name, version] = json::members(info.as_bytes(), ["name", "version"]).ok()?;
    let name = json::string(name?)?;
    let version = version.and_then(json::string).unwrap_or_default();
    let shown = [shorten(&name), shorten(&version)].join(" ");
    Some(shown.trim_end().into())
}
