//! `find`: catalog lines for words, best first and in pages.
//!
//! Only what the caller may see is searched. Which lines are best is for [`ranked`] alone to say.

use mcp::json;
use mcp::names::NamespacedName;
use mcp::text::shorten;

use super::description::{line, servers, switchable};
use crate::snapshot::Item;
use crate::suggest::{hint, similar};
use crate::tokens;
use crate::view::View;

/// Characters of a request.
pub const FIND_CHARS_MAX: usize = 500;
/// Words of it that count.
const WORDS_MAX: usize = 20;
/// About how many tokens a page costs.
const PAGE_TOKENS_MAX: usize = 1_000;
/// Characters on what a server is for, where all are listed.
const PURPOSE_CHARS: usize = 100;

/// What is looked for.
#[derive(Debug, PartialEq, Eq)]
struct Query {
    /// The one server that is looked at.
    server: Option<String>,
    words: Vec<String>,
    /// From 1.
    page: usize,
    /// The request without its page.
    text: String,
}

/// The lines that a request finds, or those of the servers if it says nothing.
pub fn answer(view: &View, asked: &str) -> String {
    let query = Query::parse(view, asked);
    if query.words.is_empty() && query.server.is_none() {
        return page(&query, &servers(view, PURPOSE_CHARS), "servers");
    }
    let found = ranked(view, &query);
    if found.is_empty() {
        let near: Vec<NamespacedName> = similar(&query.text, switchable(view));
        let near = hint(&near).unwrap_or_else(|| "try other words, or `find: \"\"`".to_owned());
        return format!("nothing is found for `{}`; {near}", shorten(&query.text));
    }
    let lines: Vec<_> = found.into_iter().map(|item| line(view, item)).collect();
    page(&query, &lines, "found")
}

/// The items that fit best, best first; equals are in the order of the lists.
fn ranked<'a>(view: &'a View, query: &Query) -> Vec<&'a Item> {
    let mut scored: Vec<_> = switchable(view)
        .filter(|item| query.server.as_deref().is_none_or(|server| is_of(item, server)))
        .map(|item| (score(item, &query.words), item))
        .filter(|(score, _)| *score > 0 || query.words.is_empty())
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, item)| item).collect()
}

fn is_of(item: &Item, server: &str) -> bool {
    item.origin.upstream.as_str() == server || item.origin.namespace.as_str() == server
}

/// How well an item fits: each word counts once, in a name more than in a description.
fn score(item: &Item, words: &[String]) -> usize {
    let name = format!("{} {}", item.canonical, item.origin.upstream).to_lowercase();
    let said = json::members(item.source().as_bytes(), ["description"]).ok();
    let said = said.and_then(|[text]| text.and_then(json::string)).unwrap_or_default();
    let said = said.to_lowercase();
    let has = |text: &str, word: &str| {
        let mut parts = text.split(|c: char| !c.is_alphanumeric());
        parts.any(|part| part == word)
    };
    let worth = |word: &String| match word.strip_suffix('s').filter(|stem| stem.len() > 2) {
        _ if has(&name, word) => 8,
        Some(stem) if has(&name, stem) => 7,
        stem if name.contains(stem.unwrap_or(word)) => 5,
        _ if has(&said, word) => 3,
        stem if said.contains(stem.unwrap_or(word)) => 1,
        _ => 0,
    };
    let found: Vec<usize> = words.iter().map(worth).filter(|worth| *worth > 0).collect();
    // Two words that are there say more than one that is there twice as well.
    found.iter().sum::<usize>() + found.len() * 4
}

/// A page of lines, with how to get the next one.
fn page(query: &Query, lines: &[String], what: &str) -> String {
    let mut pages: Vec<&[String]> = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let mut spent = 0;
        let fits = |line: &&String| {
            spent += tokens::estimate(line.as_bytes());
            spent <= PAGE_TOKENS_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        pages.push(&rest[..count]);
        rest = &rest[count..];
    }
    let Some(shown) = pages.get(query.page - 1) else {
        let (asked, last) = (query.page, pages.len());
        return format!("there is no page {asked}; the last one is {last}");
    };
    let before: usize = pages[..query.page - 1].iter().map(|page| page.len()).sum();
    let (first, last, all) = (before + 1, before + shown.len(), lines.len());
    let mut text = format!("{what}: {first} to {last} of {all}\n{}", shown.concat());
    if last < all {
        let next = format!("{} page:{}", query.text, query.page + 1);
        text.push_str(&format!("for more pass `find: \"{}\"`", next.trim_start()));
    }
    text.truncate(text.trim_end().len());
    text
}

impl Query {
    fn parse(view: &View, asked: &str) -> Query {
        let mut query = Query { server: None, words: Vec::new(), page: 1, text: String::new() };
        let mut said = Vec::new();
        for word in asked.split_whitespace() {
            if let Some(page) = word.strip_prefix("page:").and_then(|page| page.parse().ok()) {
                query.page = usize::max(page, 1);
                continue;
            }
            said.push(word);
            match word.split_once(':') {
                Some((server, rest)) if switchable(view).any(|item| is_of(item, server)) => {
                    query.server = Some(server.to_owned());
                    query.add_words(rest);
                }
                _ => query.add_words(word),
            }
        }
        query.text = said.join(" ");
        query
    }

    fn add_words(&mut self, text: &str) {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let room = WORDS_MAX.saturating_sub(self.words.len());
        self.words.extend(words.map(str::to_lowercase).take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::answer;
    use crate::testing::view;

    const UPSTREAMS: &str =
        "git: log status commit repo://head\nhub: list_issues create_issue issue_log";

    #[track_caller]
    fn check(asked: &str, expected: &str) {
        assert_eq!(answer(&view(UPSTREAMS, &["git_log"]), asked), expected);
    }

    #[test]
    fn words_find_lines_best_first() {
        check(
            "issue list",
            "found: 1 to 3 of 3\n  hub_list_issues: about list_issues\n  \
             hub_create_issue: about create_issue\n  hub_issue_log: about issue_log",
        );
        check("LOG", "found: 1 to 2 of 2\n* git_log: about log\n  hub_issue_log: about issue_log");
    }

    #[test]
    fn server_finds_all_that_it_has() {
        check(
            "git:",
            "found: 1 to 4 of 4\n  git_commit: about commit\n* git_log: about log\n  \
             git_status: about status\n  git_repo://head: about repo://head",
        );
        check("hub: log", "found: 1 to 1 of 1\n  hub_issue_log: about issue_log");
        check("hub:*", &answer(&view(UPSTREAMS, &[]), "hub:"));
    }

    #[test]
    fn nothing_lists_the_servers() {
        check(
            "",
            "servers: 1 to 2 of 2\ngit: – commit, log, status (3 tools, 1 resource)\n\
             hub: – create_issue, issue_log, list_issues (3 tools)",
        );
    }

    #[test]
    fn what_is_not_there_is_told_with_near_names() {
        check("comit", "nothing is found for `comit`; did you mean `git_commit`?");
        check("zzz", "nothing is found for `zzz`; try other words, or `find: \"\"`");
    }

    #[test]
    fn long_answers_come_in_pages() {
        let many: Vec<_> = (0..300).map(|at| format!("tool_{at}")).collect();
        let view = view(&format!("git: {}", many.join(" ")), &[]);
        let first = answer(&view, "git: tool");
        assert!(first.ends_with("for more pass `find: \"git: tool page:2\"`"), "{first}");
        let mut seen = 0;
        for page in 1.. {
            let text = answer(&view, &format!("git: tool page:{page}"));
            if text.starts_with("there is no page") {
                assert_eq!(text, format!("there is no page {page}; the last one is {}", page - 1));
                break;
            }
            assert!(crate::tokens::estimate(text.as_bytes()) < 1_100);
            seen += text.lines().filter(|line| line.starts_with("  git_tool_")).count();
        }
        assert_eq!(seen, 300);
    }
}
