//! TA-11: bad configuration is actionable.

use super::{check, check_server, parse, short};

const SERVER: &str = "[[servers]]\ncommand = 'run'\n";

#[track_caller]
fn check_top(keys: &str, expected: &str) {
    check(&format!("{keys}\n{SERVER}"), expected);
}

#[test]
fn place_and_file_stand_before_the_problem() {
    let faults = parse("é = 1\nname = 'ö' é\n").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "tools.toml:1:1: invalid unquoted key; expected letters, numbers, `-`, `_`"
    );
    assert_eq!(
        faults[1].to_string(),
        "tools.toml:2:12: unexpected key or value; expected newline, `#`"
    );
}

/// What there can be at the top.
const TOP: &str = "`active_toolsets`, `agent_policies`, `agents`, `allow_stale_refs`, `audit`, \
    `clients`, `default_access`, `default_policy`, `distinguish_clients`, `dock`, `endpoints`, `exposed_tools`, `exposure_policy`, `http`, `inactive`, `performance_settings`, \
    `permissions`, `require_agent`, `requires`, `routes`, `security_settings`, `selection`, `servers`, `session_context`, `startup`, `surface`, \
    `task_based_tool_selection`, `tokens`, `toolsets`, `unlisted_calls`, `uri_style`";

#[test]
fn file_without_servers_is_shown_the_smallest_one() {
    let fault = "no servers; add at least one:\n[[servers]]\ncommand = \"uvx pjpd\"";
    check("", fault);
    check("servers = []", fault);
    assert_eq!(parse("# nothing\n").unwrap_err()[0].to_string(), format!("tools.toml: {fault}"));
}

#[test]
fn every_fault_is_reported_in_the_order_of_the_file() {
    check(
        "uri_style = 1\ntoolbox = []\n[[servers]]\nnamespace = 'a/b'\n\
         [[servers]]\ncommand = ''\nrestart = true\ncomand = 'x'\n",
        &"1:13: `uri_style` is an integer; it must be a string\n\
         2:1: unknown key `toolbox` at the top; known are TOP\n\
         3:1: server 1 of `servers` has no `command`, `url` or `python`; add one, such as \
         `command = \"uvx pjpd\"`\n\
         4:13: `namespace` is `a/b`: `/` is not allowed; use letters, digits, `_` and `-`\n\
         6:11: `command` is blank; write the command that starts the server\n\
         7:11: `restart` is a boolean; it must be a string\n\
         8:1: unknown key `comand` in `[[servers]]`; did you mean `command`?"
            .replace("TOP", TOP),
    );
}

#[test]
fn unknown_key_is_answered_with_the_nearest_or_all() {
    check_top(
        "active_toolset = []",
        "1:1: unknown key `active_toolset` at the top; did you mean `active_toolsets`?",
    );
    check_server(
        "Name-Space = 'a'",
        "3:1: unknown key `Name-Space` in `[[servers]]`; did you mean `namespace`?",
    );
    check_server(
        "binary = 'tools'",
        "3:1: unknown key `binary` in `[[servers]]`; known are `args`, `command`, `cwd`, \
         `description`, `enabled`, `env`, `era`, `handshake_timeout`, `headers`, `idle_timeout`, `lazy`, `name`, `namespace`, `python`, `restart`, \
         `restart_delay_max`, `session`, `startup_timeout`, `timeout`, `transport`, `type`, `url`",
    );
}

#[test]
fn key_of_the_top_below_a_server_is_sent_there() {
    check_server(
        "active_toolsets = ['*']",
        "3:1: `active_toolsets` stands in `[[servers]]`; \
         move it to the top, above the first `[[servers]]`",
    );
}

#[test]
fn wrong_types_say_what_is_expected_and_found() {
    check_top("surface = 1.5", "1:11: `surface` is a float; it must be a string");
    check_top(
        "active_toolsets = 'git*'",
        "1:19: `active_toolsets` is a string; it must be an array",
    );
    check_top(
        "active_toolsets = ['a', 2]",
        "1:25: pattern 2 of `active_toolsets` is an integer; it must be a string",
    );
    check_server("name = 2020-01-01", "3:8: `name` is a date or time; it must be a string");
    check_server("args = {}", "3:8: `args` is a table; it must be an array");
    check_server("env = []", "3:7: `env` is an array; it must be a table");
    check_server("enabled = 'yes'", "3:11: `enabled` is a string; it must be `true` or `false`");
    check_server(
        "timeout = false",
        "3:11: `timeout` is a boolean; it must be a number of seconds or a string such as `30s`",
    );
    check("servers = 1", "1:11: `servers` is an integer; it must be an array");
    check("servers = [1]", "1:12: server 1 of `servers` is an integer; it must be a table");
    check(
        "[servers]\ncommand = 'a'",
        "1:1: `servers` is a table; write `[[servers]]`, in double brackets",
    );
}

#[test]
fn unknown_words_are_answered_with_the_known_ones() {
    check_top(
        "surface = 'grid'",
        "1:11: `surface` is `grid`; it must be `activate`, `filter`, `namespace`, `permission`, `toolset`, `dynamic` or `static`",
    );
    check_top(
        "inactive = 'shown'",
        "1:12: `inactive` is `shown`; it must be `auto`, `hidden` or `stub`",
    );
    check_top(
        "clients.codex.lists = 'never'",
        "1:23: `lists` is `never`; it must be `once`, `late` or `at-once`",
    );
    check_top(
        "clients.codex.list = 'once'",
        "1:15: unknown key `list` in `[clients]`; did you mean `lists`?",
    );
    check_top(
        "clients.x.reply_wait = 11",
        "1:24: `reply_wait` is too long; at most 10s are waited",
    );
    check_top(
        "clients.'['.reads = 'all'",
        "1:9: `[` in `clients` is no pattern; write a name, perhaps with `*` in it",
    );
    check_top("uri_style = ''", "1:13: `uri_style` is ``; it must be `underscore` or `rfc`");
}

#[test]
fn toolsets_to_start_with_and_to_allow_must_be_there() {
    let sets = "[toolsets]\na = ['x']\nb = ['y']";
    let check_sets = |keys: &str, problem: &str| check_top(&format!("{keys}\n{sets}"), problem);
    check_sets(
        "[startup]\ntoolsets = ['a', 'c']",
        "2:18: toolset 2 of `toolsets` is `c`, which is no toolset; known are `a`, `b`",
    );
    check_sets("[startup]\ntoolsets = []", "2:12: `toolsets` means no toolset; see `[toolsets]`");
    check_sets(
        "[startup]\ntoolsets = 'all'",
        "2:12: `toolsets` is `all`; it must be `ALL` or a list of names",
    );
    check_sets(
        "[startup]\nmode = 1",
        "1:1: `startup` has no `toolsets`; name some, or write `toolsets = \"ALL\"`\n\
         2:1: unknown key `mode` in `[startup]`; known are `toolsets`",
    );
    check_sets(
        "[startup]\ntoolsets = 'ALL'\n[exposure_policy]\nmax_active = 1",
        "2:12: `toolsets` means 2 toolsets; `max_active` of `exposure_policy` is 1",
    );
    check_sets(
        "[startup]\ntoolsets = ['b']\n[exposure_policy]\ndenylist = ['b']",
        "2:13: toolset 1 of `toolsets` is `b`, which `exposure_policy` does not allow",
    );
    check_sets(
        "[exposure_policy]\nallowlist = ['c']\nmax_active = 0",
        "2:14: toolset 1 of `allowlist` is `c`, which is no toolset; known are `a`, `b`\n\
         3:14: `max_active` is 0; it must be from 1 to 1000",
    );
    check_server(
        "idle_timeout = '1s'",
        "3:16: `idle_timeout` is for servers with `lazy = true`; add that, or remove it",
    );
    let fault = "surface `static` needs the toolsets to start with:\n\
        [startup]\ntoolsets = \"ALL\"";
    check_sets("surface = 'static'", fault);
    check_sets("unlisted_calls = 1", "1:18: `unlisted_calls` is an integer; it must be a string");
    let alone = "[startup]\ntoolsets = ['a']";
    let none = "there are none; see `[toolsets]`";
    check_top(alone, &format!("2:13: toolset 1 of `toolsets` is `a`, which is no toolset; {none}"));
}

#[test]
fn endpoints_have_free_paths_of_their_own() {
    let check_paths = |path: &str, problem: &str| {
        check_top(&format!("[[endpoints]]\npath = '{path}'"), problem);
    };
    check_paths("mcp", "2:8: `path` is `mcp`; it must begin with `/` and not end with one");
    check_paths(
        "/a b",
        "2:8: `path` is `/a b`; it may hold letters, digits, `/`, `-`, `_` and `.` only",
    );
    check_paths(
        "/mcp",
        "2:8: `path` is `/mcp`; it is served already; choose another, such as `/mcp/dev`",
    );
    check_top(
        "[[endpoints]]\npath = '/a'\n[[endpoints]]\npath = '/a'",
        "4:8: `path` is `/a`; it is there twice; each path has one endpoint",
    );
    check_top(
        "[[endpoints]]\nsurface = 'filter'",
        "1:1: endpoint 1 of `endpoints` has no `path`; add one, such as `path = \"/mcp/dev\"`",
    );
    check_top(
        "[[endpoints]]\npath = '/a'\nnamespace = 'none'",
        "3:13: `namespace` is `none`, which no server has; see `[[servers]]`",
    );
}

#[test]
fn shown_values_are_escaped_and_cut() {
    let long = format!("\\u001b[2J\\n{}", "x".repeat(100));
    check_top(
        &format!("surface = \"{long}\""),
        &format!(
            "1:11: `surface` is `\\u{{1b}}[2J\\n{}…`; it must be `activate`, `filter`, `namespace`, `permission`, `toolset`, `dynamic` or `static`",
            "x".repeat(75)
        ),
    );
    check_top(
        &format!("\"{long}\" = 1"),
        &format!(
            "1:1: unknown key `\\u{{1b}}[2J\\n{}…` at the top; known are {TOP}",
            "x".repeat(75)
        ),
    );
}

#[test]
fn bad_namespace_is_answered_with_the_rule() {
    // C08
    for (namespace, bad) in [("a/b", "/"), ("..", "."), ("a b", " "), ("a\\u0000", "\\0")] {
        let shown = namespace.replace("\\u0000", "\\0");
        check_server(
            &format!("namespace = \"{namespace}\""),
            &format!(
                "3:13: `namespace` is `{shown}`: `{bad}` is not allowed; \
                 use letters, digits, `_` and `-`"
            ),
        );
    }
    check_server(
        &format!("namespace = '{}'", "x".repeat(200)),
        &format!(
            "3:13: `namespace` is `{}…`: it has 200 characters; at most 64 are allowed",
            "x".repeat(80)
        ),
    );
}

#[test]
fn name_must_be_there_and_be_the_only_one() {
    check_server(
        "name = ''",
        "3:8: `name` is empty; leave it out, or use letters, digits, `_` and `-`",
    );
    let server = "[[servers]]\ncommand = 'a'\nname = 'git'\n";
    check(
        &server.repeat(2),
        "6:8: `name` is `git` as on line 3; give each server a name of its own",
    );
}

#[test]
fn bad_pattern_is_reported_at_its_place_in_the_list() {
    // C10
    check_top(
        "active_toolsets = [\n  'git*',\n  '[',\n  7,\n  '{a',\n]",
        "3:3: pattern 2 of `active_toolsets` is `[`, which can't be read: \
         unclosed character class; missing ']'\n\
         4:3: pattern 3 of `active_toolsets` is an integer; it must be a string\n\
         5:3: pattern 4 of `active_toolsets` is `{a`, which can't be read: \
         unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
    );
}

#[test]
fn too_many_patterns_are_refused() {
    check_top(
        &format!("active_toolsets = [{}]", "'a',".repeat(10_001)),
        "1:19: `active_toolsets` has 10001 patterns; use at most 10000, with `*` in them",
    );
}

#[test]
fn waits_outside_of_the_range_are_refused() {
    let range = "it must be more than 0 and at most 24 hours";
    check_server("timeout = 0", &format!("3:11: `timeout` is `0`; {range}"));
    check_server("timeout = -1", &format!("3:11: `timeout` is `-1`; {range}"));
    check_server("timeout = nan", &format!("3:11: `timeout` is `nan`; {range}"));
    check_server("timeout = '25h'", &format!("3:11: `timeout` is `25h`; {range}"));
    let huge = "99999999999999999999";
    check_server(&format!("timeout = {huge}"), &format!("3:11: `timeout` is `{huge}`; {range}"));
    check_server(
        "startup_timeout = 'soon'",
        "3:19: `startup_timeout` is `soon`; \
         write a number of seconds, or a text such as `500ms`, `30s`, `2m` or `1h`",
    );
}

#[test]
fn secret_where_others_could_read_it_is_refused() {
    let elsewhere = "uses `${secret:…}`, which only `env` and `headers` may: \
        others can read the rest; put it there";
    check_server(
        "args = ['${secret:TOKEN}']\ncwd = '${secret:TOKEN}'",
        &format!("3:9: argument 1 of `args` {elsewhere}\n4:7: `cwd` {elsewhere}"),
    );
    check(
        "[[servers]]\nurl = 'https://hub/mcp?key=${secret:TOKEN}'",
        &format!("2:7: `url` {elsewhere}"),
    );
    check(
        "[[servers]]\ncommand = 'run --key ${secret:TOKEN}'",
        "2:11: `command` uses `${secret:…}`, which others could read; \
         name a variable in `env` and use that, as in `$TOKEN`",
    );
}

#[test]
fn expansions_that_fail_are_reported_where_they_stand() {
    check_server(
        "args = ['a', '${A}']\ncwd = '${B'\nenv = { C = '${secret:c}', D = 'hush${D}' }",
        "3:14: argument 2 of `args` uses `${A}`, which is not set; \
         set it, or write `${A:-default}`\n\
         4:7: `cwd` has `${` without `}`; close it, or write `$${` for a plain `${`\n\
         5:13: `C` in `env` names the secret `c`, which is no name of a secret; \
         use capital letters, digits and `_`, a letter first\n\
         5:32: `D` in `env` uses `${D}`, which is not set; set it, or write `${D:-default}`",
    );
    check(
        "[[servers]]\ncommand = '${RUN}'\nargs = []",
        "2:11: `command` uses `${RUN}`, which is not set; set it, or write `${RUN:-default}`",
    );
    check(
        "[[servers]]\ncommand = '${RUN:-}'\nargs = []",
        "2:11: `command` is blank; write the command that starts the server",
    );
}

#[test]
fn what_no_process_can_be_given_is_refused() {
    let fault = "holds a NUL, which no process can be given; remove it";
    check_server("cwd = \"a\\u0000\"", &format!("3:7: `cwd` {fault}"));
    check("[[servers]]\ncommand = \"a\\u0000\"", &format!("2:11: `command` {fault}"));
    let fault = "is no name of a variable; use letters, digits and `_`";
    check_server("env = { 'A=B' = 'c' }", &format!("3:17: `A=B` in `env` {fault}"));
}

#[test]
fn server_is_started_or_reached_but_not_both() {
    check_server(
        "url = 'http://localhost/'",
        "3:7: `url` stands beside `command`; keep the one that is meant",
    );
    check(
        "[[servers]]\nurl = 'http://localhost/'\nargs = []\nenv = {}\ncwd = '/'",
        "3:8: `args` is for servers with a `command`; remove it\n\
         4:7: `env` is for servers with a `command`; remove it\n\
         5:7: `cwd` is for servers with a `command`; remove it",
    );
    check_server(
        "transport = 'sse'\nheaders = {}",
        "3:13: `transport` is for servers with a `url`; remove it\n\
         4:11: `headers` is for servers with a `url`; remove it",
    );
}

#[test]
fn address_and_headers_are_checked_and_never_shown() {
    let check_url = |url: &str, fault: &str| {
        check(&format!("[[servers]]\nurl = '{url}'"), &format!("2:7: `url` {fault}"));
    };
    let malformed = "is no URL; write one such as `https://example.com/mcp`";
    check_url("hush", malformed);
    check_url("", malformed);
    check_url("ftp://hush/", "must begin with `http://` or `https://`");
    check_url(
        "https://hush@example.com/",
        "holds a user or password; put credentials into `headers`",
    );
    check_url("${A}", "uses `${A}`, which is not set; set it, or write `${A:-default}`");
    let check_header = |header: &str, fault: &str| {
        check(&format!("[[servers]]\nurl = 'http://localhost/'\nheaders = {{ {header} }}"), fault);
    };
    check_header(
        "'A B' = 'hush'",
        "3:21: `A B` in `headers` is no name of a header; use letters, digits and `-`",
    );
    check_header(
        "Mcp-Session-Id = 'hush'",
        "3:30: `Mcp-Session-Id` in `headers` is a header that the protocol itself sets; \
         remove it",
    );
    check_header(
        "A = \"hu\\nsh\"",
        "3:17: `A` in `headers` holds what no header can; use printable characters only",
    );
    check_header("A = 1", "3:17: `A` in `headers` is an integer; it must be a string");
}

#[test]
fn unknown_era_and_transport_are_answered_with_the_known_ones() {
    check_server("era = 'new'", "3:7: `era` is `new`; it must be `auto`, `legacy` or `modern`");
    check(
        "[[servers]]\nurl = 'http://localhost/'\ntransport = 'carrier pigeon'",
        "3:13: `transport` is `carrier pigeon`; it must be `auto`, `streamable-http`, \
         `sse`, `http` or `streamable_http`",
    );
}

#[test]
fn values_of_env_are_never_shown() {
    check_server(
        "env = { TOKEN = ['hush'], KEY = 1.5 }",
        "3:17: `TOKEN` in `env` is an array; it must be a string, an integer or a boolean\n\
         3:33: `KEY` in `env` is a float; it must be a string, an integer or a boolean",
    );
}

#[test]
fn duplicates_name_both_lines() {
    // C03
    check_server(
        "env = { command = 'x' }\ncommand = 'again'\nrestrat = 'never'",
        "4:1: `command` is defined twice, first on line 2; remove one of the two\n\
         5:1: unknown key `restrat` in `[[servers]]`; did you mean `restart`?",
    );
    check_top(
        "surface = 'activate'\n\"surface\" = 'activate'\nuri_style = 'rfc'\nuri_style = 'rfc'",
        "2:1: `surface` is defined twice, first on line 1; remove one of the two\n\
         4:1: `uri_style` is defined twice, first on line 3; remove one of the two",
    );
    check_server(
        "[servers.env]\nA = 'a'\n[servers.env]\n",
        "5:10: `env` is defined twice, first on line 3; remove one of the two",
    );
    check_server(
        "env = { A = 'a', A = 'b' }",
        "3:18: `A` is defined twice, first on line 3; remove one of the two",
    );
}

#[test]
fn syntax_faults_are_reported_once_a_line_and_nothing_else() {
    check(
        "[[servers]]\ncommand = uvx pjpd\nx = 1\nargs = ['a' 'b' 'c']\ntimeout = 30s\n",
        "2:11: string values must be quoted; expected literal string\n\
         4:13: missing comma between array elements; expected `,`\n\
         5:11: string values must be quoted; expected literal string",
    );
    check("{\"mcpServers\": {},", "1:18: no JSON here: EOF while parsing an object; mend it");
}

#[test]
fn flood_of_faults_is_cut() {
    let faults = parse(&"x\n".repeat(1000)).unwrap_err();
    assert_eq!(faults.len(), 101);
    assert_eq!(short(&faults[99]), "100:2: key with no value; expected `=`");
    assert_eq!(short(&faults[100]), "900 more faults; mend these first");
}

#[test]
fn half_a_file_is_answered_wherever_it_ends() {
    let whole = "active_toolsets = ['é*']\n[[servers]]\nnamespace = \"a\"\ncommand = '''b'''\n\
                 [servers.env]\nA = { b = [1, 2] }\n\"A\" = 1_0\n";
    for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        for fault in parse(&whole[..end]).err().unwrap_or_default() {
            assert!(!fault.problem.is_empty());
        }
    }
}
