//! Batches: several messages in one JSON array, in the one revision that has them.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use gateway::Gateway;
use gateway::client::{Client, Outlet};
use mcp::rpc;

use crate::reply;

/// The messages of a frame, if it is a batch and this client may send one.
pub fn of(client: &Client, frame: &Bytes) -> Option<Vec<Bytes>> {
    let revision = client.introduction()?.revision;
    if revision.takes_batches() { rpc::batch(frame) } else { None }
}

/// Takes the messages side by side; the array of answers, unless there is none.
pub async fn answer(
    gateway: &Gateway,
    client: &Arc<Client>,
    outlet: &Outlet,
    messages: Vec<Bytes>,
) -> Option<Bytes> {
    let answers = messages.iter().map(|frame| answer_one(gateway, client, outlet, frame));
    let answers: Vec<Bytes> = join_all(answers).await.into_iter().flatten().collect();
    if answers.is_empty() {
        return None;
    }
    let mut array = vec![b'['];
    array.extend(answers.join(&b','));
    array.push(b']');
    Some(array.into())
}

async fn answer_one(
    gateway: &Gateway,
    client: &Arc<Client>,
    outlet: &Outlet,
    frame: &Bytes,
) -> Option<Bytes> {
    let message = match rpc::parse(frame) {
        Ok(message) => message,
        Err(rejection) => return Some(reply::to_rejected(&rejection)),
    };
    let request = gateway.take(client, message)?;
    let answer = gateway.handle(client, &request, outlet).await;
    reply::unless_cancelled(&request, answer).await
}
