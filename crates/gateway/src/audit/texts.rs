//! What a record keeps of a request and its answer until it is written.
//!
//! Short texts are copied, all into one piece of memory: a part would keep the whole that it was read from.
//! Long ones are shared, and let go of where too many wait.

use std::ops::Range;

use bytes::Bytes;
use mcp::rpc::Raw;

use crate::limits::COPIED_BYTES_MAX;

/// The texts of a record.
#[derive(Debug)]
pub struct Texts {
    own: Box<[u8]>,
    id: Text,
    params: Text,
    outcome: Text,
}

#[derive(Debug)]
enum Text {
    /// There is none, or it was too long to wait.
    Absent,
    Own(Range<usize>),
    Shared(Bytes),
}

impl Texts {
    pub(super) fn of(id: &Raw, params: Option<&Raw>, outcome: Option<&Raw>) -> Texts {
        let parts = [Some(id), params, outcome];
        let is_short = |raw: &Raw| raw.as_bytes().len() <= COPIED_BYTES_MAX;
        let short = parts.iter().copied().flatten().filter(|raw| is_short(raw));
        let mut own = Vec::with_capacity(short.map(|raw| raw.as_bytes().len()).sum());
        let [id, params, outcome] = parts.map(|part| match part {
            None => Text::Absent,
            Some(raw) if is_short(raw) => {
                let start = own.len();
                own.extend_from_slice(raw.as_bytes());
                Text::Own(start..own.len())
            }
            Some(raw) => Text::Shared(raw.clone().into()),
        });
        Texts { own: own.into_boxed_slice(), id, params, outcome }
    }

    /// The id of the request.
    pub fn id(&self) -> Option<&[u8]> {
        self.read(&self.id)
    }

    pub fn params(&self) -> Option<&[u8]> {
        self.read(&self.params)
    }

    /// The result, or the error.
    pub fn outcome(&self) -> Option<&[u8]> {
        self.read(&self.outcome)
    }

    fn read<'a>(&'a self, text: &'a Text) -> Option<&'a [u8]> {
        match text {
            Text::Absent => None,
            Text::Own(range) => self.own.get(range.clone()),
            Text::Shared(bytes) => Some(bytes),
        }
    }

    /// Bytes that belong to others and wait with the record.
    pub(super) fn shared_bytes(&self) -> usize {
        let shared = |text: &Text| if let Text::Shared(bytes) = text { bytes.len() } else { 0 };
        shared(&self.id) + shared(&self.params) + shared(&self.outcome)
    }

    /// Lets go of what belongs to others; the parameters, if they were among it.
    pub(super) fn forgo_shared(&mut self) -> Option<Bytes> {
        let forgo = |text: &mut Text| match text {
            Text::Shared(_) => match std::mem::replace(text, Text::Absent) {
                Text::Shared(bytes) => Some(bytes),
                Text::Absent | Text::Own(_) => None,
            },
            Text::Absent | Text::Own(_) => None,
        };
        forgo(&mut self.id);
        forgo(&mut self.outcome);
        forgo(&mut self.params)
    }
}
