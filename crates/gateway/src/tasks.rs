//! Tasks: work that outlives the request that began it.
//!
//! An upstream makes the ids; here is kept whose a task is and where it runs. Between the eras
//! tasks are not carried: each is offered to clients of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;
use mcp::json;
use mcp::modern::TASKS;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use mcp::version::Era;
use upstream::answer::Answer;
use upstream::connection::Call;
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::auth::Identity;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::limits::{TASK_PAGES_MAX, TASKS_MAX};
use crate::request::Terms;

/// Whose the tasks are, the oldest forgotten first.
#[derive(Debug, Default)]
pub struct Tasks {
    owners: HashMap<Task, Arc<Identity>>,
    order: VecDeque<Task>,
}

/// A task: two upstreams may use the same id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Task {
    upstream: UpstreamName,
    id: String,
}

impl Task {
    fn at(upstream: &Upstream, id: &str) -> Task {
        Task { upstream: upstream.name().clone(), id: id.to_owned() }
    }
}

impl Tasks {
    fn note(&mut self, task: Task, owner: Arc<Identity>) {
        if self.owners.insert(task.clone(), owner).is_none() {
            self.order.push_back(task);
        }
        if self.order.len() > TASKS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.owners.remove(&oldest);
        }
    }
}

/// Whether an era has such a method.
pub(crate) fn has_method(era: Era, method: &str) -> bool {
    match era {
        Era::Legacy => {
            matches!(method, "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list")
        }
        Era::Modern => matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel"),
    }
}

impl Gateway {
    /// Answers a request about tasks.
    pub(crate) async fn handle_task(&self, asking: &Asking<'_>) -> Result<Answer, Error> {
        let method = asking.request.method.as_str();
        let runners = self.task_runners(asking);
        if runners.is_empty() {
            return Err(Error::Method(method.to_owned()));
        }
        if let Terms::Own(envelope) = &asking.request.terms
            && !envelope.extends_to(TASKS)
        {
            return Err(Error::MissingExtension(TASKS));
        }
        if method == "tasks/list" {
            return self.list_tasks(asking, &runners).await.map(Answer::Whole);
        }
        let params = asking.request.subject("tasks/…")?;
        let id = params.name();
        let upstream = self.runner_of(asking, id, &runners)?;
        self.forward(asking, method, params, upstream, id, &[]).await
    }

    /// The upstream at which a task of this caller runs.
    fn runner_of<'a>(
        &self,
        asking: &Asking<'_>,
        id: &str,
        runners: &'a [Upstream],
    ) -> Result<&'a Upstream, Error> {
        let tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = |runner: &Upstream| tasks.owners.get(&Task::at(runner, id));
        let is_own = |runner: &&'a Upstream| owner(runner) == Some(&asking.client.caller.identity);
        match (runners.iter().find(is_own), runners) {
            (Some(runner), _) => Ok(runner),
            // It may have been begun at another replica, or before we were started.
            (None, [one]) if owner(one).is_none() => Ok(one),
            _ => Err(Error::UnknownTask(id.to_owned())),
        }
    }

    /// Notes whose a task is, if that is what a call has led to.
    pub(crate) fn note_task(&self, asking: &Asking<'_>, upstream: &Upstream, answer: &Answer) {
        let Answer::Whole(Outcome::Result(result)) = answer else { return };
        if !runs_tasks(upstream, asking.era) {
            return;
        }
        if let Some(id) = begun_task(result, asking.era) {
            let (task, owner) =
                (Task::at(upstream, &id), Arc::clone(&asking.client.caller.identity));
            self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner).note(task, owner);
        }
    }

    /// The caller's own tasks at all upstreams.
    async fn list_tasks(
        &self,
        asking: &Asking<'_>,
        runners: &[Upstream],
    ) -> Result<Outcome, Error> {
        // Side by side, and without those that do not answer.
        let lists = join_all(runners.iter().map(read_pages)).await;
        let mut own = Vec::new();
        for (upstream, pages) in runners.iter().zip(lists) {
            for page in pages.unwrap_or_default() {
                let [tasks] = page.members(["tasks"]).unwrap_or_default();
                for task in json::elements(tasks.unwrap_or("[]")).unwrap_or_default() {
                    if self.is_own(asking, upstream, task) {
                        own.push(task.to_owned());
                    }
                }
            }
        }
        let result = format!(r#"{{"tasks":[{}]}}"#, own.join(","));
        Ok(Outcome::Result(Raw::trusted(result)))
    }

    fn is_own(&self, asking: &Asking<'_>, upstream: &Upstream, task: &str) -> bool {
        let id = json::members(task.as_bytes(), ["taskId"]).ok().and_then(|[id]| id);
        let Some(id) = id.and_then(json::string) else { return false };
        let tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.owners.get(&Task::at(upstream, &id)) == Some(&asking.client.caller.identity)
    }

    fn task_runners(&self, asking: &Asking<'_>) -> Vec<Upstream> {
        let view = asking.client.view();
        let shown = self.upstreams_in(&view);
        shown.filter(|upstream| runs_tasks(upstream, asking.era)).collect()
    }
}

/// Whether an upstream runs tasks in the manner of an era.
fn runs_tasks(upstream: &Upstream, era: Era) -> bool {
    upstream.era() == era && upstream.knows(|known| known.runs_tasks)
}

/// The id of the task that a call has begun, if it has.
fn begun_task(result: &Raw, era: Era) -> Option<String> {
    let id = match era {
        Era::Legacy => {
            let [task] = result.members(["task"]).ok()?;
            let [id] = json::members(task?.as_bytes(), ["taskId"]).ok()?;
            id?
        }
        Era::Modern => {
            let [kind, id] = result.members(["resultType", "taskId"]).ok()?;
            id.filter(|_| kind == Some(r#""task""#))?
        }
    };
    json::string(id).map(String::from)
}

/// The list of an upstream, a bounded number of pages of it.
async fn read_pages(upstream: &Upstream) -> Result<Vec<Raw>, Error> {
    let mut pages = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..TASK_PAGES_MAX {
        let params = |_: &str| {
            cursor.as_ref().map(|cursor| format!(r#"{{"cursor":{cursor}}}"#).into_bytes())
        };
        let call = Call {
            method: "tasks/list",
            subject: None,
            params: &params,
            mirrored: &[],
            may_come: false,
            relay: None,
            progress_token: None,
            timeout: upstream.settings().call_timeout,
        };
        let Outcome::Result(page) = upstream.call(call).await?.whole().await? else { break };
        let next = page.members(["nextCursor"]).ok().and_then(|[next]| next).map(str::to_owned);
        pages.push(page);
        cursor = next.filter(|next| next.starts_with('"'));
        if cursor.is_none() {
            break;
        }
    }
    Ok(pages)
}
