//! What the sections about agents mean, and what is wrong with them.

use std::path::Path;

use crate::{Config, Surroundings};

fn parse(text: &str) -> Result<Config, String> {
    let surroundings = Surroundings {
        file: Path::new("t"),
        folder: Path::new("/project"),
        environment: &|_| None,
    };
    let text = format!("[[servers]]\nname = 'git'\ncommand = 'run'\n{text}");
    crate::parse(&text, &surroundings).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

#[track_caller]
fn check_fault(text: &str, expected: &str) {
    let found = parse(text).err().unwrap_or_else(|| "no fault".into());
    assert!(found.contains(expected), "{found}");
}

#[test]
fn policy_inherits_what_it_does_not_say_itself() {
    // TF-53
    let config = parse(
        "[agents.base]\nallowed_servers = ['git']\nblocked_tools = ['rm']\n\
         tool_overrides.git = ['log']\ntool_overrides.hub = ['read']\n\
         [[agents.base.conditions]]\ntools = ['*']\ndays = ['mon']\n\
         [agents.dev]\nextends = 'base'\ntool_overrides.git = ['push']\nblocked_tools = ['mv']\n\
         [agents.lead]\nextends = ['dev']\nallowed_servers = ['*']\n",
    )
    .unwrap();
    let agents = &config.rulebook.policies.agents;
    let dev = &agents["dev"];
    assert!(dev.servers.as_ref().unwrap().patterns.holds("git"));
    assert!(dev.overrides["git"].patterns.holds("push"));
    assert!(!dev.overrides["git"].patterns.holds("log"));
    assert!(dev.overrides["hub"].patterns.holds("read"));
    let blocked = &dev.blocked.as_ref().unwrap().patterns;
    assert!(blocked.holds("rm") && blocked.holds("mv"), "what is blocked adds up");
    assert_eq!(dev.conditions.len(), 1);
    let lead = &agents["lead"];
    assert!(lead.servers.as_ref().unwrap().patterns.holds("*"));
    assert!(lead.overrides["git"].patterns.holds("push"));
    assert_eq!(&*lead.overrides["git"].at, "t:14 agents.dev.tool_overrides.git");
}

#[test]
fn every_fault_of_a_policy_is_told_with_its_fix() {
    for (text, fault) in [
        ("[agents.a]\nextends = 'b'", "t:5:11: `a` extends a policy that is not there"),
        (
            "[agents.a]\nextends = 'b'\n[agents.b]\nextends = 'a'",
            "`a` extends `b` extends `a`, a circle; break it",
        ),
        ("[agents.a]\nallowed_serverz = []", "did you mean `allowed_servers`?"),
        (
            "[agents.a]\nallowed_servers = 'git'",
            "`allowed_servers` is a string; it must be an array",
        ),
        ("[agents.a]\ntool_overrides.git = ['[']", "is `[`, which can't be read"),
        (
            "[[agents.a.conditions]]\ntools = ['*']",
            "asks for nothing; add `hours`, `days`, `addresses` or `arguments`",
        ),
        ("[[agents.a.conditions]]\nhours = '08:00-09:00'", "has no `tools`; name those"),
        (
            "[[agents.a.conditions]]\ntools = ['*']\nhours = '8-9'",
            "`hours` is `8-9`; write it as `08:00-18:00`, in UTC",
        ),
        (
            "[[agents.a.conditions]]\ntools = ['*']\ndays = ['x']",
            "day 1 of `days` is `x`; it must be",
        ),
        (
            "[[agents.a.conditions]]\ntools = ['*']\naddresses = ['x']",
            "address 1 of `addresses` is `x`; write an address or a network",
        ),
        (
            "[[agents.a.conditions]]\ntools = ['*']\narguments = { type = 7 }",
            "`arguments` is no JSON Schema: ",
        ),
        ("[default_policy]\nmax_tools_per_agent = 0", "is 0; it must be from 1 to 1000000"),
        ("[default_policy]\nallow_unknown_tools = 'no'", "it must be `true` or `false`"),
        ("[security_settings]\nlog_level = 'loud'", "it must be `error`, `warn`,"),
        ("[performance_settings]\ntool_call_timeout = '1s'", "it must be a whole number"),
        ("[tokens.ci]\nsha256 = 'abc'", "`sha256` is no hash; write 64 hexadecimal digits"),
        ("[tokens.ci]\nagent = 'ci'", "has no secret; add `sha256 = \"…\"`"),
        ("[tokens.ci]\ntoken = 'short'", "`token` is too weak"),
        ("[http]\ntrusted_peers = ['all']", "`all`; write an address or a network"),
    ] {
        check_fault(text, fault);
    }
}
