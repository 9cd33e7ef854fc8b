//! What was counted last, and how far what is counted now may lie from it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::count::{Cost, Route};
use crate::limits::{INSTRUCTIONS_ROOM_PERCENT, MEMORY_ROOM_PERCENT, UNSTEADY_ROOM_PERCENT};

/// How many of the crates that have grown are named, and of the heaviest functions.
const NAMED_MAX: usize = 6;

/// The counts that are kept in the repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    pub routes: BTreeMap<Route, Count>,
    pub idle_kib: u64,
}

/// Instructions of one call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    pub instructions: f64,
    /// More of them afterwards, for the audit trail.
    #[serde(default)]
    pub trail: f64,
    pub crates: BTreeMap<String, f64>,
    /// The heaviest functions; they are shown, not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heaviest: Vec<(String, f64)>,
}

impl Count {
    /// The instructions that are the same on every run. Between two pipes threads hand over to each
    /// other, and how often they wait for that depends on what else the machine does: there the
    /// runtime is left out, and has a wider bound of its own.
    fn steady(&self, route: Route) -> f64 {
        let waiting = ["tokio", "mio"].iter().filter(|_| route == Route::Pipes);
        let waiting = waiting.filter_map(|name| self.crates.get(*name));
        self.instructions - waiting.sum::<f64>()
    }

    pub fn of(Cost { way: profile, trail }: &Cost) -> Count {
        let whole = |(name, cost): (String, f64)| (name, cost.round());
        let heaviest = profile.heaviest(NAMED_MAX);
        Count {
            instructions: profile.total().round(),
            trail: trail.total().round().max(0.0),
            crates: profile.by_crate().into_iter().map(whole).filter(|(_, n)| *n >= 1.0).collect(),
            heaviest: heaviest.into_iter().map(|(name, n)| (name.to_owned(), n.round())).collect(),
        }
    }
}

/// What is to be said of new counts.
#[derive(Debug, Default)]
pub struct Verdict {
    pub problems: Vec<String>,
    pub notes: String,
}

impl Baseline {
    pub fn parse(text: &str) -> anyhow::Result<Baseline> {
        serde_json::from_str(text)
            .context("the baseline can't be read; write it anew with `TOOLMAN_BLESS=1`")
    }

    /// As it is kept in the repository.
    pub fn text(&self) -> anyhow::Result<String> {
        let mut kept = self.clone();
        for count in kept.routes.values_mut() {
            count.heaviest.clear();
        }
        Ok(serde_json::to_string_pretty(&kept)? + "\n")
    }

    /// Compares these counts with what was counted before.
    pub fn against(&self, before: &Baseline) -> Verdict {
        let mut verdict = Verdict::default();
        for (route, now) in &self.routes {
            let name = route.name();
            let Some(old) = before.routes.get(route) else {
                verdict.problems.push(format!("the baseline does not know the route `{name}`"));
                continue;
            };
            let (count, kept) = (now.steady(*route), old.steady(*route));
            let percent = (count - kept) * 100.0 / kept;
            let change =
                format!("`{name}` takes {count} instructions, {percent:+.1} % against {kept}");
            let whole = (now.instructions - old.instructions) * 100.0 / old.instructions;
            if percent > INSTRUCTIONS_ROOM_PERCENT || whole > UNSTEADY_ROOM_PERCENT {
                verdict.problems.push(format!("{change}; {}", whereabouts(now, old)));
            } else if percent < -INSTRUCTIONS_ROOM_PERCENT {
                verdict.notes += &format!("{change}; keep it so with `TOOLMAN_BLESS=1`\n");
            }
            // How many records are written at once depends on when the thread is woken.
            if now.trail > old.trail * (1.0 + UNSTEADY_ROOM_PERCENT / 100.0) + 1.0 {
                verdict.problems.push(format!(
                    "a record of `{name}` in the audit trail takes {} instructions; it took {}",
                    now.trail, old.trail
                ));
            }
        }
        let most = before.idle_kib * (100 + MEMORY_ROOM_PERCENT) / 100;
        if self.idle_kib > most {
            verdict.problems.push(format!(
                "an idle gateway takes {} KiB; the most is {most}, {MEMORY_ROOM_PERCENT} % over the baseline",
                self.idle_kib
            ));
        }
        verdict
    }
}

/// Where a count has grown: by crate, and what is heaviest now.
fn whereabouts(now: &Count, old: &Count) -> String {
    let grown = |(name, cost): (&String, &f64)| {
        (cost - old.crates.get(name).copied().unwrap_or_default(), name.clone())
    };
    let mut grown: Vec<_> = now.crates.iter().map(grown).filter(|(more, _)| *more >= 1.0).collect();
    grown.sort_by(|a, b| b.0.total_cmp(&a.0));
    grown.truncate(NAMED_MAX);
    let crates: Vec<_> = grown.iter().map(|(more, name)| format!("`{name}` {more:+}")).collect();
    let heaviest: Vec<_> =
        now.heaviest.iter().map(|(name, cost)| format!("  {cost:>7} {name}")).collect();
    format!("more in {}; heaviest now:\n{}", crates.join(", "), heaviest.join("\n"))
}

/// The numbers of a list such as `0-2,5`.
pub fn numbers(list: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse()) {
            found.extend(first..=last);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Baseline, Count, numbers};
    use crate::count::Route;

    fn baseline(instructions: f64, gateway: f64, idle_kib: u64) -> Baseline {
        let crates = [("gateway".to_owned(), gateway), ("hyper".to_owned(), 50.0)];
        let heaviest = vec![("gateway::handle".to_owned(), gateway)];
        let count = Count { instructions, trail: 0.0, crates: crates.into(), heaviest };
        Baseline { routes: [(Route::Call, count)].into(), idle_kib }
    }

    #[test]
    fn growth_within_the_room_passes_in_silence() {
        let verdict = baseline(1_030.0, 100.0, 1_100).against(&baseline(1_000.0, 70.0, 1_000));
        assert!(verdict.problems.is_empty() && verdict.notes.is_empty(), "{verdict:?}");
    }

    #[test]
    fn growth_beyond_it_fails_and_says_where() {
        let verdict = baseline(1_031.0, 101.0, 1_101).against(&baseline(1_000.0, 70.0, 1_000));
        assert_eq!(
            verdict.problems,
            [
                "`call` takes 1031 instructions, +3.1 % against 1000; more in `gateway` +31; \
                 heaviest now:\n      101 gateway::handle",
                "an idle gateway takes 1101 KiB; the most is 1100, 10 % over the baseline",
            ]
        );
    }

    #[test]
    fn saving_is_to_be_blessed() {
        let verdict = baseline(900.0, 1.0, 1).against(&baseline(1_000.0, 70.0, 1_000));
        assert!(verdict.problems.is_empty());
        let note = "`call` takes 900 instructions, -10.0 % against 1000; keep it so with `TOOLMAN_BLESS=1`\n";
        assert_eq!(verdict.notes, note);
    }

    #[test]
    fn baseline_comes_back_from_its_file_without_what_is_only_shown() {
        let text = baseline(1_000.0, 70.0, 5).text().unwrap();
        let read = Baseline::parse(&text).unwrap();
        assert_eq!(read.idle_kib, 5);
        assert!(read.routes[&Route::Call].heaviest.is_empty());
        assert_eq!(read.text().unwrap(), text);
    }

    #[test]
    fn processors_are_read_from_ranges() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert!(numbers("").is_empty());
    }
}
