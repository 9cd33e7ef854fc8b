//! The reply of a control tool that has switched items on: it holds their definitions, for clients that do not list
//! again in time, in each part of a result that a client may hand to its model.

use mcp::items::Kind;
use mcp::json;
use mcp::verdict;

use crate::limits::{ACTIVATED_LINES_TOKENS_MAX, ACTIVATED_TOKENS_MAX, SINGLE_TOKENS_MAX};
use crate::profile::Reads;
use crate::snapshot::Item;
use crate::tokens::estimate;
use crate::view::View;

/// What is said of items that were switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// The whole definitions by kind, as an object.
    text: String,
    /// What a model needs of them, as members of another object.
    members: String,
}

impl Definitions {
    /// Of these items, as far as there is room; `None` if there are none.
    pub fn of<'a>(view: &View, items: impl IntoIterator<Item = &'a Item>) -> Option<Definitions> {
        let items: Vec<&Item> = items.into_iter().collect();
        let mut room = match items.len() {
            0 => return None,
            1 => SINGLE_TOKENS_MAX,
            _ => ACTIVATED_TOKENS_MAX,
        };
        let mut told: [Vec<String>; Kind::ALL.len()] = Default::default();
        let (mut active, mut rest) = (Vec::new(), Vec::new());
        for item in items {
            let definition = json::compact(&view.definition_of(item));
            match room.checked_sub(estimate(definition.as_bytes())) {
                Some(left) => {
                    room = left;
                    active.push(needed(item.kind, &definition));
                    told[item.kind as usize].push(definition);
                }
                None => rest.push(item),
            }
        }
        let lines = lines(&rest);
        let lists = Kind::ALL.into_iter().zip(&told).filter(|(_, told)| !told.is_empty());
        let mut text: Vec<_> = lists.map(|(kind, told)| list(kind.list_member(), told)).collect();
        active.extend(lines.iter().cloned());
        let mut members = vec![list("activated", &active)];
        if let Some(note) = note(rest.len(), lines.len()) {
            let note = format!(r#""note":{}"#, json::quote(&note));
            text.extend([list("more", &lines), note.clone()]);
            members.push(note);
        }
        Some(Definitions { text: format!("{{{}}}", text.join(",")), members: members.join(",") })
    }

    /// Of what is visible now and was not before; both views are of the same snapshot.
    pub fn of_new(old: &View, new: &View) -> Option<Definitions> {
        let items = Kind::ALL.into_iter().flat_map(|kind| new.items(kind));
        Definitions::of(new, items.filter(|item| new.is_visible(item) && !old.is_visible(item)))
    }
}

/// The result: a short confirmation, which is an object, and the definitions where the client's model gets them.
pub fn result(confirmation: &str, definitions: Option<&Definitions>, reads: Reads) -> String {
    let Some(Definitions { text, members }) = definitions else {
        return verdict::result_of(confirmation, None, confirmation);
    };
    let whole = match confirmation.strip_suffix('}') {
        Some(open) => format!("{open},{members}}}"),
        None => confirmation.to_owned(),
    };
    match reads {
        Reads::Everything | Reads::Structured => {
            verdict::result_of(confirmation, Some(text), &whole)
        }
        Reads::FirstBlock => verdict::result_of(&whole, None, &whole),
        // It would get them twice.
        Reads::Both => verdict::result_of(confirmation, Some(text), confirmation),
    }
}

/// What a model needs to use an item.
fn needed(kind: Kind, definition: &str) -> String {
    let wanted: &[&str] = match kind {
        Kind::Tool => &["name", "description", "inputSchema"],
        Kind::Resource => &["uri", "name", "description", "mimeType"],
        Kind::Template => &["uriTemplate", "name", "description", "mimeType"],
        Kind::Prompt => &["name", "description", "arguments"],
    };
    let members = json::entries(definition).unwrap_or_default();
    let found = wanted.iter().filter_map(|wanted| {
        let (_, value) = members.iter().find(|(name, _)| name == wanted)?;
        Some(format!("\"{wanted}\":{value}"))
    });
    format!("{{{}}}", found.collect::<Vec<_>>().join(","))
}

/// A line for each item whose definition has no room, as far as there is room for lines.
fn lines(items: &[&Item]) -> Vec<String> {
    let mut room = ACTIVATED_LINES_TOKENS_MAX;
    let line = |item: &&Item| {
        let (name, summary) = (json::quote(item.name.as_str()), json::quote(&item.summary));
        let line = format!(r#"{{"name":{name},"description":{summary}}}"#);
        room = room.checked_sub(estimate(line.as_bytes()))?;
        Some(line)
    };
    items.iter().map_while(line).collect()
}

fn note(items: usize, lines: usize) -> Option<String> {
    let named = match items.checked_sub(lines)? {
        0 if items == 0 => return None,
        0 => "named only".to_owned(),
        unnamed => format!("named only, {unnamed} of them not even that"),
    };
    Some(format!(
        "all of them are on, but the definitions of {items} have no room here; they are {named}; \
         switch on fewer at once to see their definitions"
    ))
}

fn list(name: &str, elements: &[String]) -> String {
    format!("\"{name}\":[{}]", elements.join(","))
}

#[cfg(test)]
mod tests;
