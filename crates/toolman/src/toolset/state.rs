//! What became of the tools of a toolset: `show`, `diff` and `approve`.

use catalog::toolset::{Finding, Manner, Resolution, State, Toolset, changes};
use catalog::{snapshot::Item, tokens};
use comfy_table::Table;
use gateway::library::{Document, Store as _};
use mcp::items::Kind;
use mcp::text::tame;
use serde_json::{Value, json};

use super::{INTERRUPTED, Live, assents, find, look, read, shown};
use crate::cli::Cli;
use crate::library::Library;
use crate::terminal;

/// A toolset beside what there is now.
struct Compared {
    toolset: Toolset,
    live: Live,
    resolution: Resolution,
}

impl Compared {
    async fn of(cli: &Cli, library: &Library, name: &str) -> anyhow::Result<Option<Compared>> {
        let document = read(library)?;
        let toolset = Toolset::clone(find(&document, name).map_err(anyhow::Error::msg)?);
        let Some(live) = look(cli).await? else { return Ok(None) };
        let (catalog, ceiling) = (live.view.catalog(), live.view.ceiling());
        let allows_stale = catalog.allows_stale_references();
        let counts = |tool: &Item| ceiling.holds(tool);
        let manner = Manner { allows_stale, hides_names: false };
        let resolution = Resolution::of(&toolset, catalog, counts, manner);
        Ok(Some(Compared { toolset, live, resolution }))
    }

    fn tool(&self, finding: &Finding) -> Option<&Item> {
        self.live.view.catalog().items(Kind::Tool).get(finding.tool?)
    }

    /// What is different, member by member.
    fn changes(&self, finding: &Finding) -> Vec<String> {
        let (Some(tool), Some(then)) = (self.tool(finding), &finding.reference.definition) else {
            return Vec::new();
        };
        let text = |raw: &mcp::rpc::Raw| String::from_utf8_lossy(raw.as_bytes()).into_owned();
        changes(&text(then), &text(tool.source()))
    }

    /// The state in a word, and why.
    fn verdict(&self, finding: &Finding) -> (&'static str, Vec<String>) {
        let word = match finding.state {
            State::Resolved => "resolved",
            State::Stale => "stale",
            State::Withheld => "withheld",
            State::Missing => "missing",
        };
        let why = match finding.state {
            State::Resolved if finding.is_legacy => {
                vec!["pinned by hypertool's hash, without its description".to_owned()]
            }
            State::Resolved if finding.reference.ref_id.is_none() => vec!["not pinned".to_owned()],
            State::Resolved => Vec::new(),
            State::Missing => vec!["no server has it now".to_owned()],
            State::Stale | State::Withheld => self.reasons(finding),
        };
        (word, why)
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let now = self.tool(finding).map(|tool| tool.name.to_string()).unwrap_or_default();
        if finding.name_matches && finding.ref_id_matches {
            return vec!["its two ids mean two tools".to_owned()];
        }
        if !finding.name_matches {
            return vec![format!("it is now called `{now}`")];
        }
        let changes = self.changes(finding);
        if changes.is_empty() {
            return vec!["it is not what it was; what it was is not known".to_owned()];
        }
        changes
    }

    fn is_fine(&self) -> bool {
        self.resolution.findings.iter().all(|finding| finding.state == State::Resolved)
    }

    fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            let tool = self.tool(finding);
            let (state, why) = self.verdict(finding);
            let is_usable = matches!(finding.state, State::Resolved | State::Stale);
            let (warnings, errors) =
                if is_usable { (why.clone(), Vec::new()) } else { (Vec::new(), why.clone()) };
            json!({
                "namespacedName": finding.reference.name, "refId": finding.reference.ref_id,
                "state": state, "exists": tool.is_some(),
                "tool": tool.map(|tool| tool.name.as_str()),
                "serverName": tool.map(|tool| tool.origin.upstream.as_str()),
                "currentRefId": tool.map(|tool| tool.ref_id().as_str()),
                "namespacedNameMatch": finding.name_matches, "refIdMatch": finding.ref_id_matches,
                "reasons": why, "warnings": warnings, "errors": errors,
                "tokens": tool.map(|tool| tokens::estimate(&tool.definition)),
            })
        };
        let (tools, missing) = (&self.resolution.findings, State::Missing);
        let unusable = tools.iter().filter(|f| f.state == missing || f.state == State::Withheld);
        let errors: Vec<_> = unusable
            .map(|finding| {
                let (state, why) = self.verdict(finding);
                format!("`{}` is {state}: {}", shown(&finding.reference), why.join(", "))
            })
            .collect();
        json!({
            "name": self.toolset.name, "description": self.toolset.description,
            "version": self.toolset.version, "createdAt": self.toolset.created_at,
            "lastModified": self.toolset.last_modified, "ok": self.is_fine(),
            "tools": self.resolution.findings.iter().map(finding).collect::<Vec<Value>>(),
            "warnings": self.resolution.warnings, "errors": errors,
        })
    }

    /// A table of the references that are wanted, with their reasons.
    fn table(&self, is_wanted: impl Fn(&Finding) -> bool) -> String {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        for finding in self.resolution.findings.iter().filter(|finding| is_wanted(finding)) {
            let (word, why) = self.verdict(finding);
            let why: Vec<_> = why.iter().map(|line| tame(line)).collect();
            table.add_row([shown(&finding.reference), word.to_owned(), why.join("\n")]);
        }
        table.to_string()
    }
}

pub async fn show(cli: &Cli, library: &Library, name: &str, as_json: bool) -> anyhow::Result<i32> {
    let Some(compared) = Compared::of(cli, library, name).await? else { return Ok(INTERRUPTED) };
    if as_json {
        terminal::print(&format!("{:#}\n", compared.json()))?;
        return Ok(0);
    }
    let Compared { toolset, resolution, .. } = &compared;
    let tools = resolution.findings.iter().filter_map(|finding| compared.tool(finding));
    let tools = tools.filter(|tool| resolution.holds(tool));
    let cost: usize = tools.map(|tool| tokens::estimate(&tool.definition)).sum();
    let description = toolset.description.as_deref().map(tame).unwrap_or_default();
    let (usable, all) = (resolution.len(), toolset.references.len());
    terminal::print(&format!(
        "{}  {description}\n\n{}\n\n{usable} of {all} tools can be used; about {cost} tokens\n",
        tame(&toolset.name),
        compared.table(|_| true),
    ))?;
    Ok(0)
}

pub async fn diff(cli: &Cli, library: &Library, name: &str, as_json: bool) -> anyhow::Result<i32> {
    let Some(compared) = Compared::of(cli, library, name).await? else { return Ok(INTERRUPTED) };
    let code = i32::from(!compared.is_fine());
    let text = if as_json {
        format!("{:#}\n", compared.json())
    } else if compared.is_fine() {
        "every tool is what it was\n".to_owned()
    } else {
        format!("{}\n", compared.table(|finding| finding.state != State::Resolved))
    };
    terminal::print(&text)?;
    Ok(code)
}

/// Whether a reference can be pinned anew, and gains by it.
fn is_open(finding: &Finding) -> bool {
    let reference = &finding.reference;
    let is_whole =
        reference.name.is_some() && reference.ref_id.is_some() && reference.definition.is_some();
    let is_pinned = finding.state == State::Resolved && is_whole && !finding.is_legacy;
    finding.tool.is_some() && !is_pinned
}

pub async fn approve(
    cli: &Cli,
    library: &Library,
    name: &str,
    yes: bool,
    as_json: bool,
) -> anyhow::Result<i32> {
    let Some(compared) = Compared::of(cli, library, name).await? else { return Ok(INTERRUPTED) };
    let catalog = compared.live.view.catalog();
    let renewed = compared.resolution.repinned(&compared.toolset, catalog, is_open);
    let open = compared.resolution.findings.iter().filter(|finding| is_open(finding));
    let names: Vec<String> = open.map(|finding| shown(&finding.reference)).collect();
    let is_shown = |finding: &Finding| is_open(finding) || finding.state == State::Missing;
    match compared.table(is_shown) {
        table if table.is_empty() => {}
        // Whoever reads JSON may still be asked.
        table if as_json => terminal::complain(&table),
        table => terminal::print(&format!("{table}\n"))?,
    }
    let Some(renewed) = renewed else {
        let missing = if compared.is_fine() { "" } else { "; what is missing stays so" };
        let words = format!("there is nothing to approve{missing}");
        return super::tell(as_json, &json!({"approved": names}), &words);
    };
    if !yes {
        let question = "pin these tools as they are now?";
        let asked = tokio::task::spawn_blocking(|| assents(question));
        let is_wanted = tokio::select! {
            answer = asked => answer??,
            () = compared.live.stop.cancelled() => return Ok(INTERRUPTED),
        };
        if !is_wanted {
            return Ok(1);
        }
    }
    let mut change = |document: &mut Document| {
        // What was shown is what is approved.
        if find(document, name)?.references != compared.toolset.references {
            return Err(format!("toolset `{name}` was changed meanwhile; look at it again"));
        }
        document.toolsets.insert(renewed.key().into(), renewed.clone().into());
        Ok(())
    };
    library.update(&mut change).map_err(anyhow::Error::msg)?;
    let words = format!("approved {} of toolset `{name}`", names.join(", "));
    super::tell(as_json, &json!({"approved": names}), &words)
}
