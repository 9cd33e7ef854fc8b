//! Hearing of changes: which lists and resources a server is asked to tell about, and how.
//!
//! In the legacy era resources are subscribed to one by one; in the modern one a stream says what
//! is wanted of it, and is opened anew when that is something else.

use std::collections::BTreeSet;
use std::pin::Pin;

use mcp::json;
use mcp::log_level::LogLevel;
use mcp::rpc::Raw;
use mcp::version::Era;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::connection::{Connection, pause};
use crate::conversation::{Introduction, Problem, ask};
use crate::limits::{CALL_TIMEOUT, CALL_TOTAL_MAX, LISTEN_OVERLAP, REOPEN_DELAY_MAX};

/// The resources that somebody wants to hear of.
pub type Watched = BTreeSet<String>;

/// Keeps hearing for as long as the conversation lasts.
pub async fn hear(
    connection: &Connection,
    introduction: &Introduction,
    watched: watch::Receiver<Watched>,
    level: watch::Receiver<Option<LogLevel>>,
) {
    match introduction.revision.era() {
        Era::Legacy => {
            tokio::join!(
                hear_one_client(connection, introduction, level),
                keep_subscribed(connection, introduction, watched)
            );
        }
        Era::Modern => keep_listening(connection, introduction, watched).await,
    }
}

/// Keeps hearing what matters to one client alone: lists and resources are the same for all.
pub async fn hear_one_client(
    connection: &Connection,
    introduction: &Introduction,
    level: watch::Receiver<Option<LogLevel>>,
) {
    // A modern server is told in every request.
    if introduction.revision.era() == Era::Legacy {
        tokio::join!(connection.follow_feed(), keep_level(connection, introduction, level));
    }
}

/// Tells how grave log messages must be, whenever that changes; one level after the other, so
/// that the last one counts.
async fn keep_level(
    connection: &Connection,
    introduction: &Introduction,
    mut level: watch::Receiver<Option<LogLevel>>,
) {
    if !introduction.declares("logging") {
        return;
    }
    loop {
        let wanted = *level.borrow_and_update();
        if let Some(wanted) = wanted {
            let members = format!(r#""level":"{}""#, wanted.as_str());
            let told = ask(connection, "logging/setLevel", &members, CALL_TIMEOUT).await;
            if let Err(problem) = told {
                tracing::warn!("could not set the log level: {problem}");
            }
        }
        if level.changed().await.is_err() {
            return;
        }
    }
}

/// Subscribes to what is wanted and unsubscribes from what is not.
async fn keep_subscribed(
    connection: &Connection,
    introduction: &Introduction,
    mut watched: watch::Receiver<Watched>,
) {
    if !introduction.declares_part("resources", "subscribe") {
        return;
    }
    let mut held = Watched::new();
    loop {
        let wanted = watched.borrow_and_update().clone();
        let gained = wanted.difference(&held).map(|uri| ("resources/subscribe", uri));
        let given_up = held.difference(&wanted).map(|uri| ("resources/unsubscribe", uri));
        for (method, uri) in gained.chain(given_up) {
            let members = format!(r#""uri":{}"#, json::quote(uri));
            if let Err(problem) = ask(connection, method, &members, CALL_TIMEOUT).await {
                tracing::warn!("`{method}` failed: {problem}");
            }
        }
        held = wanted;
        if watched.changed().await.is_err() {
            return;
        }
    }
}

type Listening<'a> = Pin<Box<dyn Future<Output = Result<Raw, Problem>> + Send + 'a>>;

/// Keeps a stream open for what is wanted; of what is refused nothing is asked again before
/// something else is wanted.
async fn keep_listening(
    connection: &Connection,
    introduction: &Introduction,
    mut watched: watch::Receiver<Watched>,
) {
    let listen = |wanted: &Watched| -> Option<Listening<'_>> {
        let members = filter(introduction, wanted)?;
        Some(Box::pin(async move {
            ask(connection, "subscriptions/listen", &members, CALL_TOTAL_MAX).await
        }))
    };
    let mut attempts = 0;
    let mut opened = Instant::now();
    let mut wanted = watched.borrow_and_update().clone();
    let mut current = listen(&wanted);
    // The stream before is kept for a moment, so that nothing falls in between.
    let mut former: Option<Listening<'_>> = None;
    loop {
        tokio::select! {
            ended = ended(&mut current) => {
                if let Err(problem) = &ended {
                    tracing::debug!("a stream of changes ended: {problem}");
                }
                if is_refusal(&ended) {
                    tracing::warn!("it does not tell about changes: {ended:?}");
                    // It may be one resource that it does not like; the lists may do.
                    let had_resources = !std::mem::take(&mut wanted).is_empty();
                    current = listen(&wanted).filter(|_| had_resources);
                    continue;
                }
                attempts = if opened.elapsed() > REOPEN_DELAY_MAX { 0 } else { attempts + 1 };
                sleep(pause(None, attempts)).await;
                if watched.has_changed().unwrap_or(true) {
                    wanted.clone_from(&watched.borrow_and_update());
                }
                current = listen(&wanted);
                opened = Instant::now();
                // What changed meanwhile was not told.
                for capability in ["tools", "resources", "prompts"] {
                    connection.note_change(capability);
                }
            }
            () = lapse(&mut former) => former = None,
            changed = watched.changed() => {
                if changed.is_err() {
                    return;
                }
                wanted.clone_from(&watched.borrow_and_update());
                former = current;
                current = listen(&wanted);
                opened = Instant::now();
            }
        }
    }
}

async fn ended(listening: &mut Option<Listening<'_>>) -> Result<Raw, Problem> {
    match listening {
        Some(listening) => listening.await,
        None => std::future::pending().await,
    }
}

/// Lets a stream go on for a moment.
async fn lapse(former: &mut Option<Listening<'_>>) {
    if former.is_none() {
        return std::future::pending().await;
    }
    tokio::select! {
        _ = ended(former) => {}
        () = sleep(LISTEN_OVERLAP) => {}
    }
}

fn is_refusal(ended: &Result<Raw, Problem>) -> bool {
    match ended {
        Err(Problem::MethodNotFound { .. } | Problem::Refused { .. }) => true,
        // Too slow or too often: both pass.
        Err(Problem::Status { status: 408 | 429, .. }) => false,
        Err(Problem::Status { status, .. }) => (400..500).contains(status),
        _ => false,
    }
}

/// What to listen for, as members of the parameters; `None` if there is nothing.
fn filter(introduction: &Introduction, wanted: &Watched) -> Option<String> {
    let lists = [
        ("tools", r#""toolsListChanged":true"#),
        ("prompts", r#""promptsListChanged":true"#),
        ("resources", r#""resourcesListChanged":true"#),
    ];
    let told =
        |(capability, _): &(&'static str, _)| introduction.declares_part(capability, "listChanged");
    let mut parts: Vec<String> =
        lists.into_iter().filter(told).map(|(_, part)| part.to_owned()).collect();
    if !wanted.is_empty() {
        let uris: Vec<String> = wanted.iter().map(|uri| json::quote(uri)).collect();
        parts.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
    }
    (!parts.is_empty()).then(|| format!(r#""notifications":{{{}}}"#, parts.join(",")))
}
