//! What the upstreams offer and what is wrong with them, for people and as JSON.

mod cost;
mod fit;

use std::fmt::Write as _;

use catalog::naming::Renamed;
use catalog::snapshot::{Catalog, Collision, Item};
use catalog::surface::Surface;
use catalog::tokens;
use comfy_table::Table;
use gateway::Gateway;
use mcp::items::Kind;
use mcp::names::UpstreamName;
use mcp::text::{shorten, tame};
use serde_json::{Value, json};
use upstream::supervisor::Upstream;
use upstream::supervisor::condition::Condition;

use self::cost::Cost;
use self::fit::Fit;
use crate::cli::Check;
use crate::host::Host;

/// The state of all upstreams at one moment.
pub struct Report {
    rows: Vec<Row>,
    collisions: Vec<String>,
    withheld: Vec<String>,
    renamed: Vec<String>,
    /// Rules that are about nothing.
    unmatched: Vec<String>,
    /// What was remarked about the file.
    warnings: Vec<String>,
    cost: Option<Cost>,
    /// What fits the client that was asked about.
    fit: Option<Fit>,
}

struct Row {
    name: String,
    state: &'static str,
    /// What is wrong, in full.
    problem: Option<String>,
    /// What should be known though nothing is wrong, in full.
    remark: Option<String>,
    /// How far it is confined, if it is a worker.
    sandbox: Option<String>,
    stderr: String,
    revision: Option<&'static str>,
    tools: usize,
    resources: usize,
    prompts: usize,
    startup_ms: Option<u64>,
    /// What the definitions of all its tools cost, estimated.
    tokens: usize,
}

impl Report {
    pub fn of(gateway: &Gateway) -> Report {
        let catalog = gateway.catalog();
        let mut withheld = Vec::new();
        for (_, upstream) in gateway.upstreams() {
            for flawed in upstream.inventory().flawed() {
                let (kind, name) = (flawed.kind.noun(), tame(&flawed.name));
                withheld.push(format!(
                    "{kind} `{name}` of `{}`: {}",
                    upstream.name(),
                    flawed.reason
                ));
            }
        }
        let collision = |collision: &Collision| {
            let keeper = match &collision.kept {
                Some(keeper) => format!("`{keeper}`, which is listed first"),
                None => "toolman itself".into(),
            };
            let (kind, name) = (collision.kind.noun(), &collision.name);
            format!("{kind} `{name}` of `{}`: the name belongs to {keeper}", collision.dropped)
        };
        // Where a client sees one namespace only, another one may have the same names.
        let namespace = |name: &UpstreamName| {
            let found = gateway.upstreams().find(|(_, upstream)| upstream.name() == name);
            found.map(|(namespace, _)| namespace)
        };
        let is_seen = |collision: &&Collision| {
            let is_apart = |kept: &UpstreamName| namespace(kept) != namespace(&collision.dropped);
            gateway.surface() != Surface::Namespace
                || !collision.kept.as_ref().is_some_and(is_apart)
        };
        Report {
            rows: gateway.upstreams().map(|(_, upstream)| Row::of(&upstream, &catalog)).collect(),
            collisions: catalog.collisions().filter(is_seen).map(collision).collect(),
            withheld,
            renamed: catalog.renamed().map(renamed).collect(),
            unmatched: Vec::new(),
            warnings: Vec::new(),
            cost: None,
            fit: None,
        }
    }

    /// The same with all that only `toolman check` tells.
    pub fn of_all(host: &mut Host, agent: Option<&str>, check: &Check) -> Report {
        let client = check.client.as_deref();
        Report {
            unmatched: host.rules.unmatched(&host.gateway),
            warnings: std::mem::take(&mut host.warnings),
            cost: Cost::of(&host.gateway, agent, client),
            fit: client.map(|client| Fit::of(&host.gateway, client)),
            ..Report::of(&host.gateway)
        }
    }

    pub fn is_fine(&self) -> bool {
        let is_ready = |row: &Row| row.problem.is_none();
        let is_whole = self.collisions.is_empty() && self.withheld.is_empty();
        is_whole && self.unmatched.is_empty() && self.rows.iter().all(is_ready)
    }

    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header([
            "server",
            "state",
            "revision",
            "tools",
            "resources",
            "prompts",
            "start ms",
            "tokens~",
        ]);
        for row in &self.rows {
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            table.add_row([
                row.name.clone(),
                row.state.into(),
                or_dash(row.revision.map(str::to_owned)),
                row.tools.to_string(),
                row.resources.to_string(),
                row.prompts.to_string(),
                or_dash(row.startup_ms.map(|ms| ms.to_string())),
                row.tokens.to_string(),
            ]);
        }
        if let [_, _, ..] = &self.rows[..] {
            let total = |part: fn(&Row) -> usize| self.rows.iter().map(part).sum::<usize>();
            let sums = [total(|row| row.tools), total(|row| row.resources)];
            let [tools, resources] = sums.map(|sum| sum.to_string());
            table.add_row([
                "total".to_owned(),
                String::new(),
                String::new(),
                tools,
                resources,
                total(|row| row.prompts).to_string(),
                String::new(),
                total(|row| row.tokens).to_string(),
            ]);
        }
        table.to_string()
    }

    /// Table and problems as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.table());
        for row in &self.rows {
            if let Some(problem) = &row.problem {
                let problem = problem.lines().map(tame).collect::<Vec<_>>().join("\n    ");
                _ = writeln!(text, "\nserver `{}` {problem}", row.name);
            }
        }
        for row in &self.rows {
            if let Some(remark) = &row.remark {
                _ = writeln!(text, "\nserver `{}` {}", row.name, tame(remark));
            }
        }
        for row in &self.rows {
            if let Some(sandbox) = &row.sandbox {
                _ = writeln!(text, "\nsandbox of `{}`: {}", row.name, tame(sandbox));
            }
        }
        for (title, lines) in [
            ("not exposed, the name is taken", &self.collisions),
            ("withheld", &self.withheld),
            ("shown under another name", &self.renamed),
            ("rules about nothing", &self.unmatched),
            ("worth knowing", &self.warnings),
        ] {
            if !lines.is_empty() {
                _ = writeln!(text, "\n{title}:\n  {}", lines.join("\n  "));
            }
        }
        _ = writeln!(text, "\n{}", self.verdict());
        if let Some(cost) = &self.cost {
            _ = write!(text, "\n{}", cost.text());
        }
        if let Some(fit) = &self.fit {
            _ = write!(text, "\n{}", fit.text());
        }
        text
    }

    fn verdict(&self) -> String {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            number => Some(format!("{number} {many}")),
        };
        let failed = self.rows.iter().filter(|row| row.problem.is_some()).count();
        let wrong: Vec<_> = [
            count(failed, "server with a problem", "servers with problems"),
            count(self.collisions.len(), "name that is taken", "names that are taken"),
            count(self.withheld.len(), "item withheld", "items withheld"),
            count(self.unmatched.len(), "rule about nothing", "rules about nothing"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if wrong.is_empty() {
            return "all is well; tokens are estimated".to_owned();
        }
        format!("something is wrong, see above: {}; tokens are estimated", wrong.join(", "))
    }

    pub fn json(&self) -> String {
        let row = |row: &Row| {
            json!({
                "name": row.name, "state": row.state, "problem": row.problem,
                "remark": row.remark,
                "revision": row.revision, "tools": row.tools, "resources": row.resources,
                "prompts": row.prompts, "startup_ms": row.startup_ms,
                "tokens_estimated": row.tokens, "sandbox": row.sandbox, "stderr": row.stderr,
            })
        };
        let report = json!({
            "ok": self.is_fine(),
            "servers": self.rows.iter().map(row).collect::<Vec<Value>>(),
            "collisions": self.collisions,
            "withheld": self.withheld,
            "renamed": self.renamed,
            "unmatched": self.unmatched,
            "warnings": self.warnings,
            "tokens": self.cost.as_ref().map(Cost::json),
            "client": self.fit.as_ref().map(Fit::json),
        });
        format!("{report:#}\n")
    }
}

/// What an item is called, and why.
fn renamed(item: &Item) -> String {
    let (kind, own, name) = (item.kind.noun(), shorten(&item.origin.name), &item.name);
    let reason = item.renamed.map_or("", Renamed::reason);
    format!("{kind} `{own}` of `{}` as `{name}`: {reason}", item.origin.upstream)
}

impl Row {
    fn of(upstream: &Upstream, catalog: &Catalog) -> Row {
        let status = upstream.status();
        let Condition { state, problem, remark, sandbox, .. } = upstream.condition();
        let inventory = upstream.inventory();
        let is_of = |item: &&Item| item.origin.upstream == *upstream.name();
        let tools = catalog.items(Kind::Tool).iter().filter(is_of);
        Row {
            name: upstream.name().to_string(),
            state,
            problem,
            remark,
            sandbox,
            stderr: upstream.stderr(),
            revision: status.introduction.map(|known| known.revision.as_str()),
            tools: inventory.of(Kind::Tool).len(),
            resources: inventory.of(Kind::Resource).len() + inventory.of(Kind::Template).len(),
            prompts: inventory.of(Kind::Prompt).len(),
            startup_ms: status.startup.and_then(|startup| startup.as_millis().try_into().ok()),
            tokens: tools.map(|item| tokens::estimate(&item.definition)).sum(),
        }
    }
}
