//! The order of the rules, and the same rules written a second time in the plainest way.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mcp::names::{Namespace, UpstreamName};

use super::condition::{Condition, Moment, Window};
use super::{Agent, Fallback, Listed, Policies, Rights, Subject, Who};
use crate::patterns::Patterns;

fn listed(at: &str, names: &[&str]) -> Listed {
    Listed { at: at.into(), patterns: Patterns::parse(names).unwrap() }
}

fn by_server(lists: &[(&str, &[&str])]) -> BTreeMap<Box<str>, Listed> {
    lists.iter().map(|(server, names)| ((*server).into(), listed(server, names))).collect()
}

/// Two agents over what everybody may see.
fn policies() -> Policies {
    let dev = Agent {
        servers: Some(listed("dev.allowed_servers", &["git", "hub", "wiki"])),
        overrides: by_server(&[("git", &["log", "push"]), ("wiki", &[])]),
        ..Agent::default()
    };
    let glob = Agent {
        overrides: by_server(&[("git", &["*"]), ("hub", &["git:*", "hub:read"])]),
        ..Agent::default()
    };
    Policies {
        exposed: by_server(&[("git", &["status"]), ("hub", &["read", "list_*"]), ("wiki", &["*"])]),
        agents: [("dev".into(), dev), ("glob".into(), glob)].into(),
        dangerous: Some(listed("dangerous_tools", &["git:push", "hub:list_secrets"])),
        ..Policies::default()
    }
}

fn decide(policies: &Policies, rights: &Rights, server: &str, name: &str) -> (bool, Vec<String>) {
    let (upstream, namespace): (UpstreamName, Namespace) =
        (server.parse().unwrap(), server.parse().unwrap());
    let subject = Subject::new(&upstream, &namespace, name, &format!("{server}_{name}"));
    let mut steps = Vec::new();
    let allowed =
        policies.decide(rights, &subject, Moment(0), &mut |step| steps.push(step.to_string()));
    (allowed.is_some(), steps)
}

#[track_caller]
fn check(agent: Option<&str>, server: &str, name: &str, expected: bool, last_step: &str) {
    let policies = policies();
    let rights = policies.rights_of(Who { agent, ..Who::default() });
    let (allowed, steps) = decide(&policies, &rights, server, name);
    assert_eq!(allowed, expected, "{agent:?} {server} {name}: {steps:?}");
    assert_eq!(steps.last().unwrap(), last_step);
}

#[test]
fn server_outside_of_the_agents_list_is_denied() {
    // TF-06, TF-15, TF-27
    check(Some("dev"), "disk", "read", false, "`dev.allowed_servers` does not have `disk`: denied");
}

#[test]
fn override_that_is_present_decides_alone_also_when_empty() {
    // TF-07, TF-16, TF-28
    check(Some("dev"), "git", "log", true, "`git` has it: allowed");
    check(Some("dev"), "git", "status", false, "`git` does not have it: denied");
    check(Some("dev"), "wiki", "page", false, "`wiki` does not have it: denied");
}

#[test]
fn without_an_override_what_everybody_may_see_counts() {
    // TF-05, TF-17, TF-29, TF-31
    check(Some("dev"), "hub", "read", true, "`hub` has it: allowed");
    check(Some("dev"), "hub", "write", false, "`hub` does not have it: denied");
    check(None, "git", "status", true, "`git` has it: allowed");
    check(None, "git", "log", false, "`git` does not have it: denied");
    check(Some("stranger"), "git", "status", true, "`git` has it: allowed");
}

#[test]
fn what_no_list_is_about_is_denied_unless_the_default_allows_it() {
    // TF-08, TF-13, TF-18, TF-30
    let denied = "no list is about it, and `default_policy.allow_unknown_tools` is false: denied";
    check(None, "disk", "read", false, denied);
    let mut open = policies();
    open.fallback = Fallback { allows_unknown_tools: Some(true), ..Fallback::default() };
    assert!(decide(&open, &Rights::default(), "disk", "read").0);
    assert!(!decide(&open, &Rights::default(), "git", "log").0, "a list that is there decides");
    open.fallback.allows_unknown_servers = Some(false);
    assert!(!decide(&open, &Rights::default(), "disk", "read").0);
    assert!(decide(&Policies::default(), &Rights::default(), "disk", "read").0, "no rules at all");
}

#[test]
fn dangerous_tool_needs_a_list_of_the_agent_that_names_it_exactly() {
    // TF-09
    let own = "`dangerous_tools` has it, but the agent's own list names it";
    check(Some("dev"), "git", "push", true, own);
    let denied = "`dangerous_tools` has it, and no list of the agent names it exactly: denied";
    check(Some("glob"), "git", "push", false, denied);
    check(None, "hub", "list_secrets", false, denied);
}

#[test]
fn entries_may_be_patterns_and_qualified_names() {
    check(None, "hub", "list_issues", true, "`hub` has it: allowed");
    check(Some("glob"), "hub", "read", true, "`hub` has it: allowed");
    check(Some("glob"), "hub", "log", false, "`hub` does not have it: denied");
}

#[test]
fn caller_without_a_policy_can_be_denied_whole() {
    let strict = Policies { requires_agent: true, ..policies() };
    let stranger = strict.rights_of(Who { agent: Some("stranger"), ..Who::default() });
    assert!(!decide(&strict, &stranger, "git", "status").0);
    let dev = strict.rights_of(Who { agent: Some("dev"), ..Who::default() });
    assert!(decide(&strict, &dev, "git", "log").0);
    assert!(decide(&strict, &Rights::operator(), "disk", "format").0);
}

#[test]
fn older_lists_of_all_servers_allow_and_block() {
    let old = Agent {
        allowed: Some(listed("allowed_tools", &["git:log", "read"])),
        blocked: Some(listed("blocked_tools", &["hub:read"])),
        ..Agent::default()
    };
    let open = Agent { allows_unknown: Some(true), ..old.clone() };
    let policies = Policies {
        agents: [("old".into(), old), ("open".into(), open)].into(),
        ..Policies::default()
    };
    let can = |agent, server, name| {
        let rights = policies.rights_of(Who { agent: Some(agent), ..Who::default() });
        decide(&policies, &rights, server, name).0
    };
    assert!(can("old", "git", "log") && can("old", "disk", "read"));
    assert!(!can("old", "hub", "read") && !can("old", "git", "push"));
    assert!(can("open", "git", "push") && !can("open", "hub", "read"));
}

#[test]
fn conditions_narrow_by_time_and_address() {
    // TF-54
    let window = Window { days: [true; 7], from: 60, until: 120, ahead: 0 };
    let rule = |window, addresses: &[&str]| Condition {
        tools: listed("conditions", &["git:*"]),
        window,
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        arguments: None,
    };
    let agent = Agent {
        overrides: by_server(&[("git", &["log"]), ("hub", &["read"])]),
        conditions: vec![rule(Some(window), &[]), rule(None, &["10.0.0.0/8"])],
        ..Agent::default()
    };
    let policies = Policies { agents: [("dev".into(), agent)].into(), ..Policies::default() };
    let can = |address: Option<&str>, minute, server: &str, name: &str| {
        let address = address.map(|text| text.parse::<IpAddr>().unwrap());
        let rights = policies.rights_of(Who { agent: Some("dev"), address });
        let (upstream, namespace) = (server.parse().unwrap(), server.parse().unwrap());
        let subject = Subject::new(&upstream, &namespace, name, name);
        policies.decide(&rights, &subject, Moment(minute), &mut |_| {}).is_some()
    };
    assert!(can(Some("10.1.2.3"), 60, "git", "log"));
    assert!(can(Some("::ffff:10.1.2.3"), 60, "git", "log"), "the same address in IPv6");
    assert!(!can(Some("10.1.2.3"), 59, "git", "log"));
    assert!(!can(Some("192.168.1.1"), 60, "git", "log"));
    assert!(!can(None, 60, "git", "log"), "where there is no address none is the right one");
    assert!(can(None, 0, "hub", "read"), "it is about other tools");
}

/// The rules as the seed lists them, over plain sets of names; patterns are left out.
#[derive(Default)]
struct Model {
    exposed: BTreeMap<String, Vec<String>>,
    servers: Option<Vec<String>>,
    overrides: BTreeMap<String, Vec<String>>,
    dangerous: Vec<(String, String)>,
    allows_unknown: bool,
    requires_agent: bool,
    has_policy: bool,
}

impl Model {
    fn allows(&self, server: &str, name: &str) -> bool {
        let has = |list: &Vec<String>| list.iter().any(|entry| entry == name);
        let is_dangerous =
            self.dangerous.iter().any(|(owner, tool)| owner == server && tool == name);
        if !self.has_policy && self.requires_agent {
            return false;
        }
        if self.has_policy {
            if let Some(servers) = &self.servers
                && !servers.iter().any(|listed| listed == server)
            {
                return false;
            }
            if let Some(list) = self.overrides.get(server) {
                return has(list);
            }
        }
        let is_allowed = match self.exposed.get(server) {
            Some(list) => has(list),
            None => self.allows_unknown,
        };
        is_allowed && !is_dangerous
    }

    fn policies(&self) -> Policies {
        let list = |names: &Vec<String>| Listed {
            at: "list".into(),
            patterns: Patterns::parse(names).unwrap(),
        };
        let lists = |lists: &BTreeMap<String, Vec<String>>| {
            lists.iter().map(|(server, names)| (server.as_str().into(), list(names))).collect()
        };
        let agent = Agent {
            servers: self.servers.as_ref().map(&list),
            overrides: lists(&self.overrides),
            ..Agent::default()
        };
        let dangerous: Vec<_> =
            self.dangerous.iter().map(|(server, tool)| format!("{server}:{tool}")).collect();
        Policies {
            exposed: lists(&self.exposed),
            agents: [("agent".into(), agent)].into(),
            fallback: Fallback {
                at: Some("default_policy".into()),
                allows_unknown_tools: Some(self.allows_unknown),
                ..Fallback::default()
            },
            dangerous: Some(list(&dangerous)),
            requires_agent: self.requires_agent,
            ..Policies::default()
        }
    }
}

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn some(&mut self, words: &[&str]) -> Vec<String> {
        let picked = words.iter().filter(|_| self.roll(2) == 0);
        picked.map(|word| (*word).to_owned()).collect()
    }

    fn lists(&mut self, servers: &[&str], tools: &[&str]) -> BTreeMap<String, Vec<String>> {
        let picked = self.some(servers);
        picked.into_iter().map(|server| (server, self.some(tools))).collect()
    }
}

#[test]
fn ten_thousand_random_policies_agree_with_the_rules_written_plainly() {
    let servers = ["alpha", "beta", "gamma"];
    let tools = ["read", "write", "drop", "list"];
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut allowed, mut denied) = (0, 0);
    for round in 0..10_000 {
        let model = Model {
            exposed: dice.lists(&servers, &tools),
            servers: (dice.roll(3) > 0).then(|| dice.some(&servers)),
            overrides: dice.lists(&servers, &tools),
            dangerous: (0..dice.roll(3))
                .map(|_| {
                    let server = servers[usize::try_from(dice.roll(3)).unwrap()];
                    let tool = tools[usize::try_from(dice.roll(4)).unwrap()];
                    (server.to_owned(), tool.to_owned())
                })
                .collect(),
            allows_unknown: dice.roll(2) == 0,
            requires_agent: dice.roll(4) == 0,
            has_policy: dice.roll(3) > 0,
        };
        let policies = model.policies();
        let agent = model.has_policy.then_some("agent");
        let rights = policies.rights_of(Who { agent, ..Who::default() });
        for server in servers {
            for tool in tools {
                let (found, steps) = decide(&policies, &rights, server, tool);
                assert_eq!(found, model.allows(server, tool), "{round} {server} {tool} {steps:?}");
                *(if found { &mut allowed } else { &mut denied }) += 1;
            }
        }
    }
    assert!(allowed > 10_000 && denied > 10_000, "{allowed} {denied}");
}
