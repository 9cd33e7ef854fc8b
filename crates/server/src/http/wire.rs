//! The bytes of one connection on their way: what is read is watched, what is written is bounded.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::limits::{ANSWER_STALL_MAX, LINGER_MAX};

/// A stream that ends a client which does not read, and closes so that the last answer arrives.
pub struct Wire<I> {
    inner: I,
    /// What was read to see which version of HTTP begins, until it is handed out.
    early: Early,
    lines: LengthLines,
    signs: Arc<Signs>,
    /// Set while nothing can be written.
    stall: Option<Pin<Box<Sleep>>>,
    /// Set once our side is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Default)]
struct Early {
    bytes: [u8; PREFACE.len()],
    len: usize,
}

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the wire tells of itself.
#[derive(Debug, Default)]
pub struct Signs {
    /// How many lines of the input gave a `Content-Length` and belong to no request yet.
    ///
    /// hyper drops that header where a `Transfer-Encoding` stands beside it, and such a request
    /// must be refused: two servers in a row may see two different requests in it. The count may
    /// be too high, since a body can hold such a line; it is never too low.
    lengths: AtomicUsize,
    /// Whether something waits to be written that the client does not take.
    is_stuck: AtomicBool,
}

impl Signs {
    /// Takes the one line with a length that a request is known to have.
    pub fn take_length(&self) {
        let less = |count: usize| count.checked_sub(1);
        _ = self.lengths.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub fn take_lengths(&self) -> usize {
        self.lengths.swap(0, Ordering::Relaxed)
    }

    pub fn is_stuck(&self) -> bool {
        self.is_stuck.load(Ordering::Relaxed)
    }
}

impl<I> Wire<I> {
    pub fn new(inner: I, signs: Arc<Signs>) -> Wire<I> {
        let (early, lines) = (Early::default(), LengthLines::default());
        Wire { inner, early, lines, signs, stall: None, linger: None }
    }

    /// Counts the lines that give a length among what is handed out.
    fn watch(&mut self, fresh: &[u8]) {
        let found = self.lines.feed(fresh);
        if found > 0 {
            self.signs.lengths.fetch_add(found, Ordering::Relaxed);
        }
    }

    /// Ends a write that makes no headway.
    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            if self.stall.take().is_some() {
                self.signs.is_stuck.store(false, Ordering::Relaxed);
            }
            return polled;
        }
        self.signs.is_stuck.store(true, Ordering::Relaxed);
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(ANSWER_STALL_MAX)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> Wire<I> {
    /// Whether the connection begins as one of HTTP/2 does; waits for as much as shows it.
    pub fn poll_preface(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            let Early { bytes, len } = &mut self.early;
            if bytes[..*len] != PREFACE[..*len] {
                return Poll::Ready(Ok(false));
            }
            if *len == PREFACE.len() {
                return Poll::Ready(Ok(true));
            }
            let mut rest = ReadBuf::new(&mut bytes[*len..]);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut rest))?;
            match rest.filled().len() {
                // What is no HTTP/2 is told so by the other version.
                0 => return Poll::Ready(Ok(false)),
                read => *len += read,
            }
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Wire<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.len > 0 {
            let Early { mut bytes, len } = std::mem::take(&mut self.early);
            let size = len.min(buffer.remaining());
            buffer.put_slice(&bytes[..size]);
            self.watch(&bytes[..size]);
            bytes.copy_within(size..len, 0);
            self.early = Early { bytes, len: len - size };
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.watch(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.bounded(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.bounded(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(context);
        self.bounded(context, polled)
    }

    /// Closes our side, then reads on for a while: unread input would make the system reset the
    /// connection, and the client would lose an answer such as 413.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let polled = Pin::new(&mut this.inner).poll_shutdown(context);
            ready!(this.bounded(context, polled))?;
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER_MAX)));
        if linger.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut this.inner).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

const NAME: &[u8] = b"content-length:";

/// Finds lines that begin with a length, however the input is cut.
#[derive(Debug, Default)]
struct LengthLines {
    /// How much of the name the current line has so far; `None` where it is another line.
    ///
    /// The very first line is that of a request, so beginning inside of one does no harm.
    matched: Option<usize>,
}

impl LengthLines {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut found = 0;
        if let Some(matched) = self.matched.take()
            && self.is_name(matched, bytes)
        {
            found += 1;
        }
        for end in memchr::memchr_iter(b'\n', bytes) {
            let line = bytes.get(end + 1..).unwrap_or_default();
            // Hardly any other line begins so.
            let may_be = line.first().is_none_or(|first| first | 0x20 == NAME[0]);
            if may_be && self.is_name(0, line) {
                found += 1;
            }
        }
        found
    }

    /// Whether the name goes on and ends here, of which so much has come before. One that may go on in what comes
    /// next is kept in mind.
    fn is_name(&mut self, matched: usize, bytes: &[u8]) -> bool {
        let wanted = NAME.get(matched..).unwrap_or_default();
        let size = wanted.len().min(bytes.len());
        let is_same = bytes[..size].eq_ignore_ascii_case(&wanted[..size]);
        if is_same && size < wanted.len() {
            self.matched = Some(matched + size);
        }
        is_same && size == wanted.len()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::{LengthLines, PREFACE, Signs, Wire};

    #[tokio::test]
    async fn version_is_seen_however_the_beginning_is_cut_and_nothing_of_it_is_lost() {
        let http2 = [PREFACE.as_slice(), b"and more"].concat();
        let http1 = b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n";
        for (input, is_http2) in
            [(&http2[..], true), (http1, false), (b"PRI / HTTP/1.1\r\n\r\n", false), (b"PR", false)]
        {
            for size in [1, 5, 23, input.len()] {
                let (mut client, server) = tokio::io::duplex(size);
                let signs = Arc::<Signs>::default();
                let mut wire = Wire::new(server, Arc::clone(&signs));
                let sending = async move { client.write_all(input).await.unwrap() };
                let reading = async {
                    let seen = poll_fn(|context| wire.poll_preface(context)).await.unwrap();
                    let mut read = Vec::new();
                    wire.read_to_end(&mut read).await.unwrap();
                    (seen, read)
                };
                let ((), (seen, read)) = tokio::join!(sending, reading);
                assert_eq!((seen, &read[..]), (is_http2, input), "in pieces of {size}");
                assert_eq!(signs.take_lengths(), usize::from(input == http1));
            }
        }
    }

    #[test]
    fn lines_with_a_length_are_found_however_they_are_cut() {
        let input = b"POST / HTTP/1.1\r\nHost: a\nCONTENT-length: 3\r\nX-Content-Length: 1\r\n\
            Content-Lengths: 1\r\n\nContent-Length:5\r\n\r\nabc";
        for size in 1..input.len() {
            let mut lines = LengthLines::default();
            let found: usize = input.chunks(size).map(|chunk| lines.feed(chunk)).sum();
            assert_eq!(found, 2, "in pieces of {size}");
        }
    }
}
