//! `toolman reload`: asks the core that runs to read its folders again. TD-123

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{anyhow, bail};
use bytes::Bytes;
use mcp::text::tame;
use serde_json::Value;
use tokio::time::sleep;
use upstream::post::{get, post};
use upstream::remote::{Headers, Url};

use crate::cli::{Cli, Misuse, Reload};
use crate::{data_dir, host, terminal};

/// Where a core is served unless it is said otherwise.
const USUAL: &str = "http://127.0.0.1:8000";
/// How often it is looked what is being installed, and how long a look may take.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);
/// Packages may have to be installed meanwhile.
const TIME_MAX: Duration = Duration::from_mins(30);

pub async fn run(cli: &Cli, reload: &Reload) -> anyhow::Result<i32> {
    let given = reload.url.clone().or_else(|| data_dir::noted_address(cli));
    let address = given.unwrap_or_else(|| USUAL.to_owned());
    let url: Url = address.parse().map_err(|error| Misuse(format!("`--url` {error}")))?;
    let url = url.join("/reload").ok_or_else(|| Misuse("`--url` is no address".to_owned()))?;
    let headers = headers(cli, reload)?;
    let shown = shown(&url);
    let body = Bytes::from_static(b"{}");
    let answer = tokio::select! {
        answer = post(&url, &headers, &body, TIME_MAX) => answer,
        never = show_progress(&url, &headers) => match never {},
    };
    let (status, body) = answer.map_err(|problem| {
        let fix = "see whether it runs, or say with `--url URL` where";
        anyhow!("the core at {shown} {problem}; {fix}")
    })?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match status {
        200 if answer["reloaded"] == true => {}
        401 | 403 => bail!(
            "the core at {shown} refuses: it has other tokens (BEARER_TOKEN, MANAGER_INTERNAL_TOKEN, or those of \
             `--data-dir DIR`), it takes none from here (INTERNAL_ALLOWED_CIDRS), or it serves no folders of tools"
        ),
        status => bail!("what is at {shown} answers with the status {status}; is it a core?"),
    }
    let text = if reload.json { format!("{answer:#}\n") } else { worded(&answer) };
    terminal::print(&text)?;
    Ok(0)
}

/// Tells on stderr what is being installed, for ever.
async fn show_progress(url: &Url, headers: &Headers) -> Infallible {
    let mut told = Vec::new();
    loop {
        sleep(LOOK_EVERY).await;
        let Some(health) = url.join("/health") else { continue };
        let Ok((200, body)) = get(&health, headers, LOOK_TIME_MAX).await else { continue };
        let health: Value = serde_json::from_slice(&body).unwrap_or_default();
        for server in health["servers"].as_array().into_iter().flatten() {
            let (Some(name), Some(step)) = (server["name"].as_str(), server["making"].as_str())
            else {
                continue;
            };
            let line = format!("{}: {}", tame(name), tame(step));
            if !told.contains(&line) {
                terminal::complain(&line);
                told.push(line);
            }
        }
    }
}

/// The address without what may be secret.
fn shown(url: &Url) -> String {
    let uri = url.uri();
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{host}{port}", uri.scheme_str().unwrap_or("http"))
}

/// The tokens that are given, else those that a core has left in the data directory.
fn headers(cli: &Cli, reload: &Reload) -> anyhow::Result<Headers> {
    let http = host::configuration(cli)?.map(|config| config.http).unwrap_or_default();
    let (token, manager_token) = data_dir::kept_tokens(cli)?;
    let given = data_dir::given_token(None, &http)?;
    let given_to_manager = std::env::var("MANAGER_INTERNAL_TOKEN").ok();
    let is_asked_here = given_to_manager.is_none() && reload.url.is_none();
    let own = data_dir::reload_token(cli).filter(|_| is_asked_here);
    let token = given.or(token).or_else(|| own.clone());
    let manager_token = own.or(given_to_manager).or(manager_token);
    let (Some(token), Some(manager_token)) = (token, manager_token) else {
        let folder = data_dir::folder(cli)?;
        let folder = folder.display();
        bail!(Misuse(format!(
            "there are no tokens to show: no core was started with the data directory `{folder}`; name its own with \
             `--data-dir DIR`, or set BEARER_TOKEN and MANAGER_INTERNAL_TOKEN"
        )));
    };
    let mut headers = Headers::default();
    let fields = [("Authorization", format!("Bearer {token}")), ("X-Manager-Token", manager_token)];
    for (name, value) in fields {
        headers.add(name, &value).map_err(|error| Misuse(format!("a token {error}")))?;
    }
    Ok(headers)
}

/// What was done, for people.
fn worded(answer: &Value) -> String {
    let mut text = String::new();
    for (key, title) in [
        ("namespaces", "namespaces"),
        ("workers_restarted", "restarted"),
        ("namespaces_removed", "removed"),
        ("deps_synced", "packages installed"),
    ] {
        let names = names(&answer[key]);
        if !names.is_empty() || key == "namespaces" {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            _ = writeln!(text, "{title}: {names}");
        }
    }
    for problem in names(&answer["problems"]) {
        _ = writeln!(text, "problem: {problem}");
    }
    text
}

fn names(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|name| name.as_str().map(tame)).collect()
}
