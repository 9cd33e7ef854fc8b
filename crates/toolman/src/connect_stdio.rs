//! `toolman connect-stdio`: an agent on stdio reaches a gateway that many share. TF-44
//!
//! It is a gateway itself, over one server and without names or rules of its own.

use std::time::Duration;

use catalog::surface::Surface;
use gateway::{Gateway, Member, Settings};
use mcp::names::Namespace;
use mcp::version::Era;
use upstream::launch::Launch;
use upstream::limits::CALL_TIMEOUT;
use upstream::remote::{Headers, Remote, Transport, Url};
use upstream::supervisor::{EraChoice, Restart, Settings as UpstreamSettings};

use crate::cli::{Cli, ConnectStdio, Misuse};
use crate::data_dir;
use crate::host::{spawner, stop_on_signals};
use crate::run::{expect_client, serve};

/// Longest pause before a gateway that went away is tried again.
const RETRY_MAX: Duration = Duration::from_secs(2);

pub async fn run(cli: &Cli, connect: &ConnectStdio) -> anyhow::Result<i32> {
    let settings = settings(cli, connect)?;
    expect_client()?;
    let stop = stop_on_signals()?;
    let spawner = spawner(None).await;
    spawner.expect_client();
    let gateway = Gateway::start(settings, &spawner);
    gateway.become_bridge();
    let caller = gateway::auth::local(cli.agent.as_deref());
    serve(&gateway, caller, &gateway.place(), stop).await;
    gateway.stop().await;
    Ok(0)
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
    let in_environment = || {
        let names = ["TOOLMAN_TOKEN", "BEARER_TOKEN"];
        names.into_iter().find_map(|name| std::env::var(name).ok())
    };
    let token = match &connect.token_file {
        Some(file) => Some(data_dir::read_token(file)?),
        None => in_environment(),
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
