//! Tidiness: the rules of the house that no compiler checks, over every file of the repository.
//!
//! Each rule is a function from a file to its offences, and has two tests: one over the repository,
//! one that shows it an offender. A rule that cannot fail would be worse than none.

mod naming;
mod syntax;
mod text;
mod walls;

use std::path::Path;
use std::process::Command;

/// A text file of the repository; the path is relative to its root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    fn offence(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Every text file that git tracks or would track.
fn repository() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
        .current_dir(root)
        .output()
        .expect("git runs");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8(listed.stdout).expect("every path is UTF-8");
    // A file that is deleted and not yet committed, and one that is not text, cannot be read so.
    let sources: Vec<Source> = paths
        .split_terminator('\0')
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            Some(Source { path: path.to_owned(), text })
        })
        .collect();
    assert!(
        sources.iter().any(|source| source.path == "xtask/tests/tidy/main.rs"),
        "no files found"
    );
    sources
}

type Rule = fn(&Source) -> Vec<String>;

/// Holds the whole repository to a rule and lists every offence.
#[track_caller]
fn hold_all_to(rule: Rule) {
    let offences: Vec<String> = repository().iter().flat_map(rule).collect();
    assert!(offences.is_empty(), "{} offences:\n{}", offences.len(), offences.join("\n"));
}

/// Shows a rule one file and compares the offences that it finds.
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, offences: &[&str]) {
    let source = Source { path: path.to_owned(), text: text.to_owned() };
    assert_eq!(rule(&source), offences);
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
