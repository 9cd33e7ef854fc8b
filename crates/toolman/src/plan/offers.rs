//! What the servers of a configuration offer, whatever they are called.

use config::Config;
use mcp::items::Kind;

use super::rules::Need;
use crate::cli::{Cli, Misuse};
use crate::host;
use crate::terminal;
use crate::unset::{self, Absent};

/// A tool, by its server.
pub struct Offer {
    pub server: String,
    pub tool: String,
}

/// Starts what can be started, and asks.
pub async fn of(cli: &Cli, config: Config, absent: Vec<Absent>) -> Result<Vec<Offer>, Misuse> {
    let Some(path) = host::file(cli) else { return Ok(Vec::new()) };
    for Absent { name, reason, .. } in &absent {
        terminal::complain(&format!("server `{name}` is not asked what it offers: it {reason}"));
    }
    let host = unset::start_without(cli, config, &absent, path).await?;
    terminal::wait_for_all(&host.gateway).await;
    for (_, upstream) in host.gateway.upstreams() {
        if let Some(problem) = upstream.condition().problem {
            let problem = problem.lines().next().unwrap_or_default();
            let name = upstream.name();
            terminal::complain(&format!(
                "server `{name}` can't be asked what it offers: it {problem}"
            ));
        }
    }
    let catalog = host.gateway.catalog();
    let offer = |item: &catalog::snapshot::Item| Offer {
        server: item.origin.upstream.to_string(),
        tool: item.origin.name.to_string(),
    };
    let offers = catalog.items(Kind::Tool).iter().map(offer).collect();
    host.stop().await;
    Ok(offers)
}

/// Gives a need to the server that offers the tool, or one whose name has all of its words.
pub fn resolve(need: &mut Need, offers: &[Offer]) {
    let wanted = words(&need.tool);
    let has_all = |offer: &&Offer| {
        let words = words(&offer.tool);
        wanted.iter().all(|word| words.contains(word))
    };
    let same = offers.iter().find(|offer| offer.tool == need.tool);
    let like = || offers.iter().filter(has_all).min_by_key(|offer| offer.tool.len());
    if let Some(offer) = same.or_else(like) {
        need.server.clone_from(&offer.server);
        need.tool.clone_from(&offer.tool);
    }
}

fn words(name: &str) -> Vec<String> {
    let parts = name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{Need, Offer, resolve};

    #[track_caller]
    fn check(tool: &str, offered: &[&str], expected: &str) {
        let offer = |name: &&str| Offer { server: "own".into(), tool: (*name).to_owned() };
        let offers: Vec<_> = offered.iter().map(offer).collect();
        let mut need = Need { server: "usual".into(), tool: tool.into(), why: String::new() };
        resolve(&mut need, &offers);
        assert_eq!(format!("{}:{}", need.server, need.tool), expected);
    }

    #[test]
    fn same_tool_counts_before_one_with_all_its_words() {
        check("read_file", &["read_text_file", "read_file"], "own:read_file");
        check("read_file", &["read_media_file_raw", "file-read"], "own:file-read");
        check("read_file", &["read_files"], "usual:read_file");
        check("read_file", &[], "usual:read_file");
    }
}
