//! Without a command: the MCP server over stdio.

use std::io::IsTerminal as _;

use crate::cli::{Cli, Misuse};
use crate::host::{Host, stop_on_signals};

pub async fn serve_stdio(cli: &Cli) -> anyhow::Result<i32> {
    if std::io::stdin().is_terminal() {
        let hint = "nobody speaks MCP on this terminal; try `toolman up`, `toolman check` or \
            `toolman --help`";
        return Err(Misuse(hint.into()).into());
    }
    let stop = stop_on_signals()?;
    let host = Host::start(cli)?;
    let caller = gateway::auth::local(cli.agent.clone());
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    server::stdio::serve(host.gateway.clone(), caller, input, output, stop).await;
    host.gateway.stop().await;
    Ok(0)
}
