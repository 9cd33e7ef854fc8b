//! `toolman connect-stdio`: an agent on stdio reaches a gateway that many share. TF-44
//!
//! It is a gateway itself, over one server and without names or rules of its own.

use std::io::Cursor;
use std::time::Duration;

use bytes::Bytes;
use catalog::surface::Surface;
use gateway::{Gateway, Member, Settings};
use mcp::abilities::Abilities;
use mcp::names::Namespace;
use mcp::rpc::{self, Code, Message, Raw};
use mcp::version::Era;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;
use upstream::launch::Launch;
use upstream::limits::CALL_TIMEOUT;
use upstream::remote::{Headers, Remote, Transport, Url};
use upstream::supervisor::{EraChoice, Restart, Settings as UpstreamSettings, introduce_as};

use crate::cli::{Cli, ConnectStdio, Misuse};
use crate::data_dir;
use crate::host::{spawner, stop_on_signals};
use crate::run::expect_client;
use crate::terminal;

/// Longest pause before a gateway that went away is tried again.
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long it is waited for the gateway to say that it lets nobody in.
const MEETING_MAX: Duration = Duration::from_secs(3);
/// An agent whose first message is longer describes itself later.
const FIRST_BYTES_MAX: usize = 64 * 1024;

pub async fn run(cli: &Cli, connect: &ConnectStdio) -> anyhow::Result<i32> {
    let settings = settings(cli, connect)?;
    expect_client()?;
    let stop = stop_on_signals()?;
    let spawner = spawner(None).await;
    let mut input = tokio::io::stdin();
    let first = tokio::select! {
        first = first_line(&mut input) => first,
        () = stop.cancelled() => return Ok(0),
    };
    // The gateway elsewhere serves the agent, and should know it by its name and what it can be asked for.
    if let Some(params) = handshake(&first) {
        let [info, capabilities] =
            params.members(["clientInfo", "capabilities"]).unwrap_or_default();
        if let Some(info) = info.filter(|info| info.starts_with('{')) {
            introduce_as(info);
        }
        spawner.expect_client();
        spawner.know_client(Abilities::of(&params.part(capabilities.unwrap_or_default())));
    }
    let input = Cursor::new(first).chain(input);
    let gateway = Gateway::start(settings, &spawner);
    gateway.become_bridge();
    if let Some(problem) = refusal(&gateway, connect).await {
        terminal::complain(&format!("toolman: {problem}"));
        let error = rpc::error_object(Code::INTERNAL, &problem, None);
        server::stdio::refusal::refuse(&error, input, tokio::io::stdout()).await;
        gateway.stop().await;
        return Ok(1);
    }
    let caller = gateway::auth::local(cli.agent.as_deref());
    let (place, output) = (gateway.place(), tokio::io::stdout());
    server::stdio::serve(gateway.clone(), caller, &place, input, output, stop).await;
    gateway.stop().await;
    Ok(0)
}

/// What the agent says first, to the end of the line, and what came with it.
async fn first_line(input: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut first = Vec::new();
    while !first.contains(&b'\n') && first.len() < FIRST_BYTES_MAX {
        if !matches!(input.read_buf(&mut first).await, Ok(1..)) {
            break;
        }
    }
    first
}

/// What the agent says of itself, if it begins with a handshake.
fn handshake(first: &[u8]) -> Option<Raw> {
    let line = first.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let message = rpc::parse(&Bytes::copy_from_slice(line)).ok()?;
    let Message::Request { method, params: Some(params), .. } = message else { return None };
    (method == "initialize").then_some(params)
}

/// Why the gateway elsewhere does not let us in, if it says so soon.
async fn refusal(gateway: &Gateway, connect: &ConnectStdio) -> Option<String> {
    let (_, upstream) = gateway.upstreams().next()?;
    _ = timeout(MEETING_MAX, upstream.settled()).await;
    let problem = upstream.condition().problem?;
    let status =
        ["401", "403"].into_iter().find(|s| problem.contains(&format!("HTTP status {s}")))?;
    let is_given = connect.token_file.is_some() || given_token().is_some();
    let (what, fix) = match (status, is_given) {
        ("401", true) => ("does not know this token", "see that it is the one of that gateway"),
        ("401", false) => ("wants a token", "set TOOLMAN_TOKEN, or pass `--token-file FILE`"),
        _ => ("does not let this client in", "see its `allowed_hosts`, and what its token may do"),
    };
    Some(format!("the gateway {what} (HTTP status {status}); {fix}"))
}

fn given_token() -> Option<String> {
    let names = ["TOOLMAN_TOKEN", "BEARER_TOKEN"];
    names.into_iter().find_map(|name| std::env::var(name).ok())
}

fn settings(cli: &Cli, connect: &ConnectStdio) -> anyhow::Result<Settings> {
    let remote = Remote {
        url: address(&connect.url)?,
        transport: Transport::StreamableHttp,
        headers: headers(cli, connect)?,
    };
    let upstream = UpstreamSettings {
        // In a session the gateway can ask the agent, and the agent has a selection of its own.
        era: EraChoice::Only(Era::Legacy),
        restart: Restart::OnFailure { delay_max: RETRY_MAX },
        call_timeout: call_timeout()?,
        timeout_setting: "MCP_WRAPPER_TIMEOUT",
        ..UpstreamSettings::new("gateway".parse()?, Launch::Url(remote))
    };
    let member = Member { namespace: Namespace::default(), upstream };
    Ok(Settings::new(Surface::Filter, vec![member]))
}

/// The address; it is not shown, since it may hold a key.
fn address(text: &str) -> Result<Url, Misuse> {
    let url: Url = text.parse().map_err(|error| Misuse(format!("`--url` {error}")))?;
    let usual = if url.uri().path() == "/" { url.join("/mcp") } else { None };
    Ok(usual.unwrap_or(url))
}

fn headers(cli: &Cli, connect: &ConnectStdio) -> Result<Headers, Misuse> {
    let mut headers = Headers::default();
    let token = match &connect.token_file {
        Some(file) => Some(data_dir::read_token(file)?),
        None => given_token(),
    };
    let authorization = token.map(|token| format!("Bearer {}", token.trim()));
    let fields = [
        ("the token", "Authorization", authorization),
        ("`--agent`", "X-Agent-Id", cli.agent.clone()),
    ];
    for (what, name, value) in fields {
        if let Some(value) = value {
            headers.add(name, &value).map_err(|error| Misuse(format!("{what} {error}")))?;
        }
    }
    Ok(headers)
}

fn call_timeout() -> Result<Duration, Misuse> {
    let Ok(text) = std::env::var("MCP_WRAPPER_TIMEOUT") else { return Ok(CALL_TIMEOUT) };
    let seconds = text.trim().parse().ok();
    let timeout = seconds.filter(|seconds: &f64| *seconds > 0.0 && *seconds <= 86_400.0);
    match timeout.map(Duration::try_from_secs_f64) {
        Some(Ok(timeout)) => Ok(timeout),
        _ => {
            let reason =
                "MCP_WRAPPER_TIMEOUT is no time; use seconds, more than 0 and at most 86400";
            Err(Misuse(reason.into()))
        }
    }
}
