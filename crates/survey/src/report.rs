//! A survey of a folder: every file is read once, and what it tells is gathered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::languages::{self, Share};
use crate::limits::{GUESSED_BYTES_MAX, SOURCE_BYTES_MAX, SOURCES_BYTES_MAX, SURVEY_TIME_MAX};
use crate::manifests::{self, Dependencies};
use crate::path::extension;
use crate::source::Grammar;
use crate::tools::{Sources, Tool, is_test, openapi};
use crate::{folder, hosts, variables};

/// What a folder of sources tells. TD-135
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The one that most is written in.
    pub language: Option<&'static str>,
    pub languages: Vec<Share>,
    pub framework: Option<&'static str>,
    pub files: Vec<String>,
    pub tools_found: Vec<Tool>,
    pub dependencies: BTreeMap<String, String>,
    pub apis_called: Vec<String>,
    pub secrets_needed: Vec<String>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// What is said where something was left out for want of time or room.
const MORE: &str = "there is more than can be looked into; the rest is only listed";

/// Reads a folder.
pub fn survey(root: &Path) -> Result<Report, Error> {
    survey_within(root, SURVEY_TIME_MAX)
}

/// The same in another time.
fn survey_within(root: &Path, time_max: Duration) -> Result<Report, Error> {
    let listing = folder::list(root)?;
    let mut survey = Survey { root, until: Instant::now() + time_max, ..Survey::default() };
    if listing.is_cut {
        survey.notes.push(format!("only the first {} files are listed", listing.files.len()));
    }
    for file in &listing.files {
        survey.file(&file.path, file.bytes);
    }
    let files = listing.files.into_iter().map(|file| file.path).collect();
    Ok(survey.report(files))
}

struct Survey<'a> {
    root: &'a Path,
    /// When it must be over.
    until: Instant,
    bytes_read: u64,
    bytes: HashMap<&'static str, u64>,
    sources: Sources,
    documents: Vec<(String, String, Value)>,
    packages: Vec<(String, Dependencies)>,
    hosts: BTreeSet<String>,
    variables: BTreeSet<String>,
    notes: Vec<String>,
}

impl Default for Survey<'_> {
    fn default() -> Self {
        Survey {
            root: Path::new(""),
            until: Instant::now(),
            bytes_read: 0,
            bytes: HashMap::new(),
            sources: Sources::default(),
            documents: Vec::new(),
            packages: Vec::new(),
            hosts: BTreeSet::new(),
            variables: BTreeSet::new(),
            notes: Vec::new(),
        }
    }
}

impl Survey<'_> {
    fn file(&mut self, path: &str, bytes: u64) {
        let is_source = Grammar::of(path).is_some() || extension(path) == "rs";
        if bytes > SOURCE_BYTES_MAX {
            if is_source {
                self.notes.push(format!("`{path}` is too large to be looked into"));
            }
            return;
        }
        if self.bytes_read + bytes > SOURCES_BYTES_MAX || self.is_late() {
            self.note_more();
            return;
        }
        // What is no text has nothing to say here.
        let Ok(text) = folder::read(self.root, path, SOURCE_BYTES_MAX) else { return };
        self.bytes_read += bytes;
        let mut language = languages::of(path, &text);
        // Translations of Qt end in `.ts` too.
        let is_markup = text.trim_start().starts_with("<?xml");
        let named = Grammar::of(path).filter(|_| !is_markup);
        let mut grammar = named.or_else(|| Grammar::by_name(language?));
        let has_extension = path.rsplit('/').next().is_some_and(|name| name.contains('.'));
        if language.is_none() && !has_extension && bytes < GUESSED_BYTES_MAX {
            grammar = Grammar::by_content(path, &text, self.until);
            language = grammar.map(Grammar::name);
        }
        if let Some(language) = language {
            *self.bytes.entry(language).or_default() += bytes;
        }
        if manifests::is_manifest(path) {
            let (package, _) = path.rsplit_once('/').unwrap_or(("", path));
            self.packages.push((package.to_owned(), manifests::dependencies(path, &text)));
        }
        if !is_test(path) {
            let is_disproved = self.source(path, text, grammar);
            if let Some(counted) = language.and_then(|language| self.bytes.get_mut(language)) {
                *counted -= if is_disproved { bytes } else { 0 };
            }
        }
    }

    fn is_late(&self) -> bool {
        Instant::now() > self.until
    }

    fn note_more(&mut self) {
        if !self.notes.iter().any(|known| known == MORE) {
            self.notes.push(MORE.to_owned());
        }
    }

    /// Looks into a file; whether it is not written in what it was taken for.
    fn source(&mut self, path: &str, text: String, grammar: Option<Grammar>) -> bool {
        if extension(path) == "rs" {
            match self.sources.rust.add(path, &text) {
                Some(mut told) => {
                    self.hosts.append(&mut told.hosts);
                    self.variables.append(&mut told.variables);
                }
                None => self.notes.push(format!("`{path}` is nested too deeply to be looked into")),
            }
            return false;
        }
        if let Some(document) = openapi::document(path, &text) {
            self.hosts.extend(openapi::hosts(&document));
            self.documents.push((path.to_owned(), text, document));
            return false;
        }
        let is_declaration = path.ends_with(".d.ts") || extension(path) == "pyi";
        let Some(grammar) = grammar.filter(|_| !is_declaration) else { return false };
        match grammar.parse(path, text, self.until) {
            Some(parsed) if parsed.is_mostly_wrong() => return true,
            Some(parsed) => {
                hosts::collect(&parsed, &mut self.hosts);
                variables::collect(grammar, &parsed, &mut self.variables);
                self.sources.add(grammar, parsed);
            }
            None => self.notes.push(format!("`{path}` takes too long to be parsed")),
        }
        false
    }

    fn report(mut self, files: Vec<String>) -> Report {
        let roots: HashSet<&str> = self.packages.iter().map(|(root, _)| root.as_str()).collect();
        // The innermost package of a file is that with the longest path.
        let package_of = |file: &str| {
            let folders = file.rmatch_indices('/').filter_map(|(end, _)| file.get(..end));
            folders.into_iter().find_map(|folder| roots.get(folder)).copied().unwrap_or("")
        };
        let mut tools_found = self.sources.tools(package_of);
        let is_described_only = tools_found.is_empty() && !self.documents.is_empty();
        if is_described_only {
            let documents = self.documents.iter();
            tools_found = documents
                .flat_map(|(path, text, document)| openapi::tools(path, text, document))
                .collect();
        }
        if self.is_late() {
            self.note_more();
        }
        let mut dependencies = Dependencies::new();
        for (_, own) in self.packages {
            dependencies.extend(own);
        }
        let framework =
            manifests::framework(&dependencies).or(is_described_only.then_some("openapi"));
        self.variables.retain(|name| variables::looks_secret(name));
        self.bytes.retain(|_, bytes| *bytes > 0);
        let languages = languages::shares(self.bytes);
        Report {
            language: languages.first().map(|share| share.language),
            languages,
            framework,
            files,
            tools_found,
            dependencies,
            apis_called: self.hosts.into_iter().collect(),
            secrets_needed: self.variables.into_iter().collect(),
            notes: self.notes,
        }
    }
}
