//! Results of read-only tools, remembered for a while where the operator wants it. TF-10

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use catalog::snapshot::Item;
use foldhash::{HashMap, HashMapExt as _};
use mcp::json;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use mcp::version::Revision;
use tokio::time::Instant;
use upstream::answer::Answer;
use upstream::supervisor::Upstream;

use crate::limits::MEMORY_BYTES_MAX;

/// What was asked: equal questions have equal answers for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    upstream: UpstreamName,
    tool: Box<str>,
    arguments: Bytes,
    revision: Revision,
}

pub struct Memory {
    lasts: Option<Duration>,
    kept: Mutex<Kept>,
}

struct Kept {
    results: HashMap<Question, (Instant, Raw)>,
    /// The oldest first; one that was remembered anew since is here twice.
    order: VecDeque<(Instant, Question)>,
    bytes: usize,
}

impl Memory {
    pub fn new(lasts: Option<Duration>) -> Memory {
        let kept = Kept { results: HashMap::new(), order: VecDeque::new(), bytes: 0 };
        Memory { lasts, kept: Mutex::new(kept) }
    }

    /// The question of a call, if its answer may be remembered: the tool says that it changes
    /// nothing, and its server does not tell clients apart.
    pub(crate) fn question(
        &self,
        tool: &Item,
        upstream: &Upstream,
        arguments: &str,
        revision: Revision,
    ) -> Option<Question> {
        self.lasts?;
        if !upstream.is_shared() || !is_read_only(tool) {
            return None;
        }
        Some(Question {
            upstream: tool.origin.upstream.clone(),
            tool: tool.origin.name.clone(),
            arguments: Bytes::copy_from_slice(arguments.as_bytes()),
            revision,
        })
    }

    pub(crate) fn recall(&self, question: &Question) -> Option<Answer> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, result) = kept.results.get(question)?;
        let is_fresh = since.elapsed() < self.lasts?;
        is_fresh.then(|| Answer::Whole(Outcome::Result(result.clone())))
    }

    /// Remembers an answer that is a success.
    pub(crate) fn note(&self, question: Question, answer: &Answer) {
        let Answer::Whole(Outcome::Result(result)) = answer else { return };
        let size = result.as_bytes().len() + question.arguments.len();
        let failed = matches!(result.members(["isError"]), Ok([Some("true")]));
        let is_open =
            matches!(result.members(["resultType"]), Ok([Some(kind)]) if kind != r#""complete""#);
        if failed || is_open || size > MEMORY_BYTES_MAX / 8 {
            return;
        }
        // A copy: a part would keep the whole frame.
        let result = Raw::trusted(Bytes::copy_from_slice(result.as_bytes()));
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(&question);
        kept.bytes += size;
        kept.order.push_back((now, question.clone()));
        kept.results.insert(question, (now, result));
        while let Some((since, _)) = kept.order.front() {
            let is_old = self.lasts.is_some_and(|lasts| since.elapsed() >= lasts);
            if !is_old && kept.bytes <= MEMORY_BYTES_MAX {
                break;
            }
            if let Some((since, oldest)) = kept.order.pop_front()
                && kept.results.get(&oldest).is_some_and(|(newest, _)| *newest == since)
            {
                kept.forget(&oldest);
            }
        }
    }
}

impl Kept {
    fn forget(&mut self, question: &Question) {
        if let Some((_, result)) = self.results.remove(question) {
            self.bytes -= result.as_bytes().len() + question.arguments.len();
        }
    }
}

fn is_read_only(tool: &Item) -> bool {
    let Ok([Some(annotations)]) = json::members(&tool.definition, ["annotations"]) else {
        return false;
    };
    matches!(json::members(annotations.as_bytes(), ["readOnlyHint"]), Ok([Some("true")]))
}
