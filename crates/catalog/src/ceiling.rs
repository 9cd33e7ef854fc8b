//! The ceiling: which items of one snapshot a caller may ever see.
//!
//! Computed once for a snapshot, the rules and the rights of a caller; a call only looks at a bit. What
//! is outside of it is unknown, with the same words as what does not exist.

use std::collections::HashSet;

use mcp::items::Kind;
use mcp::names::UpstreamName;

use crate::policy::condition::Moment;
use crate::policy::{Policies, Rights, Subject};
use crate::scope::Scope;
use crate::snapshot::{Catalog, Item};

#[derive(Clone, Debug, Default)]
pub struct Ceiling {
    /// What is within, by kind; everything, if absent.
    held: Option<[Places; Kind::ALL.len()]>,
    /// The items whose uses the rules look at one by one, by kind.
    guarded: [Places; Kind::ALL.len()],
    /// The upstreams that something within is from.
    upstreams: HashSet<UpstreamName>,
    /// Tools that would be within if there were not too many.
    pub cut: usize,
}

/// A set of places on a shelf.
#[derive(Clone, Debug, Default)]
struct Places(Box<[u64]>);

impl Places {
    fn of(count: usize) -> Places {
        Places(vec![0; count.div_ceil(64)].into())
    }

    fn insert(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn contains(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

impl Ceiling {
    /// The ceiling over one catalog; `whole` is the one that is counted in where there can be too many
    /// tools, so that a narrower place shows no more.
    pub fn of(
        catalog: &Catalog,
        whole: &Catalog,
        policies: &Policies,
        scope: &Scope,
        now: Moment,
    ) -> Ceiling {
        let (rights, bounds) = (&scope.rights, scope.bounds());
        let is_open = rights.is_operator() || !policies.are_in_force();
        if is_open && rights.grants().is_none() && bounds.is_none() {
            return Ceiling::default();
        }
        let mut held = Kind::ALL.map(|kind| Places::of(catalog.items(kind).len()));
        let mut ceiling = Ceiling {
            guarded: Kind::ALL.map(|kind| Places::of(catalog.items(kind).len())),
            ..Ceiling::default()
        };
        let counted = counted(whole, policies, rights, now);
        for item in Kind::ALL.into_iter().flat_map(|kind| catalog.items(kind)) {
            if !is_granted(item, rights) {
                continue;
            }
            let subject = Subject::of(item);
            let is_chosen =
                item.kind != Kind::Tool || bounds.is_none_or(|bounds| bounds.holds(&subject));
            if !is_chosen {
                continue;
            }
            let Some(by) = policies.decide(rights, &subject, now, &mut |_| {}) else { continue };
            let is_counted = |tools: &HashSet<Origin<'_>>| tools.contains(&origin(item));
            if item.kind == Kind::Tool && !counted.as_ref().is_none_or(is_counted) {
                ceiling.cut += 1;
                continue;
            }
            if policies.needs_consent(rights, &subject, by) || policies.constrains(rights, &subject)
            {
                ceiling.guarded[item.kind as usize].insert(item.place);
            }
            held[item.kind as usize].insert(item.place);
            if !ceiling.upstreams.contains(&item.origin.upstream) {
                ceiling.upstreams.insert(item.origin.upstream.clone());
            }
        }
        ceiling.held = Some(held);
        ceiling
    }

    pub fn holds(&self, item: &Item) -> bool {
        self.held.as_ref().is_none_or(|held| held[item.kind as usize].contains(item.place))
    }

    /// Whether no rule is in force.
    pub fn is_open(&self) -> bool {
        self.held.is_none()
    }

    /// Whether the rules look at each use of an item.
    pub fn is_guarded(&self, item: &Item) -> bool {
        self.guarded[item.kind as usize].contains(item.place)
    }

    /// Whether anything of an upstream is within; `None` where no rule is in force.
    pub fn reaches(&self, upstream: &UpstreamName) -> Option<bool> {
        self.held.as_ref().map(|_| self.upstreams.contains(upstream))
    }
}

/// Where a tool is from, and its name there.
type Origin<'a> = (&'a UpstreamName, &'a str);

fn origin(item: &Item) -> Origin<'_> {
    (&item.origin.upstream, &item.origin.name)
}

/// The first tools that are allowed, as many as may be; all, if there is no limit.
fn counted<'a>(
    whole: &'a Catalog,
    policies: &Policies,
    rights: &Rights,
    now: Moment,
) -> Option<HashSet<Origin<'a>>> {
    let most = policies.fallback.tools_max?;
    let tools = whole.items(Kind::Tool).iter();
    let allowed = tools
        .filter(|item| policies.decide(rights, &Subject::of(item), now, &mut |_| {}).is_some());
    Some(allowed.map(origin).take(most).collect())
}

/// Whether an item is in a toolset that is granted, where that is what counts.
fn is_granted(item: &Item, rights: &Rights) -> bool {
    rights.grants().is_none_or(|grants| item.toolsets.iter().any(|place| grants.contains(place)))
}

#[cfg(test)]
mod tests {
    use mcp::items::Kind;

    use super::Ceiling;
    use crate::patterns::Patterns;
    use crate::policy::condition::Moment;
    use crate::policy::{Fallback, Listed, Policies};
    use crate::scope::Scope;
    use crate::testing::catalog;

    fn exposing(server: &str, patterns: &[&str], tools_max: Option<usize>) -> Policies {
        let listed = Listed { at: "exposed".into(), patterns: Patterns::parse(patterns).unwrap() };
        Policies {
            exposed: [(server.into(), listed)].into(),
            fallback: Fallback { tools_max, ..Fallback::default() },
            ..Policies::default()
        }
    }

    #[test]
    fn tools_beyond_the_limit_are_cut_in_listing_order() {
        // TF-08
        let catalog = catalog("git: d c b a e !ask r://x", &[]);
        let policies = exposing("git", &["*"], Some(3));
        let ceiling = Ceiling::of(&catalog, &catalog, &policies, &Scope::default(), Moment(0));
        let held = |kind| {
            let items = catalog.items(kind).iter().filter(|item| ceiling.holds(item));
            items.map(|item| item.origin.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(held(Kind::Tool), ["a", "b", "c"]);
        assert_eq!(
            (held(Kind::Prompt), held(Kind::Resource)),
            (vec!["ask".into()], vec!["r://x".into()])
        );
        assert_eq!(ceiling.cut, 2);
    }

    #[test]
    fn upstream_is_reached_if_anything_of_it_is_within() {
        let catalog = catalog("git: log\nhub: log", &[]);
        let policies = exposing("git", &["log"], None);
        let ceiling = Ceiling::of(&catalog, &catalog, &policies, &Scope::default(), Moment(0));
        assert_eq!(ceiling.reaches(&"git".parse().unwrap()), Some(true));
        assert_eq!(ceiling.reaches(&"hub".parse().unwrap()), Some(false));
        assert_eq!(Ceiling::default().reaches(&"hub".parse().unwrap()), None);
    }
}
