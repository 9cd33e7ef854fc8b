//! Without a command: the MCP server over stdio.

use std::io::IsTerminal as _;

use gateway::Gateway;
use gateway::auth::Caller;
use gateway::place::{Misplaced, Place};
use mcp::names::Namespace;
use mcp::rpc::Raw;
use tokio_util::sync::CancellationToken;

use crate::cli::{Cli, Misuse};
use crate::hangup::Served;
use crate::host::{Plan, stop_on_signals};
use crate::nesting::Above;
use crate::{reload, terminal};

pub async fn serve_stdio(cli: &Cli) -> anyhow::Result<i32> {
    expect_client()?;
    let stop = stop_on_signals()?;
    let plan = Plan::read(cli)?;
    if let Some(refusal) = Above::find().refusal(plan.source()) {
        // First, as whoever is on stdin may end us as soon as it is answered.
        terminal::complain(&format!("toolman: {}", refusal.words()));
        refuse(&refusal.error()).await;
        return Ok(2);
    }
    let mut host = plan.reloadable()?.for_one_client().start(cli).await?;
    host.is_read().await;
    let caller = gateway::auth::local(cli.agent.as_deref());
    let place = place(cli, &host.gateway, &caller)?;
    if let Some(hangups) = host.hangups.take() {
        hangups.heed(Served::Stdio, host.reloader.clone(), stop.clone());
    }
    if let Some(reloader) = &host.reloader {
        reload::on_change(reloader);
    }
    let (gateway, rules) = (host.gateway.clone(), std::mem::take(&mut host.rules));
    let looking = tokio::spawn(async move {
        gateway.ready().await;
        rules.warn(&gateway);
    });
    serve(&host.gateway, caller, &place, stop).await;
    looking.abort();
    host.stop().await;
    Ok(0)
}

/// Refuses a terminal: nobody types MCP.
pub fn expect_client() -> Result<(), Misuse> {
    if std::io::stdin().is_terminal() {
        let hint = "nobody speaks MCP on this terminal; try `toolman up`, `toolman check` or \
            `toolman --help`";
        return Err(Misuse(hint.into()));
    }
    Ok(())
}

/// Tells the client on stdin why it is not served.
pub async fn refuse(error: &Raw) {
    server::stdio::refusal::refuse(error, tokio::io::stdin(), tokio::io::stdout()).await;
}

/// Serves the client on stdin until it leaves.
pub async fn serve(gateway: &Gateway, caller: Caller, place: &Place, stop: CancellationToken) {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    server::stdio::serve(gateway.clone(), caller, place, input, output, stop).await;
}

/// What the client on stdin is shown.
fn place(cli: &Cli, gateway: &Gateway, caller: &Caller) -> Result<Place, Misuse> {
    let place = gateway.place();
    gateway.stand(&place, caller, cli.namespace.as_deref()).map_err(|misplaced| {
        let names = gateway.namespaces_in(&place, caller);
        let names: Vec<_> = names.iter().map(Namespace::as_str).collect();
        let names = names.join(", ");
        Misuse(match misplaced {
            Misplaced::NamespaceMissing => {
                format!(
                    "`surface = \"namespace\"` needs `--namespace NAME` here; there are {names}"
                )
            }
            Misplaced::ClientMissing => {
                "`surface = \"permission\"` needs `--agent NAME` here, or `client_id = \"derive\"`"
                    .to_owned()
            }
            Misplaced::Denied => "no toolset is granted here; see `[permissions]`".to_owned(),
            Misplaced::NamespaceUnknown => {
                format!("`--namespace` names none of the namespaces; there are {names}")
            }
        })
    })
}
