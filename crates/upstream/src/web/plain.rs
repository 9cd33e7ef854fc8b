//! Plain connections to one server, and those among them that nobody uses now.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hyper::Uri;
use hyper::service::Service as _;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::service::TowerToHyperService;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use super::framing::Head;
use super::link::{Link, Unanswered};
use super::{Failure, Request, innermost, tcp};
use crate::limits::{CONNECT_PAUSES, IDLE_CONNECTION_TIME, IDLE_CONNECTIONS_MAX, LINGERING_MAX};
use crate::remote::Url;

/// The connections to one server.
pub struct Plain {
    server: Uri,
    connector: TowerToHyperService<HttpConnector>,
    idle: Mutex<Idle>,
    /// For answers whose end is waited for.
    pub lingering: Arc<Semaphore>,
}

#[derive(Default)]
struct Idle {
    /// Those parked first are first.
    parked: Vec<Parked>,
    is_swept: bool,
}

struct Parked {
    link: Box<Link>,
    until: Instant,
}

impl Plain {
    pub fn new(url: &Url) -> Arc<Plain> {
        let server = url.uri().clone();
        let connector = TowerToHyperService::new(tcp());
        let lingering = Arc::new(Semaphore::new(LINGERING_MAX));
        Arc::new(Plain { server, connector, idle: Mutex::default(), lingering })
    }

    /// Sends a request over a connection of its own, and again if a used one turns out to be
    /// closed before anything was sent.
    pub async fn send(&self, request: &Request<'_>) -> Result<(Head, Box<Link>), Failure> {
        let mut used = self.idle().parked.pop().map(|parked| parked.link);
        loop {
            let is_used = used.is_some();
            let mut link = match used.take() {
                Some(link) => link,
                None => Box::pin(self.connect()).await?,
            };
            let answer = match link.put(request) {
                Ok(()) => poll_fn(|context| link.poll_head(context)).await,
                Err(error) => Err(Unanswered::Unsent(error)),
            };
            match answer {
                Ok(head) => return Ok((head, link)),
                Err(Unanswered::Unsent(_)) if is_used => {}
                Err(Unanswered::Unsent(error)) => return Err(Failure::Broken(innermost(&error))),
                Err(Unanswered::Failed(failure)) => return Err(failure),
            }
        }
    }

    /// Makes a connection; while none can be made it is tried again for a moment.
    async fn connect(&self) -> Result<Box<Link>, Failure> {
        let mut pauses = CONNECT_PAUSES.iter();
        loop {
            let error = match self.connector.call(self.server.clone()).await {
                Ok(stream) => return Ok(Box::new(Link::new(stream.into_inner()))),
                Err(error) => error,
            };
            match pauses.next() {
                Some(pause) => sleep(*pause).await,
                None => return Err(Failure::Unreachable(innermost(&error))),
            }
        }
    }

    /// Keeps a connection for the next request.
    pub fn park(self: &Arc<Plain>, link: Box<Link>) {
        let mut idle = self.idle();
        if idle.parked.len() >= IDLE_CONNECTIONS_MAX {
            return;
        }
        let until = Instant::now() + IDLE_CONNECTION_TIME;
        idle.parked.push(Parked { link, until });
        if !idle.is_swept {
            idle.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(self), until));
        }
    }

    /// Closes what was not used for too long; when to look again, if anything is left.
    fn close_unused(&self) -> Option<Instant> {
        let mut idle = self.idle();
        let now = Instant::now();
        let old = idle.parked.partition_point(|parked| parked.until <= now);
        let closed: Vec<Parked> = idle.parked.drain(..old).collect();
        let next = idle.parked.first().map(|parked| parked.until);
        idle.is_swept = next.is_some();
        drop(idle);
        drop(closed);
        next
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections that are not used. It begins with a wait: under load there is one sweeper
/// for many calls, though hardly any connection is parked when it looks.
async fn sweep(pool: Weak<Plain>, first: Instant) {
    let mut next = Some(first);
    while let Some(until) = next {
        sleep_until(until).await;
        next = pool.upgrade().and_then(|pool| pool.close_unused());
    }
}

#[cfg(test)]
mod tests;
