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

use std::sync::Arc;

use gateway::own_tools::{OwnTools, Tool};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::desk::Desk;
use crate::error::Error;
use crate::limits::CALL_TIME_MAX;

/// What a tool does to the world, for clients that ask people first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// As `Reads`, but at other machines.
    Asks,
    /// Twice is like once.
    Writes,
    /// What was there is gone.
    Destroys,
    /// As `Writes`, and it reaches other machines.
    Fetches,
    /// Whatever a tool of somebody else does.
    Runs,
}

/// A tool, apart from what it does.
pub struct Described<'d> {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'d str,
    pub effect: Effect,
    /// The properties of its arguments.
    pub input: Value,
    /// The names of those that must be there.
    pub required: &'static [&'static str],
    /// What it gives, as a JSON Schema of an object.
    pub output: Value,
}

impl Described<'_> {
    /// Makes it a tool.
    pub fn does<F, R>(self, desk: &Arc<Desk>, run: F) -> Tool
    where
        F: Fn(Arc<Desk>, Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let schema = object(&self.input, self.required);
        let desk = Arc::clone(desk);
        let call = move |arguments| {
            let calls = Arc::clone(&desk.calls);
            let running = run(Arc::clone(&desk), arguments);
            async move {
                // It waits for files, locks and the safe, which may take seconds: not on a thread that serves others.
                let _permit = calls.acquire_owned().await;
                let here = Handle::current();
                let ended = tokio::task::spawn_blocking(move || here.block_on(running));
                match ended.await {
                    Ok(ended) => ended.map_err(|error| error.to_string()),
                    Err(_) => Err("a fault of our own; see the log of the manager".to_owned()),
                }
            }
        };
        let effect = self.effect;
        let hints = json!({
            "title": self.title,
            "readOnlyHint": matches!(effect, Effect::Reads | Effect::Asks),
            "destructiveHint": matches!(effect, Effect::Destroys | Effect::Runs),
            "idempotentHint": effect != Effect::Runs,
            "openWorldHint": matches!(effect, Effect::Asks | Effect::Fetches | Effect::Runs),
        });
        Tool::new(self.name, self.description, &schema, call)
            .titled(self.title)
            .giving(&self.output)
            .hinting(&hints)
    }
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

/// The schema of an object with no other members.
pub fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of a list as it is given: in the member `result` of an object.
pub fn list(item: &Value) -> Value {
    object(&json!({"result": {"type": "array", "items": item}}), &["result"])
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
