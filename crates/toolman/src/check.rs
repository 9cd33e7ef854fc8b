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
    let host = Host::start(cli).await?;
    let report = tokio::select! {
        () = terminal::wait_for_all(&host.gateway) => Some(Report::of(&host.gateway)),
        () = stop.cancelled() => None,
    };
    let mut printed = Ok(());
    if let Some(report) = &report {
        printed = terminal::print(&if check.json { report.json() } else { report.text() });
    }
    host.stop().await;
    printed?;
    Ok(i32::from(!report.is_some_and(|report| report.is_fine())))
}
