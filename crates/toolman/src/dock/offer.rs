//! What a folder offers before any worker runs: read from its sources, or remembered by what they say.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use config::dock::Folder;
use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::rpc::Raw;
use mcp::text::hexadecimal;
use upstream::python::admission::Admission;
use upstream::python::environment::Interpreter;
use upstream::python::scan;

use crate::data_dir::replace;
use crate::dock::Site;

/// What is known of a folder's tools before any worker runs.
#[derive(Default)]
pub(super) struct Offer {
    pub tools: Arc<Inventory>,
    /// Which file each of them stands in.
    pub files: Vec<(String, String)>,
    /// Those whose schema alone tells what they take.
    pub exact: Vec<String>,
    /// Whether only running the folder tells what else it has.
    pub is_partial: bool,
}

impl Site {
    /// What a folder offers as far as its sources tell. TD-18, TD-38
    pub(super) async fn offer(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        runtime: &Path,
        faults: &mut Vec<String>,
    ) -> Offer {
        let read = self.read_sources(folder, interpreter, runtime).await;
        let read = read.unwrap_or_else(|problem| {
            faults.push(format!("can't be read: {problem}"));
            vec![scan::Findings::default(); folder.sources.len()]
        });
        let (mut tools, mut exact, mut is_partial) = (Vec::new(), Vec::new(), false);
        let mut files: Vec<(String, String)> = Vec::new();
        for (source, findings) in folder.sources.iter().zip(read) {
            faults.extend(findings.faults.iter().map(|fault| fault.at(&source.file)));
            for (tool, line) in findings.tools.iter().zip(&findings.lines) {
                let Some(tool) = name_of(tool) else { continue };
                if let Some((_, keeper)) = files.iter().find(|(known, _)| *known == tool) {
                    faults.push(doubled(&source.file, *line, &tool, keeper));
                }
                files.push((tool, source.file.clone()));
            }
            tools.extend(findings.tools);
            exact.extend(findings.exact);
            is_partial |= !findings.is_whole;
        }
        let mut inventory = Inventory::default();
        inventory.set(Kind::Tool, tools);
        let mut known: Vec<String> = Vec::new();
        let admission = admission_of(folder);
        inventory.retain(|tool| {
            // The first of two keeps the name, as far as its file can be imported; the worker says so.
            let is_first = !known.iter().any(|other| other == tool.name());
            if !is_first {
                exact.retain(|name| name != tool.name());
            }
            known.push(tool.name().to_owned());
            is_first && admission.admits(tool.name())
        });
        files.retain(|(tool, _)| admission.admits(tool));
        Offer { tools: Arc::new(inventory), files, exact, is_partial }
    }

    /// What was found in a file, without the values of secrets that somebody has written into it.
    fn findings(&self, line: &[u8]) -> Option<scan::Findings> {
        scan::parse(&self.spawner.veil().over_json(line)?)
    }

    /// What was found in each source, now or when it was last read.
    async fn read_sources(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        runtime: &Path,
    ) -> std::io::Result<Vec<scan::Findings>> {
        let cache = self.data.join("cache/scan");
        let path = |source: &scan::Source| {
            let text = format!("{}\n{}\n{}", runtime.display(), interpreter.version, source.text);
            cache.join(hexadecimal(digest(&SHA256, text.as_bytes()).as_ref()))
        };
        let known: Vec<_> = folder
            .sources
            .iter()
            .map(|source| self.findings(&fs::read(path(source)).ok()?))
            .collect();
        let fresh = folder.sources.iter().zip(&known).filter(|(_, known)| known.is_none());
        let fresh: Vec<_> = fresh.map(|(source, _)| source.clone()).collect();
        let lines = scan::scan(&self.spawner, &interpreter.path, runtime, &fresh).await?;
        _ = fs::create_dir_all(&cache);
        for (source, line) in fresh.iter().zip(&lines).filter(|(_, line)| scan::will_hold(line)) {
            // It saves time only.
            _ = replace(&path(source), line);
        }
        let mut lines = lines.iter();
        let found = |known: Option<scan::Findings>| {
            known.or_else(|| self.findings(lines.next()?)).unwrap_or_default()
        };
        Ok(known.into_iter().map(found).collect())
    }
}

/// What is wrong with a tool whose name another file has already; a worker words it in the same way.
pub fn doubled(file: &str, line: u64, tool: &str, keeper: &str) -> String {
    format!(
        "{file}:{line}: the tool `{tool}` is already defined in `{keeper}`, which keeps the name"
    )
}

fn name_of(tool: &Raw) -> Option<String> {
    let [name] = tool.members(["name"]).ok()?;
    Some(json::string(name?)?.into_owned())
}

/// Which tools a folder lets others see, whatever else it defines. TD-18
pub(super) fn admission_of(folder: &Folder) -> Admission {
    let (allow, deny) = (folder.manifest.allow.clone(), folder.manifest.deny.clone());
    // The version covers what is written of it.
    Admission::new(folder.version.clone(), move |name| {
        allow.as_ref().is_none_or(|allow| allow.matches_name(name))
            && !deny.as_ref().is_some_and(|deny| deny.matches_name(name))
    })
}
