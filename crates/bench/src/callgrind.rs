//! What callgrind writes: how many instructions each function took.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context as _;

/// Instructions by function, each without those that it called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub functions: BTreeMap<String, f64>,
}

impl Profile {
    /// Reads a file of callgrind with one event, the instructions.
    pub fn parse(text: &str) -> anyhow::Result<Profile> {
        // A function is named in full once, and by its number from then on.
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut functions: BTreeMap<String, f64> = BTreeMap::new();
        let mut current = "";
        let mut is_called = false;
        for line in text.lines() {
            if let Some(function) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if !name.is_empty() {
                    names.insert(number, name);
                }
                if line.starts_with("fn=") {
                    current = names.get(number).copied().context("a function without a name")?;
                }
            } else if line.starts_with("calls=") {
                // The line behind it has what the called function took, which is counted there.
                is_called = true;
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let cost = line.split_ascii_whitespace().nth(1).unwrap_or("0");
                if !std::mem::take(&mut is_called) {
                    let cost: f64 = cost.parse().context("a cost that is no number")?;
                    *functions.entry(current.to_owned()).or_default() += cost;
                }
            }
        }
        Ok(Profile { functions })
    }

    /// Adds what another thread took.
    pub fn add(&mut self, other: Profile) {
        for (name, cost) in other.functions {
            *self.functions.entry(name).or_default() += cost;
        }
    }

    /// Whether any function of a crate was run.
    pub fn has_crate(&self, name: &str) -> bool {
        self.functions.keys().any(|function| crate_of(function) == name)
    }

    pub fn total(&self) -> f64 {
        self.functions.values().sum()
    }

    /// What this one has more than another, for each of `calls`.
    pub fn beyond(&self, less: &Profile, calls: f64) -> Profile {
        let mut functions = self.functions.clone();
        for (name, cost) in &less.functions {
            *functions.entry(name.clone()).or_default() -= *cost;
        }
        functions.retain(|_, cost| {
            *cost /= calls;
            *cost != 0.0
        });
        Profile { functions }
    }

    /// The same by crate; what is no Rust is together.
    pub fn by_crate(&self) -> BTreeMap<String, f64> {
        let mut crates = BTreeMap::new();
        for (name, cost) in &self.functions {
            *crates.entry(crate_of(name).to_owned()).or_default() += *cost;
        }
        crates
    }

    /// The functions that take most, the first of them first.
    pub fn heaviest(&self, count: usize) -> Vec<(&str, f64)> {
        let mut sorted: Vec<_> =
            self.functions.iter().map(|(name, cost)| (name.as_str(), *cost)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        sorted.truncate(count);
        sorted
    }
}

/// The crate that a function was written in.
fn crate_of(function: &str) -> &str {
    // `<a::B as c::D>::e` is a method of `a`.
    let path = function.trim_start_matches(['<', '&', '*', '(', '[']);
    let path = path.strip_prefix("mut ").or(path.strip_prefix("dyn ")).unwrap_or(path);
    match path.split_once("::") {
        Some((first, _)) if first.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => first,
        _ => "others",
    }
}

#[cfg(test)]
mod tests {
    use super::{Profile, crate_of};

    const FILE: &str = "\
# callgrind format
events: Ir
fl=(1) src/a.rs
fn=(1) gateway::handle
12 100
+1 20
cfn=(2) <hyper::Conn as Poll>::poll
calls=3 40
+1 5000
fn=(2)
* 30
-4 40
fn=(1)
7 5
fn=(3) memcpy
0 9
totals: 204
";

    #[test]
    fn functions_are_counted_without_what_they_call() {
        let profile = Profile::parse(FILE).unwrap();
        assert_eq!(profile.functions["gateway::handle"].to_string(), "125");
        assert_eq!(profile.functions["<hyper::Conn as Poll>::poll"].to_string(), "70");
        assert_eq!(profile.total().to_string(), "204");
        assert_eq!(profile.heaviest(1), [("gateway::handle", 125.0)]);
    }

    #[test]
    fn difference_of_two_runs_is_what_a_call_takes() {
        let less = Profile::parse(FILE).unwrap();
        let more = Profile::parse(&FILE.replace("12 100", "12 1100")).unwrap();
        let call = more.beyond(&less, 100.0);
        assert_eq!(call.total().to_string(), "10");
        assert_eq!(call.functions.len(), 1);
    }

    #[test]
    fn crate_of_a_function_is_that_of_the_type_it_belongs_to() {
        assert_eq!(crate_of("gateway::dispatch::handle"), "gateway");
        assert_eq!(crate_of("<hyper::Conn<T> as core::Poll>::poll"), "hyper");
        assert_eq!(crate_of("<&mut alloc::vec::Vec<u8>>::push"), "alloc");
        assert_eq!(crate_of("__memcpy_avx_unaligned_erms"), "others");
    }
}
