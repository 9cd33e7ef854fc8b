//! Languages of files: by what is in them, and counted in bytes.

use std::collections::HashMap;

use serde::Serialize;

/// How much of the sources is written in a language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    pub language: &'static str,
    pub bytes: u64,
}

/// The language of a file. Its first line counts more than its name; what is no text is in none.
pub fn of(path: &str, text: &str) -> Option<&'static str> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!"));
    if let Some(language) = first.and_then(by_interpreter) {
        return Some(language);
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.ends_with(".d.ts") || name.ends_with(".min.js") {
        return None;
    }
    let (_, extension) = name.rsplit_once('.')?;
    // Translations of Qt end in `.ts` too, and are XML.
    if text.trim_start().starts_with("<?xml") {
        return None;
    }
    Some(match extension {
        "py" | "pyi" => "python",
        "ts" | "mts" | "cts" | "tsx" => "typescript",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "go" => "go",
        "rs" => "rust",
        "java" => "java",
        "kt" | "kts" => "kotlin",
        "cs" => "csharp",
        "rb" => "ruby",
        "php" => "php",
        "swift" => "swift",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" => "cpp",
        "ex" | "exs" => "elixir",
        "sh" | "bash" => "shell",
        _ => return None,
    })
}

fn by_interpreter(line: &str) -> Option<&'static str> {
    let mut words = line.split(['/', ' ']).rev();
    words.find_map(|word| match word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Some("python"),
        "node" => Some("javascript"),
        "tsx" | "ts-node" | "deno" | "bun" => Some("typescript"),
        "ruby" => Some("ruby"),
        "php" => Some("php"),
        "sh" | "bash" => Some("shell"),
        _ => None,
    })
}

/// All shares, the largest first.
pub fn shares(bytes: HashMap<&'static str, u64>) -> Vec<Share> {
    let mut shares: Vec<Share> =
        bytes.into_iter().map(|(language, bytes)| Share { language, bytes }).collect();
    shares.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.language.cmp(b.language)));
    shares
}
