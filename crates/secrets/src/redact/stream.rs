//! A JSON text that comes in pieces, and is passed on in pieces.
//!
//! Of what may be the beginning of a value so much is held back until it is known: never more than the longest
//! spelling and one number.

use std::sync::Arc;

use super::tokens::{self, Kind, Tokens};
use super::{Inseparable, Redactor};
use crate::limits::SCALAR_BYTES_MAX;
use crate::names::Name;

/// What becomes of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// So much of it, from its beginning, can go as it is.
    AsIs(usize),
    /// This goes in its stead.
    Instead { text: Vec<u8>, names: Vec<Name> },
}

/// Looks for values in the pieces of one text.
#[derive(Debug)]
pub struct Stream {
    redactor: Arc<Redactor>,
    /// What has come and is not passed on.
    held: Vec<u8>,
    /// How much of it, from its beginning, has a mark in its place already.
    covered: usize,
    /// Whether it begins within a string.
    in_string: bool,
}

impl Stream {
    pub fn new(redactor: Arc<Redactor>) -> Stream {
        Stream { redactor, held: Vec::new(), covered: 0, in_string: false }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<Piece, Inseparable> {
        if self.held.is_empty() {
            let (instead, end) = self.advance(piece, false)?;
            self.held = piece[end..].to_vec();
            return Ok(match instead {
                Some((text, names)) => Piece::Instead { text, names },
                None => Piece::AsIs(end),
            });
        }
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(piece);
        let (instead, end) = self.advance(&whole, false)?;
        self.held = whole.split_off(end);
        let (text, names) = instead.unwrap_or((whole, Vec::new()));
        Ok(Piece::Instead { text, names })
    }

    /// What was held back, when nothing follows.
    pub fn finish(&mut self) -> Result<(Vec<u8>, Vec<Name>), Inseparable> {
        let whole = std::mem::take(&mut self.held);
        let (instead, _) = self.advance(&whole, true)?;
        Ok(instead.unwrap_or((whole, Vec::new())))
    }

    /// What becomes of a text, if it does not stay as it is, and up to where.
    fn advance(&mut self, text: &[u8], is_last: bool) -> Result<(Instead, usize), Inseparable> {
        let redactor = Arc::clone(&self.redactor);
        let mut end = text.len();
        let mut tokens = Tokens::new(text, self.in_string);
        if !is_last {
            end -= redactor.begun(text);
        }
        // What is passed on ends in no number and no spelling of a letter.
        let mut in_string = self.in_string;
        while let Some(token) = tokens.next() {
            if token.span.start >= end {
                break;
            }
            let is_cut = end < token.span.end || token.is_open;
            let can_be_cut = match token.kind {
                Kind::Letters | Kind::Structure => true,
                Kind::Scalar => is_last || token.span.len() > SCALAR_BYTES_MAX,
                Kind::Escape => is_last,
            };
            if is_cut && !can_be_cut {
                end = token.span.start;
                break;
            }
            in_string = tokens.in_string;
        }
        let covered = std::mem::take(&mut self.covered);
        let mut finds = redactor.finds(text).unwrap_or_default();
        // What begins in what is held back is found again.
        finds.retain(|find| find.span.start < end);
        if finds.is_empty() && covered == 0 {
            self.in_string = in_string;
            return Ok((None, end));
        }
        let names = redactor.named(&finds);
        let Some(finds) = tokens::fit(text, self.in_string, finds) else {
            return Err(Inseparable { names });
        };
        let mut out = Vec::with_capacity(text.len());
        let at = redactor.write(text, &finds, covered, end.max(covered), &mut out);
        self.covered = at.saturating_sub(end);
        self.in_string = in_string;
        Ok((Some((out, names)), end))
    }
}

type Instead = Option<(Vec<u8>, Vec<Name>)>;
