//! The layout of the binary: which functions every start and call runs, so that they lie side by side.
//!
//! `crates/toolman/build.rs` says why, and hands the list to the linker.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::contestant::Contestant;
use crate::count::{self, Route};

/// What runs in the processes above servers, which callgrind does not follow.
const GUARDS: [&str; 2] = ["_ZN8upstream5guard*", "_ZN8upstream11inheritance*"];
/// How names of the binary begin: those of Rust, old and new, and of its cryptography. The others are of libc.
const OWN: [&str; 3] = ["_ZN", "_R", "aws_lc_"];
/// What hashes of legacy names begin with, and how long such a name's end is.
const HASH: &str = "17h";
const HASH_DIGITS: usize = 16;

/// Writes the names of all functions that the usual ways of a call run.
pub fn write(toolman: &Path, file: &Path) -> anyhow::Result<()> {
    let toolman = Contestant::Toolman(toolman.to_owned());
    let mut names: BTreeSet<String> = GUARDS.map(str::to_owned).into();
    for route in Route::ALL {
        // It does not run the binary.
        if route != Route::Envelope {
            names.extend(count::functions(&toolman, route)?.iter().map(|name| pattern(name)));
        }
    }
    names.retain(|name| OWN.iter().any(|own| name.starts_with(own)));
    let count = names.len();
    let text: String = names.into_iter().map(|name| name + "\n").collect();
    fs::write(file, text).with_context(|| format!("can't write {}", file.display()))?;
    println!("{}: {count} names", file.display());
    Ok(())
}

/// The name of a function without what changes with every version of its crate.
fn pattern(name: &str) -> String {
    // Recursion has a number behind a quote, a local function one behind a point.
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    let name = match name.rsplit_once('.') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{}*", name.trim_end_matches(".llvm"))
        }
        _ => name.to_owned(),
    };
    if name.starts_with("_R") { without_crate_hashes(&name) } else { without_hash(&name) }
}

/// `17h0123456789abcdefE` at the end of a legacy name, with a star for its digits.
fn without_hash(name: &str) -> String {
    let Some((path, rest)) = name.rsplit_once(HASH) else { return name.to_owned() };
    let (digits, end) = rest.split_at(HASH_DIGITS.min(rest.len()));
    let is_hash = digits.len() == HASH_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash { format!("{path}{HASH}*{end}") } else { name.to_owned() }
}

/// `Cs0aBcD_` before the crates of a newer name, with a star for what is between.
fn without_crate_hashes(name: &str) -> String {
    let mut parts = name.split("Cs");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('_') {
            Some((hash, rest)) if hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                made += &format!("Cs*_{rest}");
            }
            _ => made += &format!("Cs{part}"),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn names_are_those_of_every_build() {
        for (name, expected) in [
            ("_ZN6server4http4read17h0123456789abcdefE", "_ZN6server4http4read17h*E"),
            ("_ZN6server4http4read17h0123456789abcdefE'2", "_ZN6server4http4read17h*E"),
            ("_ZN5bytes5clone17h41bfdac886a55df5E.1746", "_ZN5bytes5clone17h*E*"),
            ("_ZN5bytes5clone17h41bfdac886a55df5E.llvm.17", "_ZN5bytes5clone17h*E*"),
            ("_RNvMNtCsgEmfK2I1SDS_4core3stre8split_at", "_RNvMNtCs*_4core3stre8split_at"),
            ("aws_lc_0_47_0_SHA256_Final", "aws_lc_0_47_0_SHA256_Final"),
            ("main", "main"),
        ] {
            assert_eq!(pattern(name), expected);
        }
    }
}
