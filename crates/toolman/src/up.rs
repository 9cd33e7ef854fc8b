//! `toolman up`: the newcomer's command.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use config::http::Http;
use gateway::auth::Keys;
use mcp::items::Kind;
use server::http::Settings;
use server::limits::CONNECTIONS_WAITING_MAX;
use tokio::net::{TcpListener, TcpSocket};

use crate::cli::{Cli, Command, Misuse, Up};
use crate::hangup::Served;
use crate::host::{Host, Plan, Source, stop_on_signals};
use crate::report::Report;
use crate::{data_dir, door, manager, reload, serve, terminal};

pub async fn run(cli: &Cli, up: &Up) -> anyhow::Result<i32> {
    if let Some(listen) = up.listen.filter(|listen| !listen.ip().is_loopback()) {
        let reason =
            format!("`{listen}` is not an address of this machine alone; use `toolman serve`");
        return Err(Misuse(reason).into());
    }
    let plan = Plan::read_or_demo(cli)?.audited().with_key(cli).watching().reloadable()?;
    let token = data_dir::token(cli, &Http::default())?;
    let settings = door::settings(&plan, Keys::new(&token))?;
    let listener = bind(up.listen.unwrap_or_else(|| plan.listen(serve::LISTEN)))?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let mut host = plan.start(cli).await?;
    host.manager = manager::beside(cli, up, &host, (&token, listener.local_addr()?));
    let banner = |host: &Host| banner(host, &url, &token);
    serve_until_stopped(cli, host, listener, settings, banner).await
}

/// Opens the door's address.
pub fn bind(listen: SocketAddr) -> Result<TcpListener, Misuse> {
    open(listen).map_err(|error| {
        let hint = "choose another port with `--listen 127.0.0.1:PORT`";
        Misuse(format!("can't listen on {listen}: {error}; {hint}"))
    })
}

fn open(listen: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Otherwise the address stays taken for a minute after a restart.
    socket.set_reuseaddr(true)?;
    socket.bind(listen)?;
    socket.listen(CONNECTIONS_WAITING_MAX)
}

/// Serves until a signal comes; says so when every server has answered.
pub async fn serve_until_stopped(
    cli: &Cli,
    mut host: Host,
    listener: TcpListener,
    mut settings: Settings,
    banner: impl Fn(&Host) -> String,
) -> anyhow::Result<i32> {
    let stop = stop_on_signals()?;
    if let Some(hangups) = host.hangups.take() {
        let is_typed = matches!(cli.command, Some(Command::Up(_)));
        let served = if is_typed { Served::Terminal } else { Served::Service };
        hangups.heed(served, host.reloader.clone(), stop.clone());
    }
    if let Some(reloader) = &host.reloader {
        reload::on_change(reloader);
        settings.reload = reload::on_request(cli, reloader)?;
    }
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    let address = reachable(listener.local_addr()?);
    if let Err(error) = data_dir::note_address(cli, &format!("{scheme}://{address}\n")) {
        tracing::warn!("{error:#}");
    }
    let door = server::http::serve(host.gateway.clone(), listener, settings, stop.clone());
    let serving = tokio::spawn(door);
    tokio::select! {
        () = async {
            host.is_read().await;
            terminal::wait_until_ready(&host.gateway).await;
        } => {
            host.rules.warn(&host.gateway);
            // It serves, whether or not anybody reads this.
            if let Err(error) = terminal::print(&banner(&host)) {
                tracing::warn!("{error:#}");
            }
        }
        () = stop.cancelled() => {}
    }
    _ = serving.await;
    host.stop().await;
    Ok(0)
}

/// An address under which this machine reaches what is served on all of them.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

fn banner(host: &Host, url: &str, token: &str) -> String {
    let catalog = host.gateway.catalog();
    let active = catalog.items(Kind::Tool).iter().filter(|item| item.starts_on).count();
    let source = match &host.source {
        Source::File(path) => path.display().to_string(),
        Source::Dock(folder) => folder.display().to_string(),
        Source::Demo => "the built-in demo; write a tools.toml to serve your own".into(),
    };
    let report = Report::of(&host.gateway);
    let manager = host.manager.as_ref().map_or_else(String::new, |manager| {
        format!(
            "Manager, by which a model makes tools:\n  claude mcp add --transport http toolman-manager \
             http://{}/mcp --header \"Authorization: Bearer {token}\"\n\n",
            manager.address
        )
    });
    format!(
        "Toolman serves {url}\n\n\
         from {source}\n{}\n\
         {} ({active} active at first), {}, {}\n\n\
         Token:\n  {token}\n\n\
         Claude Code:\n  claude mcp add --transport http toolman {url} --header \"Authorization: Bearer {token}\"\n\n\
         Cursor and most other clients (mcp.json):\n  {{\"mcpServers\": {{\"toolman\": {{\"type\": \"http\", \"url\": \"{url}\", \"headers\": {{\"Authorization\": \"Bearer {token}\"}}}}}}}}\n\n\
         {manager}Stop with Ctrl-C.\n",
        report.table(),
        count(catalog.items(Kind::Tool).len(), "tool"),
        count(
            catalog.items(Kind::Resource).len() + catalog.items(Kind::Template).len(),
            "resource"
        ),
        count(catalog.items(Kind::Prompt).len(), "prompt"),
    )
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
