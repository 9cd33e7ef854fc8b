//! What a server answered: all of it, or a large result that is still coming.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mcp::json;
use mcp::names::UpstreamName;
use mcp::pieces::Passing;
use mcp::rpc::{Outcome, Raw};
use secrets::names::Name;
use secrets::redact::{Piece, Stream};
use tokio::time::{Instant, timeout_at};

use crate::connection::number;
use crate::error::Error;
use crate::limits::{CALL_TOTAL_MAX, LINE_BYTES_MAX, TIMEOUT_SETTING};
use crate::sse::Remainder;
use crate::web::{Body, Failure};

/// The answer to a call.
pub enum Answer {
    Whole(Outcome),
    Coming(Box<Coming>),
}

impl Answer {
    /// All of it, once it is here; a bounded amount.
    pub async fn whole(self) -> Result<Outcome, Error> {
        let mut coming = match self {
            Answer::Whole(outcome) => return Ok(outcome),
            Answer::Coming(coming) => coming,
        };
        let mut whole = BytesMut::new();
        while let Some(piece) = coming.next().await? {
            if whole.len() + piece.len() > LINE_BYTES_MAX {
                let upstream = coming.upstream.clone();
                return Err(Error::TooLarge { upstream, limit: LINE_BYTES_MAX });
            }
            whole.extend_from_slice(&piece);
        }
        // Only its nesting was followed so far.
        if let Err(fault) = json::members(&whole, []) {
            return Err(coming.garbled(&fault.to_string()));
        }
        Ok(Outcome::Result(Raw::trusted(whole.freeze())))
    }
}

/// How a result that came in pieces has ended; `None` where nobody wanted the rest.
pub type Ending<'a> = Option<Result<(), &'a Error>>;

/// What is to be done at the end of a result, however it comes; it is told how much has come.
pub type Farewell = Box<dyn FnOnce(Ending<'_>, u64) + Send>;

/// Is told whose values were found in a result that comes.
pub(crate) type Report = Box<dyn Fn(Vec<Name>) + Send>;

/// What the rest of an answer comes over.
pub(crate) struct Flow {
    pub body: Body,
    /// Where the body is a stream: the event of it that is the answer.
    pub event: Option<Remainder>,
}

impl Flow {
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(event) = &mut self.event else { return self.body.next().await };
        if event.is_over() {
            return Ok(None);
        }
        let chunk = self.body.next().await?;
        let data = chunk.map(|chunk| event.next(&chunk));
        if event.is_over() {
            // What else a stream says after its answer is for nobody.
            std::mem::replace(&mut self.body, Body::over()).leave();
        }
        Ok(data)
    }
}

/// A result that comes in pieces, as the server wrote it but for the values of secrets.
pub struct Coming {
    upstream: UpstreamName,
    /// The id under which it must come.
    id: u64,
    first: Option<Bytes>,
    /// `None` once the end has come.
    passing: Option<Passing>,
    flow: Flow,
    /// How long one piece may take.
    patience: Duration,
    /// When it must be over, however it comes.
    latest: Instant,
    passed: u64,
    farewell: Option<Farewell>,
    /// What hides values in it, where any are known.
    screen: Option<Screen>,
}

struct Screen {
    stream: Stream,
    report: Report,
    /// Whether all of it has passed.
    is_over: bool,
}

impl Coming {
    /// Takes what has come of a response, if the rest can be passed on as it comes; gives that
    /// back otherwise.
    pub(crate) fn begin(
        upstream: &UpstreamName,
        id: u64,
        start: &Bytes,
        flow: Flow,
        patience: Duration,
    ) -> Result<Coming, Flow> {
        let Some((passing, first)) = Passing::begin(start) else { return Err(flow) };
        if passing.early_id().is_some_and(|theirs| number(&theirs) != Some(id)) {
            return Err(flow);
        }
        let (first, passing, upstream) = (Some(first), Some(passing), upstream.clone());
        let latest = Instant::now() + CALL_TOTAL_MAX;
        let (passed, farewell, screen) = (0, None, None);
        Ok(Coming {
            upstream,
            id,
            first,
            passing,
            flow,
            patience,
            latest,
            passed,
            farewell,
            screen,
        })
    }

    /// Has values hidden in it.
    pub(crate) fn screen(&mut self, stream: Stream, report: Report) {
        self.screen = Some(Screen { stream, report, is_over: false });
    }

    /// Has something done when it is over.
    pub fn at_end(&mut self, farewell: Farewell) {
        self.farewell = Some(farewell);
    }

    /// The next piece of the result; `None` after the last, once the response is known to be one.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let next = match self.screen {
            None => self.next_piece().await,
            Some(_) => Box::pin(self.next_screened()).await,
        };
        match &next {
            Ok(Some(piece)) => self.passed += piece.len() as u64,
            Ok(None) => self.say_farewell(Some(Ok(()))),
            Err(error) => self.say_farewell(Some(Err(error))),
        }
        next
    }

    fn say_farewell(&mut self, ending: Ending<'_>) {
        if let Some(farewell) = self.farewell.take() {
            farewell(ending, self.passed);
        }
    }

    /// The next piece that is known to hold no value.
    async fn next_screened(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let piece = self.next_piece().await?;
            let Some(screen) = &mut self.screen else { return Ok(piece) };
            if screen.is_over {
                return Ok(None);
            }
            let screened = match &piece {
                Some(piece) => screen.stream.push(piece).map(|what| match what {
                    Piece::AsIs(length) => (piece.slice(..length), Vec::new()),
                    Piece::Instead { text, names } => (Bytes::from(text), names),
                }),
                None => {
                    screen.is_over = true;
                    screen.stream.finish().map(|(text, names)| (text.into(), names))
                }
            };
            let (text, names) = screened.map_err(|found| {
                (screen.report)(found.names);
                Error::Withheld { upstream: self.upstream.clone() }
            })?;
            if !names.is_empty() {
                (screen.report)(names);
            }
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, Error> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while let Some(passing) = &mut self.passing {
            let deadline = self.latest.min(Instant::now() + self.patience);
            let chunk = timeout_at(deadline, self.flow.next()).await;
            let chunk = chunk.map_err(|_| Error::Timeout {
                upstream: self.upstream.clone(),
                waited: self.patience,
                setting: TIMEOUT_SETTING,
            })?;
            match chunk {
                Ok(Some(chunk)) => {
                    let part = passing.next(&chunk);
                    let part = part.ok_or_else(|| self.garbled("what follows the result"))?;
                    if !part.is_empty() {
                        return Ok(Some(part));
                    }
                }
                Ok(None) => self.finish()?,
                Err(Failure::Broken(reason) | Failure::Unreachable(reason)) => {
                    let reason = format!("broke the connection: {reason}");
                    return Err(Error::Down { upstream: self.upstream.clone(), reason });
                }
                Err(Failure::Malformed(fault)) => return Err(self.garbled(&fault.to_string())),
                Err(Failure::TooLarge) => return Err(self.garbled("its length")),
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let Some(passing) = self.passing.take() else { return Ok(()) };
        match passing.finish() {
            Ok(id) if number(&id) == Some(self.id) => Ok(()),
            Ok(_) => Err(self.garbled("it is a message that answers something else")),
            Err(rejection) => Err(self.garbled(&rejection.reason)),
        }
    }

    fn garbled(&self, reason: &str) -> Error {
        Error::Garbled { upstream: self.upstream.clone(), reason: reason.to_owned() }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.say_farewell(None);
    }
}
