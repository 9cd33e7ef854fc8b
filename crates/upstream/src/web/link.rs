//! One plain connection, driven by the task whose request it carries.
//!
//! No task of its own stands behind a connection: what a call needs is done when the call is
//! polled, and nothing has to be handed from one task to another.

use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
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
        poll_fn(|context| {
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
        self.bell.hush();
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
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, ringing)
    }

    /// From now on it is only noted.
    fn hush(&self) {
        self.set(Ringing::Unheard);
    }

    /// From now on the task is woken, and at once if it has rung since it was hushed.
    fn listen(&self, context: &Context<'_>) {
        if let Ringing::Noted = self.set(Ringing::Heard(context.waker().clone())) {
            context.waker().wake_by_ref();
        }
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
