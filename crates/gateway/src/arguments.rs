//! Arguments of Python tools, looked at before their worker runs. TD-149
//!
//! The worker looks, too, and has the last word; what is surely wrong need not reach it. Schemas are read once, when a
//! worker has told what it has.

use std::sync::Arc;

use catalog::schema::Mismatch;
use catalog::schema::sure::Sure;
use foldhash::{HashMap, HashMapExt as _};
use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::names::UpstreamName;
use mcp::rpc::Raw;
use serde_json::Value;
use upstream::error::Error as Problem;
use upstream::python::protocol::{Failure, ToolFault};
use upstream::supervisor::Upstream;

use crate::Gateway;
use crate::error::Error;

/// Faults that the message has; the details have all.
const WORDED_MAX: usize = 5;

/// The checks of all workers that have told what they have.
pub(crate) type Checks = HashMap<UpstreamName, Arc<Check>>;

/// What the tools of one worker take.
pub(crate) struct Check {
    upstream: Upstream,
    inventory: Arc<Inventory>,
    exact: Arc<Vec<String>>,
    tools: HashMap<String, Sure>,
}

impl Check {
    fn of(upstream: &Upstream, inventory: Arc<Inventory>, exact: Arc<Vec<String>>) -> Check {
        let mut tools = HashMap::new();
        for tool in inventory.of(Kind::Tool) {
            let Ok([Some(schema)]) = tool.raw().members(["inputSchema"]) else { continue };
            let schema = serde_json::from_str::<Value>(schema).ok();
            let sure = schema.filter(|_| exact.iter().any(|name| name == tool.name()));
            if let Some(sure) = sure.and_then(|schema| Sure::of(&schema)) {
                let sure = if upstream.converts() { sure.converting() } else { sure };
                tools.insert(tool.name().to_owned(), sure);
            }
        }
        Check { upstream: upstream.clone(), inventory, exact, tools }
    }

    /// Whether it is about what an upstream has now.
    fn is_of(&self, upstream: &Upstream) -> bool {
        self.upstream.is(upstream)
            && Arc::ptr_eq(&self.inventory, &upstream.inventory())
            && Arc::ptr_eq(&self.exact, &upstream.exact())
    }
}

impl Gateway {
    /// Reads the schemas of workers that have told something else than before.
    pub(crate) fn renew_checks(&self) {
        let former = self.0.checks.load();
        let members = self.members();
        let workers = members.iter().map(|(_, upstream)| upstream);
        let workers: Vec<_> = workers.filter(|upstream| !upstream.exact().is_empty()).collect();
        let is_known = |upstream: &&Upstream| {
            former.get(upstream.name()).is_some_and(|check| check.is_of(upstream))
        };
        if workers.len() == former.len() && workers.iter().all(is_known) {
            return;
        }
        let mut checks = Checks::new();
        for upstream in workers {
            let known = former.get(upstream.name()).filter(|check| check.is_of(upstream));
            let check = known.cloned().unwrap_or_else(|| {
                Arc::new(Check::of(upstream, upstream.inventory(), upstream.exact()))
            });
            checks.insert(upstream.name().clone(), check);
        }
        self.0.checks.store(Arc::new(checks));
    }

    /// Refuses arguments that are surely wrong.
    pub(crate) fn check_arguments(
        &self,
        upstream: &Upstream,
        tool: &str,
        arguments: Option<&str>,
    ) -> Result<(), Error> {
        let checks = self.0.checks.load();
        let check = checks.get(upstream.name()).filter(|check| check.is_of(upstream));
        let Some(sure) = check.and_then(|check| check.tools.get(tool)) else { return Ok(()) };
        let arguments = arguments.filter(|arguments| *arguments != "null").unwrap_or("{}");
        let faults = sure.faults(arguments);
        if faults.is_empty() {
            return Ok(());
        }
        let failure = worded(&faults);
        Err(Error::Upstream(Problem::Tool { upstream: upstream.name().clone(), failure }))
    }
}

/// Faults as a worker words them.
fn worded(faults: &[Mismatch]) -> Failure {
    let place = |at: &str| if at.is_empty() { "/".to_owned() } else { at.to_owned() };
    let line = |fault: &Mismatch| format!("{}: {}", place(&fault.at), fault.problem);
    let message: Vec<_> = faults.iter().take(WORDED_MAX).map(line).collect();
    let error = |fault: &Mismatch| {
        let (path, message) = (json::quote(&fault.at), json::quote(&fault.problem));
        format!(r#"{{"path":{path},"message":{message}}}"#)
    };
    let errors: Vec<_> = faults.iter().map(error).collect();
    let details = format!(r#"{{"errors":[{}]}}"#, errors.join(","));
    Failure {
        fault: ToolFault::InvalidArguments,
        message: message.join("; "),
        details: Some(Raw::trusted(details)),
    }
}
