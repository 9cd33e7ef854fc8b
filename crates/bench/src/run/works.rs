//! The works of the benchmark that are a load on a gateway: the same question again and again.

use crate::load::Question;
use crate::load::request::Dialect;

/// One work, before anything is started.
#[derive(Clone, Debug)]
pub struct Plan {
    pub letter: char,
    pub title: String,
    pub kind: Kind,
    pub upstreams: usize,
    /// Tools of each upstream.
    pub tools: usize,
    pub dialect: Dialect,
    pub question: Question,
    pub clients: usize,
    /// Whether every question is the first of a new client.
    pub is_fresh: bool,
}

/// How the upstreams are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Http,
    Stdio,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Http => "HTTP",
            Kind::Stdio => "stdio",
        }
    }
}

/// All of them, in the order of the table.
pub fn all() -> Vec<Plan> {
    let mut plans = calls();
    plans.extend(lists());
    plans.extend(results());
    plans.extend(setups());
    plans
}

fn call() -> Question {
    Question::Call { tool: "echo".to_owned(), bytes: 0 }
}

fn base(letter: char, kind: Kind, title: String) -> Plan {
    Plan {
        letter,
        title,
        kind,
        upstreams: 1,
        tools: 10,
        dialect: Dialect::Legacy,
        question: call(),
        clients: 16,
        is_fresh: false,
    }
}

fn calls() -> Vec<Plan> {
    let mut plans = Vec::new();
    for kind in [Kind::Http, Kind::Stdio] {
        for clients in [1, 16, 64] {
            let title = format!("tools/call, {} upstream, {clients} at once", kind.name());
            plans.push(Plan { clients, ..base('a', kind, title) });
        }
    }
    let title = "tools/call, HTTP upstream, 64 at once, modern era".to_owned();
    let dialect = Dialect::Modern;
    plans.insert(3, Plan { clients: 64, dialect, ..base('a', Kind::Http, title) });
    plans
}

fn lists() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (tools, upstreams) in [
        (10, 1),
        (10, 10),
        (1_000, 1),
        (1_000, 10),
        (1_000, 50),
        (10_000, 1),
        (10_000, 10),
        (10_000, 50),
    ] {
        let title = format!("tools/list, {tools} tools of {upstreams} upstreams");
        let question = Question::List { tools };
        let (clients, each) = (4, tools / upstreams);
        plans.push(Plan {
            upstreams,
            tools: each,
            question,
            clients,
            ..base('b', Kind::Http, title)
        });
    }
    plans
}

fn results() -> Vec<Plan> {
    let mut plans = Vec::new();
    for kind in [Kind::Http, Kind::Stdio] {
        for (bytes, size) in
            [(1_000, "1 KB"), (100_000, "100 KB"), (1_000_000, "1 MB"), (10_000_000, "10 MB")]
        {
            let title = format!("result of {size}, {} upstream", kind.name());
            let question = Question::Call { tool: "big".to_owned(), bytes };
            plans.push(Plan { question, clients: 4, ..base('c', kind, title) });
        }
    }
    plans
}

fn setups() -> Vec<Plan> {
    let plan = |dialect, title: &str| {
        let base = base('h', Kind::Http, title.to_owned());
        Plan { dialect, clients: 1, is_fresh: true, ..base }
    };
    vec![
        plan(Dialect::Legacy, "new client to first answer, legacy era"),
        plan(Dialect::Modern, "new client to first answer, modern era"),
    ]
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn every_work_has_a_title_of_its_own_and_all_its_tools() {
        let plans = all();
        let titles: std::collections::BTreeSet<_> = plans.iter().map(|plan| &plan.title).collect();
        assert_eq!(titles.len(), plans.len());
        for plan in &plans {
            if let crate::load::Question::List { tools } = plan.question {
                assert_eq!(plan.tools * plan.upstreams, tools, "{}", plan.title);
            }
        }
    }
}
