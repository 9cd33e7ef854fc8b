//! The conversation with a Python worker, in its own words.

use bytes::Bytes;
use mcp::names::UpstreamName;
use mcp::rpc::Outcome;
use tokio::io::{AsyncRead, AsyncWrite};

use super::incoming::{Source, refusal};
use super::{Connection, Listener, Loss, Wire};
use crate::error::Error;
use crate::python::protocol::{self, Failure, Said};

impl Connection {
    /// Starts a conversation with a worker.
    pub fn open_worker(
        upstream: UpstreamName,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        listener: Listener,
    ) -> Connection {
        Connection::open_over(Wire::Worker, upstream, reader, writer, listener)
    }

    /// Waits until the worker has loaded its tools.
    pub async fn greeted(&self) {
        self.0.greeted.cancelled().await;
    }

    /// What the worker has found wrong with its files.
    pub fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    /// The files that the worker could not import, and what a call of their tools fails with.
    pub fn broken(&self) -> Vec<(String, Failure)> {
        self.state().broken.clone()
    }

    /// The tools whose schema alone tells what they take.
    pub fn exact(&self) -> Vec<String> {
        self.state().exact.clone()
    }

    /// What the worker has besides tools: `resources`, `prompts`.
    pub fn offers(&self) -> Vec<String> {
        self.state().offers.clone()
    }

    pub(super) fn receive_from_worker(&self, frame: &Bytes) {
        match protocol::parse(frame) {
            Ok(Said::Ready { faults, mut broken, exact, offers }) => {
                let veil = &self.0.listener.veil;
                let hidden = |fault| veil.over_words(fault, self.saying("ready"));
                let faults = faults.into_iter().map(hidden).collect();
                for (_, failure) in &mut broken {
                    failure.message = hidden(std::mem::take(&mut failure.message));
                }
                let mut state = self.state();
                (state.faults, state.broken) = (faults, broken);
                (state.exact, state.offers) = (exact, offers);
                drop(state);
                self.0.greeted.cancel();
            }
            Ok(Said::Progress(params)) => {
                let params = self.veiled(params, "notifications/progress");
                self.relay_progress(params.as_ref());
            }
            Ok(Said::Log { id, params }) => {
                let method = "notifications/message";
                if let Some(params) = self.veiled(params, method) {
                    let notice = protocol::log_notice(&params);
                    self.receive_notice(method, Some(params), &notice, Source::Answer(id));
                }
            }
            Ok(Said::Ask { id, ask, method, params }) => {
                let params = params.map(|params| self.veiled(params, &method));
                if let Some(None) = params {
                    // It holds the value of a secret that can't be cut out.
                    return self.respond(&ask, &refusal("the question is withheld"));
                }
                self.receive_ask(ask, method, params.flatten(), Source::Answer(id));
            }
            Ok(Said::Unask(ask)) => {
                if let Some(ask) = self.close_ask(&ask) {
                    ask.waiter.abort();
                }
            }
            Ok(Said::Answer { id, answer }) => {
                let upstream = self.0.upstream.clone();
                let answer = answer.map(Outcome::Result);
                let answer = answer.map_err(|failure| Error::Tool { upstream, failure });
                // What is not asked for is the answer to the request to end.
                self.settle(id, answer);
            }
            Ok(Said::Stuck { tool }) => {
                self.lose(Loss::Gone(format!("had a call of `{tool}` that did not end")));
            }
            Err(problem) => {
                self.complain(&problem, frame);
                // Nobody can tell whose answer it was.
                self.lose(Loss::Gone(format!("said what can't be understood: {problem}")));
            }
        }
    }
}
