//! One plain connection, driven by the task whose request it carries.
//!
//! No task of its own stands behind a connection: what a call needs is done when the call is
//! polled, and nothing has to be handed from one task to another.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::TcpStream;

use super::framing::{self, Framing, Head};
use super::{Failure, Request};
use crate::limits::{COPIED_BYTES_MAX, READ_BYTES_MAX, READ_BYTES_MIN};

/// A connection, what is still to be sent over it, and what has come and is not taken.
pub struct Link {
    stream: TcpStream,
    /// The head of the last request, and its body where that is small.
    outgoing: Vec<u8>,
    /// How much of it is sent.
    sent: usize,
    /// A body that is too large to be copied.
    large: Bytes,
    incoming: BytesMut,
    /// How much room is made for what comes: more once that was filled.
    room: usize,
}

/// Why a request got no answer.
pub enum Unanswered {
    /// Nothing of it was sent.
    Unsent(io::Error),
    Failed(Failure),
}

impl Link {
    pub fn new(stream: TcpStream) -> Link {
        Link {
            stream,
            outgoing: Vec::new(),
            sent: 0,
            large: Bytes::new(),
            incoming: BytesMut::new(),
            room: READ_BYTES_MIN,
        }
    }

    /// Gets ready for the next request; whether it can: everything is sent, and nothing has come
    /// that was not asked for.
    pub fn rest(&mut self) -> bool {
        if self.room > READ_BYTES_MIN {
            // Large room is not kept for what is mostly small.
            (self.incoming, self.room) = (BytesMut::new(), READ_BYTES_MIN);
        }
        self.sent == self.outgoing.len() && self.large.is_empty() && self.incoming.is_empty()
    }

    /// How much room is made for what comes next.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Puts a request on the connection. One that was closed meanwhile is noticed before.
    pub fn put(&mut self, request: &Request<'_>) -> Result<(), io::Error> {
        // Whoever speaks unasked is not to be trusted with a request either.
        let mut unheard = Context::from_waker(Waker::noop());
        if self.poll_fill(&mut unheard, 0).is_ready() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Request { method, target, fields, more, body } = request;
        let path = target.path_and_query().map_or("/", |path| path.as_str());
        self.outgoing.clear();
        self.outgoing.shrink_to(2 * COPIED_BYTES_MAX);
        self.sent = 0;
        for part in [method.as_str(), " ", path, " HTTP/1.1\r\n"] {
            self.outgoing.extend_from_slice(part.as_bytes());
        }
        self.outgoing.extend_from_slice(&fields.written);
        for (name, value) in *more {
            write_field(&mut self.outgoing, name.as_str(), value.as_bytes());
        }
        if *method == Method::POST || !body.is_empty() {
            let mut digits = [0; 20];
            write_field(&mut self.outgoing, "content-length", decimal(body.len(), &mut digits));
        }
        self.outgoing.extend_from_slice(b"\r\n");
        if body.len() <= COPIED_BYTES_MAX {
            self.outgoing.extend_from_slice(body);
        } else {
            self.large = (*body).clone();
        }
        Ok(())
    }

    /// Sends what was put, and waits for the head of the answer.
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Head, Unanswered>> {
        loop {
            let unsent = match self.poll_send(context) {
                Poll::Ready(Err(error)) if self.sent == 0 => {
                    return Poll::Ready(Err(Unanswered::Unsent(error)));
                }
                Poll::Ready(Err(error)) => Some(error),
                Poll::Ready(Ok(())) | Poll::Pending => None,
            };
            let failed = |failure| Poll::Ready(Err(Unanswered::Failed(failure)));
            if !self.incoming.is_empty() {
                match framing::take_head(&mut self.incoming) {
                    Ok(Some(head)) => return Poll::Ready(Ok(head)),
                    Ok(None) => {}
                    Err(fault) => return failed(Failure::Malformed(fault)),
                }
            }
            match (self.poll_fill(context, 0), unsent) {
                (Poll::Ready(Ok(read)), _) if read > 0 => {}
                // Who refuses a request before it has read all of it may have said so.
                (_, Some(error)) | (Poll::Ready(Err(error)), None) => {
                    return failed(broken(&error));
                }
                (Poll::Pending, None) => return Poll::Pending,
                (Poll::Ready(Ok(_)), None) => return failed(Failure::cut_off()),
            }
        }
    }

    /// The next piece of a body; `None` at its end.
    pub fn poll_piece(
        &mut self,
        framing: &mut Framing,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Failure>> {
        loop {
            match framing.take(&mut self.incoming) {
                Ok(None) if framing.is_over() => return Poll::Ready(Ok(None)),
                Ok(None) => {}
                Ok(piece) => return Poll::Ready(Ok(piece)),
                Err(fault) => return Poll::Ready(Err(Failure::Malformed(fault))),
            }
            if ready!(self.poll_more(framing, context))? == 0 {
                return Poll::Ready(Ok(None));
            }
        }
    }

    /// Waits until `bytes` of a body are here or it ends, so that they can be taken in one piece.
    pub fn poll_gather(
        &mut self,
        framing: &Framing,
        bytes: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        while self.incoming.len() < bytes {
            if self.incoming.capacity() < bytes {
                self.incoming.reserve(bytes - self.incoming.len());
                self.room = READ_BYTES_MAX;
            }
            if ready!(self.poll_more(framing, context))? == 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads more of a body; how much, nothing if it ends with the connection.
    fn poll_more(
        &mut self,
        framing: &Framing,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, Failure>> {
        // An answer may begin before all of its request is sent.
        if let Poll::Ready(Err(error)) = self.poll_send(context) {
            return Poll::Ready(Err(broken(&error)));
        }
        let announced = usize::try_from(framing.announced()).unwrap_or(usize::MAX);
        match ready!(self.poll_fill(context, announced)) {
            Ok(0) if *framing != Framing::Close => Poll::Ready(Err(Failure::cut_off())),
            Ok(read) => Poll::Ready(Ok(read)),
            Err(error) => Poll::Ready(Err(broken(&error))),
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let unsent = &self.outgoing[self.sent..];
            let is_large = unsent.is_empty();
            let unsent = if is_large { &self.large[..] } else { unsent };
            if unsent.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(Pin::new(&mut self.stream).poll_write(context, unsent))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent if is_large => _ = self.large.split_to(sent),
                sent => self.sent += sent,
            }
        }
    }

    /// Reads what is there, with room for what is `announced`, within bounds.
    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        announced: usize,
    ) -> Poll<io::Result<usize>> {
        let spare = self.incoming.capacity() - self.incoming.len();
        let is_scarce = spare < READ_BYTES_MIN / 2;
        if is_scarce && (announced == 0 || spare < announced) {
            self.room = self.room.max(announced.min(READ_BYTES_MAX));
            self.incoming.reserve(self.room);
        }
        let spare = self.incoming.capacity() - self.incoming.len();
        let read = ready!(pin!(self.stream.read_buf(&mut self.incoming)).poll(context));
        if matches!(read, Ok(size) if size == spare) {
            self.room = (2 * self.room).min(READ_BYTES_MAX);
        }
        Poll::Ready(read)
    }
}

/// Writes a header field as it is sent.
pub fn write_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &digits[first..];
        }
    }
}

fn broken(error: &io::Error) -> Failure {
    Failure::Broken(super::innermost(error))
}
