//! Folders made for tests, and what a survey of them finds, as text.

use std::fs;

use tempfile::TempDir;

use super::Tool;
use crate::report::{Report, survey};

pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

pub fn surveyed(files: &[(&str, &str)]) -> Report {
    survey(folder(files).path()).unwrap()
}

/// A line a tool: name, place, parameters (`!` if they must be there) and description.
fn render(tools: &[Tool]) -> String {
    let mut text = String::new();
    for tool in tools {
        let parameters: Vec<String> = tool
            .parameters
            .iter()
            .map(|one| {
                let mark = if one.required { "!" } else { "" };
                let about = if one.description.is_empty() {
                    String::new()
                } else {
                    format!("={}", one.description)
                };
                format!("{}:{}{mark}{about}", one.name, one.kind)
            })
            .collect();
        text += &format!(
            "{} {}:{} ({}) {}\n",
            tool.name,
            tool.file,
            tool.line,
            parameters.join(", "),
            tool.description
        );
    }
    text
}

/// Surveys files and compares the tools that are found.
#[track_caller]
pub fn check(files: &[(&str, &str)], expected: &str) {
    assert_eq!(render(&surveyed(files).tools_found), expected);
}
