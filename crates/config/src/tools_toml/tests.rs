//! What a `tools.toml` means, and every fault that it can have.

use std::fmt::Write as _;
use std::path::Path;

use catalog::profile::{Belongs, Lists, Profile, Reads};
use catalog::surface::{Inactive, Surface};
use mcp::names::UriStyle;
use upstream::launch::{Command, CommandLine, Launch};
use upstream::limits::{CALL_TIMEOUT, HANDSHAKE_TIMEOUT, STARTUP_TIMEOUT};
use upstream::remote::Transport;
use upstream::supervisor::{EraChoice, Restart, SessionChoice};
use upstream::template::Template;

use crate::fault::Fault;
use crate::{Config, Server, Surroundings};

fn parse(text: &str) -> Result<Config, Vec<Fault>> {
    let surroundings = Surroundings {
        file: Path::new("tools.toml"),
        folder: Path::new("/project"),
        environment: &|name| (name == "USER").then(|| "ada".to_owned()),
    };
    crate::parse(text, &surroundings)
}

/// A server on one line, defaults left out.
fn render(server: &Server) -> String {
    let settings = &server.settings;
    let mut line = format!("{} [{}]", settings.name, server.namespace.as_str());
    match &settings.launch {
        Launch::Command(command) => render_command(command, &mut line),
        Launch::Url(remote) => {
            write!(line, " {}", remote.url.uri()).unwrap();
            if remote.transport != Transport::Auto {
                write!(line, " {:?}", remote.transport).unwrap();
            }
            for name in remote.headers.names() {
                write!(line, " {name}: …").unwrap();
            }
        }
        Launch::BuiltIn(_) | Launch::Worker(_) => panic!("no file has built-in servers"),
    }
    if let EraChoice::Only(era) = settings.era {
        write!(line, " {era:?}").unwrap();
    }
    match settings.session {
        SessionChoice::Auto => {}
        SessionChoice::Shared => line.push_str(" shared"),
        SessionChoice::PerClient => line.push_str(" per client"),
    }
    if let Restart::OnFailure { delay_max } = settings.restart {
        write!(line, " restart {delay_max:?}").unwrap();
    }
    if settings.startup_timeout != STARTUP_TIMEOUT {
        write!(line, " startup {:?}", settings.startup_timeout).unwrap();
    }
    if settings.handshake_timeout != HANDSHAKE_TIMEOUT {
        write!(line, " handshake {:?}", settings.handshake_timeout).unwrap();
    }
    if settings.call_timeout != CALL_TIMEOUT {
        write!(line, " timeout {:?}", settings.call_timeout).unwrap();
    }
    line
}

fn render_command(command: &Command, line: &mut String) {
    match &command.line {
        CommandLine::Shell(text) => write!(line, " sh {text:?}"),
        CommandLine::Direct { program, args } => {
            let args: Vec<_> = args.iter().map(Template::written).collect();
            write!(line, " {program:?} {args:?}")
        }
    }
    .unwrap();
    if command.cwd.as_deref() != Some(Path::new("/project")) {
        write!(line, " in {:?}", command.cwd).unwrap();
    }
    for (name, value) in &command.env {
        write!(line, " {name}={:?}", value.written()).unwrap();
    }
}

/// Checks the servers that a text gives, or its faults without the name of the file.
#[track_caller]
fn check(text: &str, expected: &str) {
    let lines: Vec<String> = match parse(text) {
        Ok(config) => config.servers.iter().map(render).collect(),
        Err(faults) => faults.iter().map(short).collect(),
    };
    assert_eq!(lines.join("\n"), expected);
}

fn short(fault: &Fault) -> String {
    let fault = fault.to_string();
    let fault = fault.strip_prefix("tools.toml:").unwrap();
    fault.trim_start().to_owned()
}

/// Checks a text of the one server that it is part of.
#[track_caller]
fn check_server(keys: &str, expected: &str) {
    check(&format!("[[servers]]\ncommand = 'run'\n{keys}"), expected);
}

mod faults;
mod python;

mod meaning {
    use std::time::Duration;

    use super::{
        Belongs, Inactive, Lists, Profile, Reads, Surface, UriStyle, check, check_server, parse,
    };

    #[test]
    fn servers_keep_the_order_of_the_file() {
        // TA-02
        check(
            "active_toolsets = ['pjpd*', 'git_status']\n\
             [[servers]]\nnamespace = 'pjpd'\ncommand = 'uvx pjpd'\n\
             [[servers]]\nnamespace = 'git'\ncommand = 'uvx git'\n\
             [[servers]]\nnamespace = 'a'\ncommand = 'a'\n",
            "pjpd [pjpd] sh \"uvx pjpd\"\ngit [git] sh \"uvx git\"\na [a] sh \"a\"",
        );
        check(
            "servers = [{ command = 'b' }, { command = 'a' }]",
            "server-1 [] sh \"b\"\nserver-2 [] sh \"a\"",
        );
    }

    #[test]
    fn command_alone_is_left_to_the_shell() {
        // TA-07
        check(
            "[[servers]]\ncommand = '''FOO=\"a b\" run \"$HOME\" ${X:-y} $${z | tee'''",
            r#"server-1 [] sh "FOO=\"a b\" run \"$HOME\" ${X:-y} $${z | tee""#,
        );
    }

    #[test]
    fn url_is_a_server_that_runs_already() {
        check(
            "[[servers]]\nurl = 'https://${USER}.example.com/mcp?k=v'\nera = 'modern'\n\
             headers = { Authorization = 'Bearer ${USER}', X-Key = 'k' }\n\
             [[servers]]\nurl = 'http://localhost:1/sse'\ntransport = 'sse'\nera = 'legacy'\n\
             [[servers]]\nurl = 'http://localhost:1/'\ntransport = 'http'\nera = 'auto'",
            "server-1 [] https://ada.example.com/mcp?k=v authorization: … x-key: … Modern\n\
             server-2 [] http://localhost:1/sse Sse Legacy\n\
             server-3 [] http://localhost:1/ StreamableHttp",
        );
    }

    #[test]
    fn session_may_be_each_clients_own() {
        check_server("session = 'auto'", r#"server-1 [] sh "run""#);
        check_server("session = 'shared'", r#"server-1 [] sh "run" shared"#);
        check_server("session = 'per-client'", r#"server-1 [] sh "run" per client"#);
        check_server(
            "session = 'mine'",
            "3:11: `session` is `mine`; it must be `auto`, `shared` or `per-client`",
        );
    }

    #[test]
    fn command_with_arguments_is_run_without_a_shell() {
        check_server("args = []", r#"server-1 [] "run" []"#);
        check(
            "[[servers]]\ncommand = '/opt/${USER}/run it'\nargs = ['$HOME', '${USER}', 'a b']",
            r#"server-1 [] "/opt/ada/run it" ["$HOME", "ada", "a b"]"#,
        );
    }

    #[test]
    fn secrets_are_named_in_variables_and_headers() {
        check_server(
            "env = { KEY = '${USER}:${secret:TOKEN}', PLAIN = 'x' }",
            r#"server-1 [] sh "run" KEY="ada:<secret TOKEN>" PLAIN="x""#,
        );
        check(
            "[[servers]]\nurl = 'https://hub/mcp'\nheaders = { X-Key = 'k ${secret:TOKEN}' }",
            "server-1 [] https://hub/mcp x-key: …",
        );
    }

    #[test]
    fn variables_are_given_in_the_order_of_the_file() {
        check_server(
            "env = { TOKEN = 'x-${USER}', B = 'y', A = 8_080, ON = true, OFF = false }",
            r#"server-1 [] sh "run" TOKEN="x-ada" B="y" A="8080" ON="true" OFF="false""#,
        );
        check_server(
            "env.B = 'b'\n[servers.env]\n",
            "4:10: `env` is defined twice, first on line 3; remove one of the two",
        );
        check_server("[servers.env]\nA = 'a'", r#"server-1 [] sh "run" A="a""#);
    }

    #[test]
    fn relative_cwd_starts_at_the_folder_of_the_file() {
        check_server("cwd = 'sub'", r#"server-1 [] sh "run" in Some("/project/sub")"#);
        check_server("cwd = '/${USER}'", r#"server-1 [] sh "run" in Some("/ada")"#);
    }

    #[test]
    fn waits_are_seconds_or_texts() {
        check_server(
            "restart = 'on-failure'\nrestart_delay_max = '2m'\nstartup_timeout = 1.5\n\
             handshake_timeout = '3m'\ntimeout = 0x10",
            "server-1 [] sh \"run\" restart 120s startup 1.5s handshake 180s timeout 16s",
        );
        check_server("restart = 'on-failure'", "server-1 [] sh \"run\" restart 30s");
        check_server("restart = 'never'\nrestart_delay_max = 1", "server-1 [] sh \"run\"");
    }

    #[test]
    fn names_default_to_the_namespace_or_the_position() {
        check(
            "[[servers]]\ncommand = 'a'\n\
             [[servers]]\ncommand = 'b'\nnamespace = 'git'\n\
             [[servers]]\ncommand = 'c'\nnamespace = 'git'\n\
             [[servers]]\ncommand = 'd'\nnamespace = 'git'\n\
             [[servers]]\ncommand = 'e'\nname = 'git-2'\n\
             [[servers]]\ncommand = 'f'\nname = 'own'\nnamespace = 'git'\n\
             [[servers]]\ncommand = 'g'\nnamespace = 'server-8'\n\
             [[servers]]\ncommand = 'h'\n",
            "server-1 [] sh \"a\"\ngit [git] sh \"b\"\ngit-3 [git] sh \"c\"\ngit-4 [git] sh \"d\"\n\
             git-2 [] sh \"e\"\nown [git] sh \"f\"\nserver-8 [server-8] sh \"g\"\n\
             server-8-2 [] sh \"h\"",
        );
    }

    #[test]
    fn long_namespace_leaves_room_for_a_number() {
        let long = "x".repeat(64);
        let server = format!("[[servers]]\ncommand = 'a'\nnamespace = '{long}'\n");
        let second = format!("{}-2", &long[..62]);
        check(&server.repeat(2), &format!("{long} [{long}] sh \"a\"\n{second} [{long}] sh \"a\""));
    }

    #[test]
    fn disabled_server_is_left_out_but_checked() {
        let disabled = "[[servers]]\nenabled = false\nname = 'git'\ncommand = 'old'\n";
        let enabled = "[[servers]]\nenabled = true\nname = 'git'\ncommand = 'new'\n";
        check(&format!("{disabled}{enabled}"), "git [] sh \"new\"");
        check(disabled, "");
        check_server("enabled = false\ncwd = '${NOT_SET}'", "");
        check_server(
            "enabled = false\nrestart = 'always'",
            "4:11: `restart` is `always`; it must be `never` or `on-failure`",
        );
    }

    #[test]
    fn top_of_the_file_says_what_is_on_and_how_it_is_shown() {
        let server = "[[servers]]\ncommand = 'a'\n";
        let config = parse(server).unwrap();
        // TA-11
        let upstream = "a".parse().unwrap();
        assert!(!config.rules.starts_on.matches(&upstream, &["git_log"]));
        assert_eq!(config.rules.uri_style, UriStyle::Underscore);
        assert_eq!(config.surface, Surface::default());

        let top = "active_toolsets = ['x', 'git*']\nsurface = 'activate'\n\
                   inactive = 'stub'\nuri_style = 'rfc'\n";
        let config = parse(&format!("{top}{server}")).unwrap();
        assert!(config.rules.starts_on.matches(&upstream, &["git_log"]));
        assert_eq!(config.rules.uri_style, UriStyle::Rfc);
        assert_eq!(config.surface, Surface::Activate { inactive: Inactive::Stub });
        assert!(parse(&format!("inactive = 'hidden'\nuri_style = 'underscore'\n{server}")).is_ok());
    }

    #[test]
    fn clients_are_known_by_patterns_of_their_names() {
        let clients = "[clients.'my-agent*']\nlists = 'once'\nreply_wait = 0\nreads = 'structured'\n\
            uri_style = 'rfc'\nname_length_max = 48\ndescription_max = 1024\nselection = 'principal'\n\
            patience = '2s'\ninactive = 'stub'\n";
        let server = "[[servers]]\nnamespace = 'a'\ncommand = 'x'\n";
        let profiles = parse(&format!("{clients}{server}")).unwrap().profiles;
        let profile = profiles.of("my-agent-cli", "1");
        assert_eq!(profile.lists, Lists::Once);
        assert!(profile.reply_wait.is_zero());
        assert_eq!(profile.reads, Reads::Structured);
        assert_eq!(profile.naming.uri_style, UriStyle::Rfc);
        assert_eq!((profile.naming.length_max, profile.description_max), (48, Some(1_024)));
        assert_eq!(profile.selection, Belongs::Principal);
        assert_eq!(profile.patience, Duration::from_secs(2));
        assert_eq!(profile.inactive, Some(Inactive::Stub));
        assert_eq!(profiles.of("other", "1"), Profile::default());
    }
}
