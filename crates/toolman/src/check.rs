//! `toolman check`: start everything once and say what is there and what is wrong.

mod files;

use crate::cli::{Check, Cli};
use crate::host::{Host, stop_on_signals};
use crate::report::Report;
use crate::terminal;

pub async fn run(cli: &Cli, check: &Check) -> anyhow::Result<i32> {
    if !check.files.is_empty() {
        return files::run(cli, check).await;
    }
    let stop = stop_on_signals()?;
    let mut host = Host::start(cli).await?;
    let report = tokio::select! {
        () = terminal::wait_for_all(&host.gateway) => true,
        () = stop.cancelled() => false,
    };
    let report = report.then(|| Report::of_all(&mut host, cli.agent.as_deref()));
    let mut printed = Ok(());
    if let Some(report) = &report {
        printed = terminal::print(&if check.json { report.json() } else { report.text() });
    }
    host.stop().await;
    printed?;
    Ok(i32::from(!report.is_some_and(|report| report.is_fine())))
}
