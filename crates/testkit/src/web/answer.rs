//! The answers of a fake site: whole, as events, or wrong.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame};
use mcp::rpc::{self, Raw};
use tokio::sync::{mpsc, watch};

use super::Fault;

pub type Body = BoxBody<Bytes, std::io::Error>;

/// Messages as events, until there are no more.
pub struct Events {
    pub messages: mpsc::UnboundedReceiver<String>,
    /// Counts the streams that were closed before their end.
    pub closed: Option<watch::Sender<u64>>,
    pub has_ended: bool,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.messages.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.has_ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(message)) => {
                let event = match message.strip_prefix("break") {
                    Some(_) => return Poll::Ready(Some(Err(std::io::Error::other("as told")))),
                    None if message.starts_with('/') => {
                        format!("event: endpoint\ndata: {message}\n\n")
                    }
                    None => format!(": a comment\nevent: message\ndata: {message}\n\n"),
                };
                Poll::Ready(Some(Ok(Frame::data(event.into()))))
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(closed) = self.closed.take().filter(|_| !self.has_ended) {
            closed.send_modify(|count| *count += 1);
        }
    }
}

pub fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(events.boxed());
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response
}

pub fn whole(kind: &str, text: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(text.into()).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    response
}

pub fn empty(status: u16) -> Response<Body> {
    self::status(status, "")
}

pub fn status(status: u16, text: &'static str) -> Response<Body> {
    let mut response = whole("text/plain", text);
    *response.status_mut() = status.try_into().unwrap();
    response
}

pub fn refusal(status: u16, id: Option<&Raw>, error: &str) -> Response<Body> {
    let mut response = whole("application/json", rpc::error(id, error.as_bytes()));
    *response.status_mut() = status.try_into().unwrap();
    response
}

pub async fn go_wrong(fault: &Fault, id: &[u8]) -> Response<Body> {
    let id = Raw::trusted(id.to_vec());
    let (sender, messages) = mpsc::unbounded_channel();
    match *fault {
        Fault::Status(status, text) => self::status(status, text),
        Fault::Redirect(to) => {
            let mut response = empty(307);
            response.headers_mut().insert("location", to.parse().unwrap());
            response
        }
        Fault::BreaksOff => {
            let params = br#"{"level":"info","data":"so far so good"}"#;
            let notice = rpc::notification("notifications/message", Some(params));
            sender.send(String::from_utf8(notice.to_vec()).unwrap()).unwrap();
            tokio::spawn(async move {
                // What was written must be on its way before.
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                _ = sender.send("break".into());
            });
            events(Events { messages, closed: None, has_ended: false })
        }
        Fault::HugeEvent => {
            sender.send("x".repeat(65 * 1024 * 1024)).unwrap();
            events(Events { messages, closed: None, has_ended: false })
        }
        Fault::Page => whole("text/html", "<html><body>Welcome!</body></html>"),
        Fault::Freezes => std::future::pending().await,
        Fault::Refuses(status, error) => refusal(status, Some(&id), error),
    }
}
