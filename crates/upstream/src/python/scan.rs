//! What Python files define, read from their source without running it. TD-151
//!
//! An isolated interpreter reads the sources on its stdin; it is given no path and imports nothing of theirs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use mcp::json;
use mcp::rpc::Raw;

use crate::launch::{Errand, Spawner};
use crate::limits::{SCAN_BYTES_MAX, SCAN_TIME_MAX};

/// A source to be read.
#[derive(Clone, Debug)]
pub struct Source {
    pub file: String,
    pub text: String,
}

/// What one file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Definitions of tools.
    pub tools: Vec<Raw>,
    /// Why it can't be used, each with its place.
    pub faults: Vec<Remark>,
    /// What could be better.
    pub warnings: Vec<Remark>,
    /// The line that each of these tools begins on.
    pub lines: Vec<u64>,
    /// The variables of the environment that the file reads.
    pub variables: Vec<String>,
    /// The tools whose definitions are surely those that running the file would give.
    pub exact: Vec<String>,
    /// Whether running the file would surely show no other tools, and no more of their schemas.
    pub is_whole: bool,
}

/// Something about a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub line: Option<u64>,
    pub column: Option<u64>,
    pub message: String,
}

impl Remark {
    /// With its place, as compilers write it.
    pub fn at(&self, file: &str) -> String {
        match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}: {}", self.message),
            (Some(line), None) => format!("{file}:{line}: {}", self.message),
            _ => format!("{file}: {}", self.message),
        }
    }
}

/// Reads sources; what was found in each, in their order, for [`parse`].
pub async fn scan(
    spawner: &Arc<Spawner>,
    interpreter: &Path,
    runtime: &Path,
    sources: &[Source],
) -> io::Result<Vec<Vec<u8>>> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let mut input = String::new();
    for Source { file, text } in sources {
        let (file, text) = (json::quote(file), json::quote(text));
        input += &format!("{{\"file\":{file},\"source\":{text}}}\n");
    }
    let mut args: Vec<OsString> = ["-I", "-S", "-B"].map(OsString::from).into();
    args.push(runtime.join("scan.py").into());
    let errand = Errand {
        program: interpreter.to_owned(),
        args,
        env: Vec::new(),
        cwd: runtime.to_owned(),
        confinement: None,
        input: input.into_bytes(),
        time_max: SCAN_TIME_MAX,
        output_bytes_max: SCAN_BYTES_MAX,
    };
    let ended = spawner.run(errand).await?;
    let lines = ended.output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let findings: Vec<_> = lines.map(<[u8]>::to_vec).collect();
    if !ended.is_success || findings.len() != sources.len() {
        let said = ended.errors.lines().last().unwrap_or_default().to_owned();
        let how = ended.how;
        return Err(io::Error::other(format!("the reader of Python files {how} {said}")));
    }
    Ok(findings)
}

/// Whether the same source would give the same line another time: not if it was given up for want of time.
pub fn will_hold(line: &[u8]) -> bool {
    let late = json::members(line, ["late"]);
    !matches!(late, Ok([Some("true")]))
}

/// Reads one line of the reader.
pub fn parse(line: &[u8]) -> Option<Findings> {
    let whole = Raw::trusted(Bytes::copy_from_slice(line));
    let wanted = ["tools", "faults", "warnings", "variables", "whole"];
    let [tools, faults, warnings, variables, is_whole] = whole.members(wanted).ok()?;
    let mut found = Findings { is_whole: is_whole == Some("true"), ..Findings::default() };
    for tool in json::elements(tools?).ok()? {
        let wanted = ["definition", "exact", "mark"];
        let [definition, exact, mark] = json::members(tool.as_bytes(), wanted).ok()?;
        found.lines.push(mark.and_then(|line| line.parse().ok()).unwrap_or_default());
        let [name] = json::members(definition?.as_bytes(), ["name"]).ok()?;
        if exact == Some("true") {
            found.exact.extend(name.and_then(json::string).map(Cow::into_owned));
        }
        found.tools.push(Raw::trusted(Bytes::copy_from_slice(definition?.as_bytes())));
    }
    let variables = json::elements(variables.unwrap_or("[]")).ok()?.into_iter();
    found.variables = variables.filter_map(|name| Some(json::string(name)?.into_owned())).collect();
    found.faults = remarks(faults.unwrap_or("[]"))?;
    found.warnings = remarks(warnings.unwrap_or("[]"))?;
    Some(found)
}

fn remarks(list: &str) -> Option<Vec<Remark>> {
    let remark = |text: &str| {
        let wanted = ["line", "column", "message"];
        let [line, column, message] = json::members(text.as_bytes(), wanted).ok()?;
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        let message = json::string(message?)?.into_owned();
        Some(Remark { line: number(line), column: number(column), message })
    };
    json::elements(list).ok()?.into_iter().map(remark).collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn findings_are_tools_and_remarks_with_their_place() {
        let line = br#"{"file":"a.py","tools":[{"definition":{"name":"a"},"line":3,"column":1,"exact":true}],"faults":[{"file":"a.py","line":7,"column":2,"message":"no","traceback":null}],"warnings":[]}"#;
        let found = parse(line).unwrap();
        assert_eq!(found.tools[0].as_bytes(), br#"{"name":"a"}"#);
        assert_eq!(found.faults[0].at("a.py"), "a.py:7:2: no");
        assert_eq!((found.exact, found.is_whole), (vec!["a".to_owned()], false));
        assert!(parse(br#"{"tools":[],"whole":true}"#).unwrap().is_whole);
        assert!(parse(b"").is_none() && parse(b"{}").is_none());
    }
}
