//! A loopback forwarder that adds the token, for clients that cannot send one.
//!
//! Everything else stays as it came, `Host` and `Origin` too. Bodies stream both ways, and what the
//! client closes is closed behind the forwarder as well.

use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Forwards to one server for as long as it lives.
pub struct Forwarder {
    pub address: String,
    accepting: JoinHandle<()>,
}

impl Forwarder {
    /// `target` is the address of the server, `token` what it wants to see.
    pub async fn start(target: &str, token: &str) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let authorization = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
        let accepting = tokio::spawn(accept(listener, target.to_owned(), authorization));
        Forwarder { address, accepting }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: String, authorization: HeaderValue) {
    while let Ok((stream, _)) = listener.accept().await {
        let (target, authorization) = (target.clone(), authorization.clone());
        tokio::spawn(async move {
            let forward = service_fn(move |mut request: Request<Incoming>| {
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
                forward(target.clone(), request)
            });
            // A client may break off at any time.
            _ = server::Builder::new().serve_connection(TokioIo::new(stream), forward).await;
        });
    }
}

/// Each request has a connection of its own, which ends with it.
async fn forward(
    target: String,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(&target).await?;
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}
