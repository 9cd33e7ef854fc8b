//! Glob patterns over names: what starts switched on, what a policy is about.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use mcp::names::UpstreamName;

/// A list of patterns, matched as one.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    globs: GlobSet,
    /// Entries as written: `a://{id}` names a template, although a glob reads it as a choice.
    exact: HashSet<Box<str>>,
    /// Servers that an entry `server:*` switches on whole.
    servers: HashSet<Box<str>>,
}

/// A pattern that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{pattern}` can't be read: {reason}")]
pub struct PatternError {
    /// The place in the list, from 0.
    pub index: usize,
    pub pattern: String,
    pub reason: String,
}

impl Patterns {
    /// Reads a list of patterns; the error holds every bad one.
    pub fn parse<S: AsRef<str>>(patterns: &[S]) -> Result<Patterns, Vec<PatternError>> {
        let mut globs = GlobSetBuilder::new();
        let mut errors = Vec::new();
        for (index, pattern) in patterns.iter().map(AsRef::as_ref).enumerate() {
            match GlobBuilder::new(pattern).literal_separator(false).build() {
                Ok(glob) => {
                    globs.add(glob);
                }
                Err(error) => errors.push(PatternError {
                    index,
                    pattern: pattern.to_owned(),
                    reason: error.kind().to_string(),
                }),
            }
        }
        let too_large = |error: globset::Error| PatternError {
            index: 0,
            pattern: patterns.first().map(|p| p.as_ref().to_owned()).unwrap_or_default(),
            reason: error.kind().to_string(),
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        let text = || patterns.iter().map(AsRef::as_ref);
        Ok(Patterns {
            globs: globs.build().map_err(|error| vec![too_large(error)])?,
            exact: text().map(Into::into).collect(),
            servers: text().filter_map(|p| p.strip_suffix(":*")).map(Into::into).collect(),
        })
    }

    /// Whether nothing matches.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty()
    }

    /// Whether an entry can be about something of a server: it names the server, or none.
    pub fn may_be_of(&self, server: &str) -> bool {
        self.exact.iter().any(|entry| match entry.split_once([':', '.']) {
            Some((owner, _)) => owner == server || owner.contains(['*', '?', '[', '{']),
            None => true,
        })
    }

    /// What matches either.
    pub fn or(&self, other: &Patterns) -> Patterns {
        let all: Vec<_> = self.exact.union(&other.exact).collect();
        // Each was read before; all of them may be too large.
        Patterns::parse(&all).unwrap_or_else(|_| self.clone())
    }

    /// Whether an item of `upstream`, known under any of `names`, matches.
    pub fn matches<S: AsRef<str>>(&self, upstream: &UpstreamName, names: &[S]) -> bool {
        self.servers.contains(upstream.as_str())
            || names.iter().any(|name| self.matches_name(name.as_ref()))
    }

    /// Whether a name matches, whatever it is the name of.
    pub fn matches_name(&self, name: &str) -> bool {
        self.holds(name) || self.globs.is_match(name)
    }

    /// Whether something of a server that goes by `own` names may match, whatever it is called. A pattern that
    /// names none of the `others` may be about any server.
    pub fn may_concern(&self, own: &[&str], others: &[&str]) -> bool {
        let names = |pattern: &str, servers: &[&str]| {
            servers.iter().any(|server| {
                let rest = pattern.strip_prefix(server).filter(|_| !server.is_empty());
                rest.is_some_and(|rest| rest.starts_with([':', '.', '_', '+']))
            })
        };
        self.exact.iter().any(|pattern| names(pattern, own) || !names(pattern, others))
    }

    /// Whether a name is there as it is written.
    pub fn holds(&self, name: &str) -> bool {
        self.exact.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Patterns;

    fn matches(pattern: &str, name: &str) -> bool {
        Patterns::parse(&[pattern]).unwrap().matches(&"srv".parse().unwrap(), &[name])
    }

    #[test]
    fn globs_match_the_whole_name() {
        // TA-08
        assert!(matches("pjpd*", "pjpd_list_projects"));
        assert!(matches("git_status", "git_status"));
        assert!(!matches("git_status", "git_status_all"));
        assert!(matches("git_{log,diff}", "git_diff"));
        assert!(matches("git_?og", "git_log"));
    }

    #[test]
    fn star_crosses_slashes() {
        // TA-09
        assert!(matches("pjpd_*", "pjpd_projects://list/all"));
        assert!(matches("pjpd_projects://{id}", "pjpd_projects://{id}"));
    }

    #[test]
    fn server_star_means_the_whole_server() {
        // TA-72
        assert!(matches("srv:*", "anything"));
        assert!(!matches("other:*", "anything"));
    }

    #[test]
    fn pattern_may_concern_the_server_that_it_names_or_any() {
        let concerns = |pattern: &str| {
            Patterns::parse(&[pattern]).unwrap().may_concern(&["git", "g"], &["hub", ""])
        };
        assert!(concerns("git:*") && concerns("g_log") && concerns("git.log"));
        assert!(concerns("*") && concerns("log") && concerns("hu*"));
        assert!(!concerns("hub:*") && !concerns("hub_log") && !concerns("hub+r://a"));
    }

    #[test]
    fn every_bad_pattern_is_reported_with_its_place() {
        let errors = Patterns::parse(&["ok*", "[", "{a"]).unwrap_err();
        assert_eq!(errors.iter().map(|e| e.index).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            errors[0].to_string(),
            "pattern `[` can't be read: unclosed character class; missing ']'"
        );
    }
}
