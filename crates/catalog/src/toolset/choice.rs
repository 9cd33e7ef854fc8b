//! Which tools are meant by what somebody has written: names, ref ids, patterns and `server:*`.

use mcp::items::Kind;
use mcp::text::shorten;

use crate::error::quoted;
use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::snapshot::{Catalog, Item, Lookup};
use crate::suggest;

/// The tools that are meant, of those that count, each once and in the order in which they were asked for;
/// the error tells everything that means none.
pub fn choose<'a, S: AsRef<str>>(
    asked: &[S],
    catalog: &'a Catalog,
    counts: impl Fn(&Item) -> bool,
) -> Result<Vec<&'a Item>, String> {
    let tools: Vec<&Item> = catalog.items(Kind::Tool).iter().filter(|tool| counts(tool)).collect();
    let (mut chosen, mut wrong): (Vec<&Item>, Vec<String>) = Default::default();
    for asked in asked.iter().map(AsRef::as_ref) {
        match meant(asked, catalog, &tools) {
            Ok(found) => {
                for tool in found {
                    if !chosen.iter().any(|known| known.place == tool.place) {
                        chosen.push(tool);
                    }
                }
            }
            Err(reason) => wrong.push(reason),
        }
    }
    if wrong.is_empty() { Ok(chosen) } else { Err(wrong.join("; ")) }
}

/// Adds the tools that chosen ones can't do without, and those of these; what was added or is not there is told, the
/// latter without its name where that may be the name of something hidden.
/// HT-45
pub fn add_required<'a>(
    chosen: &mut Vec<&'a Item>,
    catalog: &'a Catalog,
    counts: impl Fn(&Item) -> bool,
    hides_names: bool,
) -> Vec<String> {
    let tools: Vec<&Item> = catalog.items(Kind::Tool).iter().filter(|tool| counts(tool)).collect();
    let mut told = Vec::new();
    let mut next = 0;
    while let Some(tool) = chosen.get(next).copied() {
        next += 1;
        let subject = Subject::of(tool);
        let is_it = |name: &str| subject.names().iter().any(|known| known == name);
        let needs = catalog.requires().iter().filter(|(name, _)| is_it(name));
        for need in needs.flat_map(|(_, needs)| needs) {
            let Ok(found) = meant(need, catalog, &tools) else {
                let need = if hides_names { "a tool" } else { &format!("`{need}`") };
                told.push(format!("`{}` needs {need}, which is not there", tool.name));
                continue;
            };
            for needed in found {
                if !chosen.iter().any(|known| known.place == needed.place) {
                    chosen.push(needed);
                    let (needed, tool) = (&needed.name, &tool.name);
                    told.push(format!("`{needed}` was added, as `{tool}` needs it"));
                }
            }
        }
    }
    told
}

fn meant<'a>(
    asked: &str,
    catalog: &'a Catalog,
    tools: &[&'a Item],
) -> Result<Vec<&'a Item>, String> {
    let counts = |item: &Item| tools.iter().any(|tool| tool.place == item.place);
    let named: Vec<&Item> = match catalog.look_up(Kind::Tool, asked) {
        Lookup::Found(tool) => Some(tool).into_iter().filter(|tool| counts(tool)).collect(),
        Lookup::Ambiguous(many) => many.into_iter().filter(|tool| counts(tool)).collect(),
        Lookup::Unknown => Vec::new(),
    };
    match named.as_slice() {
        [] => {}
        [_] => return Ok(named),
        many => {
            let names: Vec<_> = many.iter().map(|tool| &tool.name).collect();
            let asked = shorten(asked);
            return Err(format!(
                "`{asked}` could mean more than one tool; use one of {}",
                quoted(&names)
            ));
        }
    }
    let fits: Box<dyn Fn(&&Item) -> bool> = if asked.starts_with("sha256:") {
        Box::new(|tool| tool.ref_id().as_str() == asked)
    } else {
        let patterns =
            Patterns::parse(&[asked]).map_err(|errors| match errors.into_iter().next() {
                Some(error) => error.to_string(),
                None => format!("`{}` can't be read", shorten(asked)),
            })?;
        Box::new(move |tool| patterns.matches(&tool.origin.upstream, Subject::of(tool).names()))
    };
    let found: Vec<&Item> = tools.iter().copied().filter(|tool| fits(tool)).collect();
    if found.is_empty() {
        let hint = suggest::hint(&suggest::similar(asked, tools.iter().copied()));
        let hint = hint.unwrap_or_else(|| "list the tools to see what there is".to_owned());
        return Err(format!("no tool is named `{}`; {hint}", shorten(asked)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::choose;
    use crate::testing::catalog;

    #[track_caller]
    fn check(asked: &[&str], expected: Result<&str, &str>) {
        let catalog = catalog("git: log diff status\nhub/gh: log issue", &[]);
        let counts = |tool: &crate::snapshot::Item| &*tool.origin.name != "status";
        let chosen = choose(asked, &catalog, counts).map(|tools| {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            names.join(" ")
        });
        assert_eq!(chosen.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn any_spelling_means_its_tool_and_each_counts_once() {
        check(&["git.log", "git:diff", "git__log", "issue"], Ok("git_log git_diff gh_issue"));
        check(&["hub.issue", "gh_issue"], Ok("gh_issue"));
    }

    #[test]
    fn patterns_and_servers_mean_all_that_counts() {
        check(&["git:*"], Ok("git_diff git_log"));
        check(&["*log"], Ok("gh_log git_log"));
        check(&["gh_*", "git_*"], Ok("gh_issue gh_log git_diff git_log"));
    }

    #[test]
    fn ref_id_means_its_tool() {
        let catalog = catalog("git: log diff", &[]);
        let ref_id = catalog.items(mcp::items::Kind::Tool)[1].ref_id().to_string();
        let chosen = choose(&[ref_id], &catalog, |_| true).unwrap();
        assert_eq!(chosen[0].name.as_str(), "git_log");
    }

    #[test]
    fn all_that_means_nothing_is_told_at_once() {
        check(
            &["git.lgo", "log", "git.status", "nothing*", "["],
            Err("no tool is named `git.lgo`; did you mean `git_log`?; \
                `log` could mean more than one tool; use one of `gh_log`, `git_log`; \
                no tool is named `git.status`; list the tools to see what there is; \
                no tool is named `nothing*`; list the tools to see what there is; \
                pattern `[` can't be read: unclosed character class; missing ']'"),
        );
    }
}
