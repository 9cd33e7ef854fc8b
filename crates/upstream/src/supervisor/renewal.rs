//! Calls that are made again: their session was lost, or their header fields did not fit.

use std::sync::Arc;

use mcp::headers;
use mcp::items::{Definition, Kind};
use mcp::json;
use mcp::rpc::{Outcome, Raw};
use tokio::time::timeout;

use super::Upstream;
use crate::answer::Answer;
use crate::connection::{Call, Connection};
use crate::conversation::read_list;
use crate::error::Error;
use crate::limits::NEW_SESSION_MAX;

impl Upstream {
    /// Waits for the conversation that follows one whose session was lost.
    pub(super) async fn renewed(
        &self,
        old: &Arc<Connection>,
        call: &Call<'_>,
    ) -> Result<Arc<Connection>, Error> {
        let shared = self.0.connection.load_full();
        if !shared.is_some_and(|shared| Arc::ptr_eq(&shared, old)) {
            if let Some(relay) = &call.relay {
                self.forget_conversation(relay, old);
            }
            return self.connection_for(&mut call.clone()).await;
        }
        let mut status = self.0.status.subscribe();
        let renewing = async {
            loop {
                match self.0.connection.load_full() {
                    Some(connection) if Arc::ptr_eq(&connection, old) => {}
                    Some(connection) => return Ok(connection),
                    None => return Err(self.down()),
                }
                if status.changed().await.is_err() {
                    return Err(self.down());
                }
            }
        };
        let lost = || Error::SessionLost { upstream: self.name().clone() };
        timeout(NEW_SESSION_MAX, renewing).await.unwrap_or_else(|_| Err(lost()))
    }

    /// Makes a call again whose header fields did not fit, as the tool's definition is now.
    pub(super) async fn call_with_new_headers(
        &self,
        connection: &Connection,
        call: &Call<'_>,
        error: Raw,
    ) -> Answer {
        connection.note_change("tools");
        let Ok(list) = read_list(connection, Kind::Tool).await else {
            return Answer::Whole(Outcome::Error(error));
        };
        let mut tools =
            list.items.into_iter().filter_map(|raw| Definition::parse(Kind::Tool, raw).ok());
        let tool = tools.find(|tool| Some(tool.name()) == call.subject);
        let params = (call.params)("0").unwrap_or_default();
        let arguments = json::members(&params, ["arguments"]).ok().and_then(|[found]| found);
        let Some((tool, arguments)) = tool.zip(arguments) else {
            return Answer::Whole(Outcome::Error(error));
        };
        let mirrored = headers::mirror(tool.param_headers(), arguments);
        if mirrored == call.mirrored {
            return Answer::Whole(Outcome::Error(error));
        }
        let again = Call { mirrored: &mirrored, ..call.clone() };
        connection.call(&again).await.unwrap_or(Answer::Whole(Outcome::Error(error)))
    }
}

/// Whether a call was refused because its header fields did not fit its body.
pub(super) fn is_header_mismatch(call: &Call<'_>, error: &Raw) -> bool {
    call.method == "tools/call" && matches!(error.members(["code"]), Ok([Some("-32020")]))
}
