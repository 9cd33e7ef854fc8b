//! `toolman serve`: the door for services.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use config::http::Http;
use gateway::auth::Keys;

use crate::cli::{Cli, Misuse, Serve};
use crate::host::{Host, Plan};
use crate::{data_dir, door, up};

pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

pub async fn run(cli: &Cli, serve: &Serve) -> anyhow::Result<i32> {
    let plan = Plan::read_or_begin(cli)?.audited().reloadable()?;
    let listen = match serve.listen {
        Some(listen) => listen,
        None => plan.listen(plan.http.listen.unwrap_or_else(|| usual(plan.variables.port))),
    };
    let token = token(cli, serve.token_file.as_deref(), &plan.http, listen)?;
    let mut settings = door::settings(&plan, Keys::new(&token))?;
    let flags = serve.tls_cert.as_deref().zip(serve.tls_key.as_deref());
    settings.tls = door::tls(flags, &plan.http)?;
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let listener = up::bind(listen)?;
    let address = listener.local_addr()?;
    let banner = |_: &Host| format!("toolman serves {scheme}://{address}/mcp\n");
    up::serve_until_stopped(cli, plan.start(cli).await?, listener, settings, banner).await
}

/// What clients must show: a token of the operator's, or, on this machine alone, one that is made.
pub fn token(
    cli: &Cli,
    file: Option<&Path>,
    http: &Http,
    listen: SocketAddr,
) -> anyhow::Result<String> {
    match data_dir::given_token(file, http)? {
        Some(token) => Ok(token),
        None if listen.ip().is_loopback() => data_dir::token(cli, http),
        None => {
            let reason = "others can reach this address, so a token of yours is needed; set \
                BEARER_TOKEN or pass `--token-file FILE`";
            Err(Misuse(reason.into()).into())
        }
    }
}

/// The address that is served on where none is named: a port may be in the environment.
fn usual(port: Option<u16>) -> SocketAddr {
    SocketAddr::new(LISTEN.ip(), port.unwrap_or(LISTEN.port()))
}
