//! The manager's tools: how one is described, and all of them together.
//!
//! A tool is a [`Described`] with a function from the desk and its arguments, which were checked against the
//! input schema before, to what it gives. Its errors are told to the model.

mod declaring;
mod files;
mod guide;
mod namespaces;
mod packages;
mod secrets;
mod sources;
mod status;
mod trial;

use std::convert::Infallible;
use std::sync::Arc;

use gateway::own_tools::{OwnTools, Tool};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{CALL_TIME_MAX, SLOW_CALLS_MAX};

/// What a tool does to the world, for clients that ask people first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// As `Reads`, but at other machines.
    Asks,
    /// Twice is like once.
    Writes,
    /// As `Writes`, but by the core, which takes its time.
    Reloads,
    /// What was there is gone.
    Destroys,
    /// As `Writes`, and it reaches other machines.
    Fetches,
    /// Whatever a tool of somebody else does.
    Runs,
}

/// Whose turn it is to run.
enum Turns {
    /// With all quick tools, which wait for files alone: one after another.
    Shared(Arc<Semaphore>),
    /// For this tool alone, which may wait for minutes: for other machines, for packages, for the core.
    Own(&'static str, Arc<Semaphore>),
}

impl Turns {
    fn new(name: &'static str, effect: Effect, desk: &Desk) -> Turns {
        match effect {
            Effect::Reads | Effect::Writes | Effect::Destroys => {
                Turns::Shared(Arc::clone(&desk.calls))
            }
            Effect::Asks | Effect::Reloads | Effect::Fetches | Effect::Runs => {
                Turns::Own(name, Arc::new(Semaphore::new(SLOW_CALLS_MAX)))
            }
        }
    }

    async fn take(&self) -> Result<Option<OwnedSemaphorePermit>, Error> {
        match self {
            Turns::Shared(all) => Ok(Arc::clone(all).acquire_owned().await.ok()),
            Turns::Own(tool, own) => {
                let turn = Arc::clone(own).try_acquire_owned();
                turn.map(Some).map_err(|_| Error::Busy { tool })
            }
        }
    }
}

/// A tool, apart from what it does.
pub struct Described {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub effect: Effect,
    /// The properties of its arguments.
    pub input: Value,
    /// The names of those that must be there.
    pub required: &'static [&'static str],
    /// What it gives in any case: a member and its type. The description says what else there is and what it means, so that
    /// nothing is paid for twice.
    pub output: (&'static str, &'static str),
}

/// What is a list.
const LIST: (&str, &str) = ("result", "array");

impl Described {
    /// Makes it a tool.
    pub fn does<F, R>(self, desk: &Arc<Desk>, run: F) -> Tool
    where
        F: Fn(Arc<Desk>, Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let schema = object(&self.input, self.required);
        let turns = Arc::new(Turns::new(self.name, self.effect, desk));
        let desk = Arc::clone(desk);
        let call = move |arguments| {
            let turns = Arc::clone(&turns);
            let running = run(Arc::clone(&desk), arguments);
            async move {
                let turn = turns.take().await.map_err(|error| error.to_string())?;
                let running = apart(turn, running);
                running.await.map_err(|error| error.to_string())
            }
        };
        let (member, kind) = self.output;
        let gives = json!({
            "type": "object", "properties": {member: {"type": kind}}, "required": [member],
        });
        let effect = self.effect;
        let hints = [
            ("readOnlyHint", matches!(effect, Effect::Reads | Effect::Asks), false),
            ("destructiveHint", matches!(effect, Effect::Destroys | Effect::Runs), true),
            ("idempotentHint", effect != Effect::Runs, false),
            (
                "openWorldHint",
                matches!(effect, Effect::Asks | Effect::Fetches | Effect::Runs),
                true,
            ),
        ];
        // What the protocol takes for granted, and what says nothing of a tool that only reads, need not be said.
        let is_said = |name: &str, holds: bool, usual: bool| {
            holds != usual && (!hints[0].1 || ["readOnlyHint", "openWorldHint"].contains(&name))
        };
        let said = hints.iter().filter(|(name, holds, usual)| is_said(name, *holds, *usual));
        let hints: Value = said.map(|(name, holds, _)| ((*name).to_owned(), *holds)).collect();
        Tool::new(self.name, self.description, &schema, call)
            .titled(self.title)
            .giving(&gives)
            .hinting(&hints)
    }
}

/// Runs what waits for files, locks and the safe, which may take seconds: not on a thread that serves others.
///
/// When nobody waits for it any more it is dropped, at the next point where it waits itself: what it writes, it writes
/// whole. It has its turn until then.
async fn apart<R>(turn: Option<OwnedSemaphorePermit>, running: R) -> Result<Value, Error>
where
    R: Future<Output = Result<Value, Error>> + Send + 'static,
{
    // Nothing is ever sent; it ends when it is dropped, with us.
    let (_waited_for, left) = oneshot::channel::<Infallible>();
    let here = Handle::current();
    let ended = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        here.block_on(async move {
            tokio::select! {
                ended = running => ended,
                _ = left => Err(Error::Left),
            }
        })
    });
    ended.await.unwrap_or(Err(Error::Fault))
}

/// All tools of the manager.
pub fn all(desk: &Arc<Desk>) -> OwnTools {
    let own = OwnTools::new("manager").expect("it is a name").unprefixed();
    let own = own.saying(guide::INSTRUCTIONS).within(CALL_TIME_MAX);
    let groups = [
        guide::tools(desk),
        namespaces::tools(desk),
        files::tools(desk),
        packages::tools(desk),
        declaring::tools(desk),
        secrets::tools(desk),
        trial::tools(desk),
        sources::tools(desk),
        status::tools(desk),
    ];
    groups.into_iter().flatten().fold(own, OwnTools::with)
}

/// The schema of arguments: an object with no other members.
fn object(properties: &Value, required: &[&str]) -> Value {
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// An argument that is a text; the schema has seen to that.
pub fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}

/// A text as a shell takes it for one word.
pub fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
