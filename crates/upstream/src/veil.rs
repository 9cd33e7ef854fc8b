//! Hides the values of secrets in what servers say, before anybody in the house hears it.
//!
//! Every way in passes here: answers, notifications, lists, errors, what is printed to stderr. Where no secret is
//! known, that is one look at a flag.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use secrets::names::Name;
use secrets::redact::{Inseparable, Redactor, Stream};
use secrets::store::Contents;
use secrets::value::SecretValue;

use crate::answer::Answer;
use crate::error::Error;
use crate::limits::{BEGINNING_SHOWN_MAX, VEILED_MAX};
use crate::python::protocol::Failure;

/// A value that somebody was about to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    pub secret: Name,
    pub upstream: UpstreamName,
    /// What was asked, or told.
    pub method: Box<str>,
    /// What it was about at the upstream: a tool, a URI.
    pub subject: Option<Box<str>>,
    /// The client that waited for it, if any.
    pub client: Option<u64>,
}

/// Is told of finds; never waits.
pub type Witness = Box<dyn Fn(Find) + Send + Sync>;

#[derive(Default)]
pub struct Veil {
    values: Arc<Values>,
    witness: OnceLock<Witness>,
    /// How many were found.
    pub found: AtomicU64,
}

/// What is hidden.
#[derive(Default)]
struct Values {
    /// Whether there is anything to hide.
    is_on: AtomicBool,
    redactor: ArcSwapOption<Redactor>,
    /// All values that were known since we run: who has got one may still show it when it is another.
    known: Mutex<Vec<(Name, SecretValue)>>,
}

impl fmt::Debug for Veil {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Veil").field("is_on", &self.values.is_on).finish_non_exhaustive()
    }
}

/// Who says something, and about what.
#[derive(Clone, Copy)]
pub(crate) struct Saying<'a> {
    pub upstream: &'a UpstreamName,
    pub method: &'a str,
    pub subject: Option<&'a str>,
    pub client: Option<u64>,
}

impl Veil {
    /// Another veil that hides the same values, also those that either learns later; it has a witness of its own.
    pub fn twin(&self) -> Veil {
        Veil { values: Arc::clone(&self.values), ..Veil::default() }
    }

    /// Hides all values of the safe from now on, too.
    pub fn learn(&self, contents: &Contents) {
        // What can't be decrypted was handed to nobody.
        let Ok(values) = contents.all() else { return };
        let mut known = self.values.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        for (name, value) in values {
            let is_known = |(of, former): &(Name, SecretValue)| {
                *of == name && former.expose() == value.expose()
            };
            if !known.iter().any(is_known) {
                known.push((name, value));
            }
        }
        if known.len() == before {
            return;
        }
        // The oldest are forgotten where somebody changes them again and again.
        let excess = known.len().saturating_sub(VEILED_MAX);
        known.drain(..excess);
        let redactor = Redactor::new(known.iter().map(|(name, value)| (name, value)));
        let is_on = !redactor.is_idle();
        self.values.redactor.store(Some(Arc::new(redactor)));
        self.values.is_on.store(is_on, Ordering::Release);
    }

    /// Says who is told of finds from now on; the first one counts.
    pub fn tell(&self, witness: Witness) {
        _ = self.witness.set(witness);
    }

    /// Whether there is nothing to hide.
    pub(crate) fn is_off(&self) -> bool {
        !self.values.is_on.load(Ordering::Acquire)
    }

    fn redactor(&self) -> Option<Arc<Redactor>> {
        if self.is_off() { None } else { self.values.redactor.load_full() }
    }

    /// A text of ours without values; nobody is told.
    pub fn over_text<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let redaction = self.redactor().and_then(|redactor| redactor.scan(text));
        redaction.map_or(Cow::Borrowed(text), |redaction| Cow::Owned(redaction.text))
    }

    /// The same for a text that goes on: what may be the beginning of a value is left in it.
    pub(crate) fn over_part(&self, text: &mut Vec<u8>) -> Vec<u8> {
        let mut hidden = self.over_text(text).into_owned();
        let begun = self.redactor().map_or(0, |redactor| redactor.begun(&hidden));
        *text = hidden.split_off(hidden.len() - begun);
        hidden
    }

    /// The same for a text that goes on no further: what has begun as a value is hidden, too. Whoever is killed while it
    /// prints one has told most of it.
    pub(crate) fn over_last(&self, mut text: Vec<u8>) -> Vec<u8> {
        let mut shown = self.over_part(&mut text);
        let begun: &[u8] = if text.len() > BEGINNING_SHOWN_MAX { b"[redacted]" } else { &text };
        shown.extend_from_slice(begun);
        shown
    }

    /// The same for JSON; `None` if it would be none without them.
    pub fn over_json<'a>(&self, text: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match self.redactor().and_then(|redactor| redactor.scan_json(text)) {
            None => Some(Cow::Borrowed(text)),
            Some(Ok(redaction)) => Some(Cow::Owned(redaction.text)),
            Some(Err(Inseparable { .. })) => None,
        }
    }

    /// What a server says in words, without values.
    pub(crate) fn over_words(&self, words: String, saying: Saying<'_>) -> String {
        let Some(redactor) = self.redactor() else { return words };
        let Some(redaction) = redactor.scan(words.as_bytes()) else { return words };
        self.report(redaction.names, saying);
        String::from_utf8_lossy(&redaction.text).into_owned()
    }

    /// What a server says in JSON, without values; `None` if it has to be withheld.
    pub(crate) fn over_raw(&self, raw: Raw, saying: Saying<'_>) -> Option<Raw> {
        let Some(redactor) = self.redactor() else { return Some(raw) };
        match redactor.scan_json(raw.as_bytes()) {
            None => Some(raw),
            Some(Ok(redaction)) => {
                self.report(redaction.names, saying);
                Some(Raw::trusted(redaction.text))
            }
            Some(Err(Inseparable { names })) => {
                self.report(names, saying);
                None
            }
        }
    }

    /// The answer to a call, without values.
    pub(crate) fn over_answer(
        self: &Arc<Self>,
        answer: Result<Answer, Error>,
        saying: Saying<'_>,
    ) -> Result<Answer, Error> {
        let Some(redactor) = self.redactor() else { return answer };
        match answer {
            Ok(Answer::Whole(outcome)) => {
                let (is_result, raw) = match outcome {
                    Outcome::Result(raw) => (true, raw),
                    Outcome::Error(raw) => (false, raw),
                };
                let upstream = || saying.upstream.clone();
                let withheld = || Error::Withheld { upstream: upstream() };
                let raw = self.over_raw(raw, saying).ok_or_else(withheld)?;
                let outcome = if is_result { Outcome::Result(raw) } else { Outcome::Error(raw) };
                Ok(Answer::Whole(outcome))
            }
            Ok(Answer::Coming(mut coming)) => {
                let (veil, said) = (Arc::clone(self), Said::of(saying));
                let report = Box::new(move |names| veil.report(names, said.saying()));
                coming.screen(Stream::new(redactor), report);
                Ok(Answer::Coming(coming))
            }
            Err(error) => Err(self.over_error(error, saying)),
        }
    }

    fn over_error(&self, error: Error, saying: Saying<'_>) -> Error {
        let words = |words| self.over_words(words, saying);
        match error {
            Error::Down { upstream, reason } => Error::Down { upstream, reason: words(reason) },
            Error::Garbled { upstream, reason } => {
                Error::Garbled { upstream, reason: words(reason) }
            }
            Error::Malformed { upstream, reason } => {
                Error::Malformed { upstream, reason: words(reason) }
            }
            Error::Status { upstream, status, said } => {
                Error::Status { upstream, status, said: words(said) }
            }
            Error::Redirect { upstream, destination } => {
                Error::Redirect { upstream, destination: words(destination) }
            }
            Error::Tool { upstream, failure: Failure { fault, message, details } } => {
                let message = words(message);
                let details = details.and_then(|details| self.over_raw(details, saying));
                Error::Tool { upstream, failure: Failure { fault, message, details } }
            }
            error @ (Error::Timeout { .. }
            | Error::Unfinished { .. }
            | Error::TooOften { .. }
            | Error::Busy { .. }
            | Error::Crowded { .. }
            | Error::Unready { .. }
            | Error::Unread { .. }
            | Error::TooLarge { .. }
            | Error::Withheld { .. }
            | Error::SessionLost { .. }) => error,
        }
    }

    /// Counts finds, and tells of them.
    fn report(&self, names: Vec<Name>, saying: Saying<'_>) {
        let Saying { upstream, method, subject, client } = saying;
        for secret in names {
            let so_far = self.found.fetch_add(1, Ordering::Relaxed) + 1;
            if so_far <= 5 || so_far.is_power_of_two() {
                tracing::warn!(%upstream, method, subject, secret = %secret.key,
                    scope = %secret.scope, so_far, "hid the value of a secret in what it says");
            }
            if let Some(witness) = self.witness.get() {
                witness(Find {
                    secret,
                    upstream: upstream.clone(),
                    method: method.into(),
                    subject: subject.map(Into::into),
                    client,
                });
            }
        }
    }
}

/// The same as [`Saying`], for as long as an answer comes.
struct Said {
    upstream: UpstreamName,
    method: Box<str>,
    subject: Option<Box<str>>,
    client: Option<u64>,
}

impl Said {
    fn of(saying: Saying<'_>) -> Said {
        let Saying { upstream, method, subject, client } = saying;
        let subject = subject.map(Into::into);
        Said { upstream: upstream.clone(), method: method.into(), subject, client }
    }

    fn saying(&self) -> Saying<'_> {
        let Said { upstream, method, subject, client } = self;
        Saying { upstream, method, subject: subject.as_deref(), client: *client }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use secrets::names::{Key, Name};
    use secrets::redact::Redactor;
    use secrets::value::SecretValue;

    use super::Veil;

    #[test]
    fn text_that_ends_within_a_value_tells_nothing_of_it() {
        let veil = Veil::default();
        let name = Name::global(Key::kept("KEY").unwrap());
        let value = SecretValue::new("correct-horse-battery".to_owned().into()).unwrap();
        veil.values.redactor.store(Some(Arc::new(Redactor::new([(&name, &value)].into_iter()))));
        veil.values.is_on.store(true, Ordering::Release);
        let shown = |text: &str| String::from_utf8(veil.over_last(text.into())).unwrap();
        assert_eq!(shown("so correct-horse-batt"), "so [redacted]");
        assert_eq!(shown("is correct-horse-battery"), "is [redacted:KEY]");
        assert_eq!(shown("a disc"), "a disc", "so little is nobody's");
    }
}
