//! What fits one client program: its profile, in words.

use std::fmt::Write as _;

use catalog::profile::{Belongs, Lists, Profile, Reads};
use gateway::Gateway;
use mcp::text::tame;
use serde_json::{Value, json};

pub struct Fit {
    client: String,
    profile: Profile,
    /// Whether tools that are off are listed in one line each.
    has_stubs: bool,
}

impl Fit {
    pub fn of(gateway: &Gateway, client: &str) -> Fit {
        let place = gateway.place_for_program(&gateway.place(), client);
        let view = gateway.first_view(&place);
        let profile = Profile::clone(&view.scope().profile);
        Fit { client: client.to_owned(), profile, has_stubs: view.has_stubs() }
    }

    pub fn text(&self) -> String {
        let (client, profile) = (tame(&self.client), &self.profile);
        let mut text = format!("client `{client}`: profile `{}`\n", profile.name);
        let wait = match profile.reply_wait {
            wait if wait.is_zero() => "do not wait for its listing".to_owned(),
            wait => format!("wait for its listing, at most {wait:?}"),
        };
        let stubs = if self.has_stubs { "listed in one line each" } else { "hidden" };
        let descriptions = match profile.description_max {
            Some(most) => format!("cut at {most} characters"),
            None => "whole".to_owned(),
        };
        let lines = [
            ("lists tools", lists(profile.lists).1.to_owned()),
            ("replies", format!("of control tools {wait}")),
            ("inactive tools", stubs.to_owned()),
            ("its model reads", reads(profile.reads).1.to_owned()),
            ("names", format!("up to {} characters", profile.naming.length_max)),
            ("descriptions", descriptions),
            ("selection", format!("of its {}", selection(profile.selection))),
        ];
        for (what, how) in lines {
            _ = writeln!(text, "  {what:15} {how}");
        }
        text
    }

    pub fn json(&self) -> Value {
        let profile = &self.profile;
        json!({
            "client": self.client,
            "profile": profile.name,
            "lists": lists(profile.lists).0,
            "reply_wait_ms": u64::try_from(profile.reply_wait.as_millis()).unwrap_or(u64::MAX),
            "reads": reads(profile.reads).0,
            "stubs": self.has_stubs,
            "name_length_max": profile.naming.length_max,
            "description_max": profile.description_max,
            "selection": selection(profile.selection),
            "patience_ms": u64::try_from(profile.patience.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// As the configuration has it, and in words.
fn lists(lists: Lists) -> (&'static str, &'static str) {
    match lists {
        Lists::Once => ("once", "once"),
        Lists::Late => ("late", "again after `list_changed`, a turn late unless replies wait"),
        Lists::AtOnce => ("at-once", "again after `list_changed`"),
        Lists::Unknown => ("unknown", "not known; it is observed"),
    }
}

fn reads(reads: Reads) -> (&'static str, &'static str) {
    match reads {
        Reads::Everything => ("all", "all texts of a result"),
        Reads::FirstBlock => ("first-block", "the first text of a result"),
        Reads::Structured => ("structured", "`structuredContent` of a result, where there is one"),
        Reads::Both => ("all-and-structured", "all texts of a result, and `structuredContent`"),
    }
}

fn selection(belongs: Belongs) -> &'static str {
    match belongs {
        Belongs::Session => "session",
        Belongs::Principal => "principal",
    }
}
