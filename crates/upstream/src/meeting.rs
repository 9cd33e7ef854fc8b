//! Getting to know a remote server: which transport and which era it speaks.

use std::sync::Arc;
use std::time::Duration;

use mcp::abilities::Abilities;
use mcp::names::UpstreamName;
use mcp::version::Era;

use crate::connection::{Connection, Listener};
use crate::conversation::{EraChoice, Introduction, Problem, discover, initialize};
use crate::limits::DISCOVER_TIMEOUT;
use crate::remote::{Remote, Transport};
use crate::streamable::Streamable;

/// How a server is spoken to, once that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Modern,
    Legacy,
    /// The transport of 2024-11-05.
    Sse,
}

/// Whom we are about to meet.
pub struct Stranger<'a> {
    pub upstream: &'a UpstreamName,
    pub remote: &'a Remote,
    pub era: EraChoice,
    /// What it is told that our client can be asked for.
    pub abilities: Abilities,
    /// What was found the last time, and held.
    pub known: Option<Manner>,
    pub listener: &'a (dyn Fn() -> Listener + Send + Sync),
}

/// A server that we have been introduced to.
pub struct Met {
    pub connection: Connection,
    pub introduction: Introduction,
    pub manner: Manner,
}

impl Stranger<'_> {
    /// Asks until the server is known; the newest manner first.
    pub async fn meet(&self, wait: Duration) -> Result<Met, Problem> {
        let http = Streamable::new(self.remote).map_err(Problem::Unusable)?;
        if self.remote.transport == Transport::Sse || self.known == Some(Manner::Sse) {
            return self.meet_by_events(http, wait).await;
        }
        let (upstream, listener) = (self.upstream.clone(), (self.listener)());
        let connection = Connection::open_posts(upstream, Arc::clone(&http), listener);
        if self.may_be_modern() {
            match discover(&connection, DISCOVER_TIMEOUT.min(wait)).await {
                Ok(introduction) => {
                    return Ok(Met { connection, introduction, manner: Manner::Modern });
                }
                Err(problem) if self.must_be_modern() || settles(&problem) => {
                    return Err(problem);
                }
                Err(_) => {}
            }
        }
        match initialize(&connection, self.abilities, wait).await {
            Ok(introduction) => Ok(Met { connection, introduction, manner: Manner::Legacy }),
            Err(problem @ Problem::Status { status: 400 | 404 | 405, .. })
                if self.remote.transport == Transport::Auto =>
            {
                // What the newer transport says is the better word if the older is not there either.
                self.meet_by_events(http, wait).await.map_err(|_| problem)
            }
            Err(problem) => Err(problem),
        }
    }

    async fn meet_by_events(&self, http: Arc<Streamable>, wait: Duration) -> Result<Met, Problem> {
        http.speak(None);
        let listener = (self.listener)();
        let connection = Connection::open_events(self.upstream.clone(), http, listener).await?;
        let unfinished = connection.close_on_drop();
        let introduction = initialize(&connection, self.abilities, wait).await?;
        unfinished.disarm();
        Ok(Met { connection, introduction, manner: Manner::Sse })
    }

    fn may_be_modern(&self) -> bool {
        self.era != EraChoice::Only(Era::Legacy)
            && self.known.is_none_or(|known| known == Manner::Modern)
    }

    fn must_be_modern(&self) -> bool {
        self.era == EraChoice::Only(Era::Modern)
    }
}

/// Whether a failed question for the modern era leaves no hope for the legacy one.
fn settles(problem: &Problem) -> bool {
    match problem {
        Problem::Gone(_) => true,
        // Only a modern server says so. One that refuses our revision may still know older ones.
        Problem::Refused { code, .. } => matches!(code, -32020 | -32021),
        _ => false,
    }
}
