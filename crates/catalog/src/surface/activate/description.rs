//! The catalog in the description of `toolman_activate`, within what the client passes on to its model.
//!
//! All of it where it fits. Beyond that: what is on, one line a server, and how to ask for the rest.

use std::fmt::Write as _;

use mcp::items::Kind;
use mcp::names::UpstreamName;
use mcp::text::{first_words, tame};

use super::{HEAD, SHORT_HEAD, hint_of_stubs};
use crate::snapshot::Item;
use crate::view::View;

/// Lengths of what is said of a server, tried from the longest on.
const PURPOSE_CHARS: [usize; 4] = [100, 60, 30, 0];
/// Tools named as examples of what a server is for, where it says nothing of itself.
const EXAMPLES_MAX: usize = 3;

/// The description of the tool.
pub fn describe(view: &View) -> String {
    let chars_max = view.description_max();
    let whole = whole(view, chars_max);
    whole.unwrap_or_else(|| compact(view, chars_max))
}

/// A line of the catalog: with a `*` what is on.
pub fn line(view: &View, item: &Item) -> String {
    let mark = if view.is_on(item) { "* " } else { "  " };
    let colon = if item.summary.is_empty() { "" } else { ": " };
    format!("{mark}{}{colon}{}\n", item.name, item.summary)
}

/// One line for each server of the view, with no more than so many characters on what it is for.
pub fn servers(view: &View, purpose_chars: usize) -> Vec<String> {
    let mut servers: Vec<Server<'_>> = Vec::new();
    for item in switchable(view) {
        let name = &item.origin.upstream;
        // The items of one server stand together, mostly.
        let at = servers.iter().rposition(|server| server.name == name).unwrap_or_else(|| {
            servers.push(Server { name, tools: 0, resources: 0, examples: Vec::new() });
            servers.len() - 1
        });
        servers[at].count(item);
    }
    servers.iter().map(|server| server.line(view, purpose_chars)).collect()
}

/// The items that can be switched on and off.
pub fn switchable(view: &View) -> impl Iterator<Item = &Item> {
    [Kind::Tool, Kind::Resource, Kind::Template].into_iter().flat_map(|kind| view.items(kind))
}

/// All of the catalog, if it fits.
fn whole(view: &View, chars_max: usize) -> Option<String> {
    let mut description = format!("{HEAD}{}\n\nTOOLS:\n", hint_of_stubs(view));
    for (kinds, behind) in
        [(&[Kind::Tool][..], "\nRESOURCES:\n"), (&[Kind::Resource, Kind::Template][..], "")]
    {
        let before = description.len();
        for item in kinds.iter().flat_map(|kind| view.items(*kind)) {
            description.push_str(&line(view, item));
            // No character has more than four bytes.
            if description.len() > chars_max * 4 {
                return None;
            }
        }
        if description.len() == before {
            description.push_str("  (none)\n");
        }
        description.push_str(behind);
    }
    description.truncate(description.trim_end().len());
    (description.chars().count() <= chars_max).then_some(description)
}

/// What is on, and one line a server, cut to what fits.
fn compact(view: &View, chars_max: usize) -> String {
    let on: Vec<&Item> = switchable(view).filter(|item| view.is_on(item)).collect();
    let mut full: Vec<String> = on.iter().map(|item| line(view, item)).collect();
    let mut bare: Vec<String> = on.iter().map(|item| format!("* {}\n", item.name)).collect();
    if on.is_empty() {
        full.push("  (nothing)\n".to_owned());
        bare.clone_from(&full);
    }
    let head = format!("{SHORT_HEAD}{}\n\nON:\n", hint_of_stubs(view));
    let room = chars_max.saturating_sub(head.chars().count() + "\nSERVERS:\n".len());
    let length = |lines: &[String]| lines.iter().map(|line| line.chars().count()).sum::<usize>();
    for purpose_chars in PURPOSE_CHARS {
        let servers = servers(view, purpose_chars);
        for on in [&full, &bare] {
            if length(on) + length(&servers) <= room {
                return assembled(&head, on, &servers);
            }
        }
    }
    let servers = servers(view, 0);
    let for_servers = room - length(&bare).min(room / 2);
    let servers = fitting(&servers, for_servers, "servers; pass `find: \"\"` for all");
    let bare = fitting(&bare, room - length(&servers).min(room), "are on");
    assembled(&head, &bare, &servers)
}

fn assembled(head: &str, on: &[String], servers: &[String]) -> String {
    format!("{head}{}\nSERVERS:\n{}", on.concat(), servers.concat().trim_end())
}

/// As many lines as there is room for, and how many there are besides.
fn fitting(lines: &[String], room: usize, what: &str) -> Vec<String> {
    let rest = |count: usize| format!("  … {count} more {what}\n");
    let spare = rest(lines.len()).chars().count();
    let mut used = 0;
    let fits = |line: &&String| {
        used += line.chars().count();
        used + spare <= room
    };
    let mut kept: Vec<String> = lines.iter().take_while(fits).cloned().collect();
    if kept.len() < lines.len() {
        kept.push(rest(lines.len() - kept.len()));
    }
    kept
}

struct Server<'a> {
    name: &'a UpstreamName,
    tools: usize,
    resources: usize,
    examples: Vec<&'a str>,
}

impl<'a> Server<'a> {
    fn count(&mut self, item: &'a Item) {
        if item.kind != Kind::Tool {
            self.resources += 1;
            return;
        }
        self.tools += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(&item.origin.name);
        }
    }

    fn line(&self, view: &View, purpose_chars: usize) -> String {
        let Server { name, tools, resources, .. } = self;
        let purpose = match view.catalog().purpose(name) {
            Some(said) => said.to_owned(),
            None => tame(&self.examples.join(", ")),
        };
        let purpose = first_words(&purpose, purpose_chars);
        let dash = if purpose.is_empty() { "" } else { " – " };
        let mut line = format!("{name}:{dash}{purpose} (");
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        _ = write!(line, "{tools} tool{}", plural(*tools));
        if *resources > 0 {
            _ = write!(line, ", {resources} resource{}", plural(*resources));
        }
        line.push_str(")\n");
        line
    }
}
