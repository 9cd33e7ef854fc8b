//! One plain connection, driven by the task whose request it carries.
//!
//! No task of its own stands behind a connection: what a call needs is done when the call is
//! polled, and nothing has to be handed from one task to another.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::unconstrained;

/// A connection and the way to put requests on it.
pub struct Link {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` once it is closed. Dropping it tells those who wait for something of it.
    connection: Option<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>,
    bell: Arc<Bell>,
    /// What the connection rings.
    rope: Waker,
}

/// Why a request got no answer.
pub enum Unanswered {
    /// Nothing of it was sent.
    Unsent(Box<Request<Full<Bytes>>>, hyper::Error),
    Broken(hyper::Error),
}

impl Link {
    pub async fn new(stream: TokioIo<TcpStream>) -> Result<Link, hyper::Error> {
        let (sender, connection) = http1::handshake(stream).await?;
        let bell = Arc::<Bell>::default();
        let rope = Waker::from(Arc::clone(&bell));
        Ok(Link { sender, connection: Some(connection), bell, rope })
    }

    /// Whether everything that was sent is answered, and more can be.
    pub fn is_idle(&self) -> bool {
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of the answer. A connection that was closed
    /// meanwhile is noticed before anything is sent.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let mut answer = pin!(self.sender.try_send_request(request));
        self.bell.hush();
        poll_fn(|context| {
            if self.bell.is_silent(context) {
                return Poll::Pending;
            }
            self.drive();
            // Who is over their budget would be told to come back later, through a waker that
            // nobody hears.
            let mut answer = pin!(unconstrained(answer.as_mut()));
            let Poll::Ready(answer) = answer.as_mut().poll(&mut unheard()) else {
                self.bell.listen(context);
                return Poll::Pending;
            };
            Poll::Ready(answer.map_err(|mut failed| match failed.take_message() {
                Some(request) => Unanswered::Unsent(Box::new(request), failed.into_error()),
                None => Unanswered::Broken(failed.into_error()),
            }))
        })
        .await
    }

    /// The next piece of the answer.
    pub fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.bell.is_silent(context) {
            return Poll::Pending;
        }
        let mut frame = Pin::new(&mut *body).poll_frame(&mut unheard());
        if frame.is_pending() {
            self.drive();
            frame = Pin::new(body).poll_frame(&mut unheard());
        }
        if frame.is_pending() {
            self.bell.listen(context);
        }
        frame
    }

    /// Lets the connection read and write what can be read and written now.
    pub fn drive(&mut self) {
        self.bell.hush();
        let Some(connection) = &mut self.connection else { return };
        let mut context = Context::from_waker(&self.rope);
        // How it ended is told to those who wait for something of it.
        if Pin::new(connection).poll(&mut context).is_ready() {
            self.connection = None;
        }
    }
}

/// For what is only ever made ready by the connection, which we drive ourselves.
fn unheard() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// What a connection rings when there is something to do. While its task is at it anyway this is
/// only noted: the task need not be woken by itself. While it is parked nobody listens.
#[derive(Default)]
struct Bell(Mutex<Ringing>);

#[derive(Default)]
enum Ringing {
    #[default]
    Unheard,
    Noted,
    Heard(Waker),
}

impl Bell {
    fn set(&self, ringing: Ringing) -> Ringing {
        std::mem::replace(&mut *self.state(), ringing)
    }

    /// From now on it is only noted.
    fn hush(&self) {
        self.set(Ringing::Unheard);
    }

    /// Whether the task listens and nothing has rung since: it was woken by something else. If
    /// not, it is only noted from now on.
    fn is_silent(&self, context: &Context<'_>) -> bool {
        let mut state = self.state();
        if let Ringing::Heard(task) = &mut *state {
            task.clone_from(context.waker());
            return true;
        }
        *state = Ringing::Unheard;
        false
    }

    /// From now on the task is woken, and at once if it has rung since it was hushed.
    fn listen(&self, context: &Context<'_>) {
        let mut state = self.state();
        match &*state {
            // It stays noted: silence would be taken for a reason to wait on.
            Ringing::Noted => context.waker().wake_by_ref(),
            Ringing::Unheard | Ringing::Heard(_) => {
                *state = Ringing::Heard(context.waker().clone());
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Ringing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Ringing::Heard(task) = self.set(Ringing::Noted) {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::Bell;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn bell_that_rings_while_its_task_is_at_it_is_answered_by_the_next_poll() {
        let (bell, woken) = (Arc::<Bell>::default(), Arc::<Woken>::default());
        let waker = Waker::from(Arc::clone(&woken));
        let context = Context::from_waker(&waker);
        let times = || woken.0.load(Ordering::Relaxed);
        bell.hush();
        bell.wake_by_ref();
        assert_eq!(times(), 0);
        bell.listen(&context);
        assert_eq!(times(), 1);
        assert!(!bell.is_silent(&context));
        bell.listen(&context);
        assert!(bell.is_silent(&context));
        bell.wake_by_ref();
        assert_eq!(times(), 2);
        assert!(!bell.is_silent(&context));
    }
}
