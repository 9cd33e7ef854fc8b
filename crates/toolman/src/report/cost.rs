//! What a client pays in tokens: for every tool of every server, and for what it is shown at the start.

use catalog::tokens;
use gateway::Gateway;
use gateway::client::Owner;
use gateway::place::Place;
use mcp::items::Kind;
use mcp::json;
use serde_json::{Value, json};

/// Estimates, in tokens.
pub struct Cost {
    /// How many tools all servers have, and what their definitions cost.
    all: Share,
    /// What is listed for a client that has just come.
    shown: Share,
    surface: &'static str,
}

#[derive(Clone, Copy, Default)]
struct Share {
    tools: usize,
    tokens: usize,
}

impl Cost {
    /// For a client that comes to the usual place, as an agent and a program if these are named; `None` where it would see nothing.
    pub fn of(gateway: &Gateway, agent: Option<&str>, client: Option<&str>) -> Option<Cost> {
        let caller = gateway::auth::local(agent);
        let place = gateway.place();
        let places: Vec<Place> = match gateway.stand(&place, &caller, None) {
            Ok(place) => vec![place],
            // Each client names one; the dearest counts.
            Err(_) => {
                let names = gateway.namespaces_in(&place, &caller);
                let stand = |name| gateway.stand(&place, &caller, Some(name)).ok();
                names.iter().filter_map(|name| stand(name.as_str())).collect()
            }
        };
        let shown = places.iter().map(|place| {
            let place = match client {
                Some(program) => &gateway.place_for_program(place, program),
                None => place,
            };
            let client = gateway.connect(caller.clone(), Owner::Process, place);
            let share = Share::of_list(client.view().list(Kind::Tool));
            gateway.disconnect(&client);
            share
        });
        let shown = shown.max_by_key(|share| share.tokens)?;
        let catalog = gateway.catalog();
        let tools = catalog.items(Kind::Tool);
        let tokens = tools.iter().map(|tool| tokens::estimate(&tool.definition)).sum();
        let all = Share { tools: tools.len(), tokens };
        Some(Cost { all, shown, surface: gateway.surface().name() })
    }

    pub fn text(&self) -> String {
        let Cost { all, shown, surface } = self;
        let (before, after) = (grouped(all.tokens), grouped(shown.tokens));
        let width = before.len().max(after.len());
        format!(
            "what the tools cost a client, in tokens:\n  \
             without Toolman  {before:>width$}  {} of every server\n  \
             with Toolman     {after:>width$}  {} at the start (surface `{surface}`){}\n",
            counted(all.tools),
            counted(shown.tools),
            self.verdict()
        )
    }

    fn verdict(&self) -> String {
        match self.saved_percent() {
            Some(saved) if saved >= 0.05 => format!(": {saved:.1} % less"),
            Some(saved) if saved <= -0.05 => format!(": {:.1} % more", -saved),
            _ => String::new(),
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "without_toolman": {"tools": self.all.tools, "tokens_estimated": self.all.tokens},
            "with_toolman": {
                "tools": self.shown.tools,
                "tokens_estimated": self.shown.tokens,
                "surface": self.surface,
            },
            "saved_percent": self.saved_percent().map(|saved| (saved * 10.0).round() / 10.0),
        })
    }

    fn saved_percent(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let share = |tokens: usize| tokens as f64;
        (self.all.tokens > 0)
            .then(|| 100.0 * (1.0 - share(self.shown.tokens) / share(self.all.tokens)))
    }
}

impl Share {
    /// What stands in the result of a list request.
    fn of_list(list: &[u8]) -> Share {
        let [tools] = json::members(list, ["tools"]).unwrap_or_default();
        let tools = json::elements(tools.unwrap_or("[]")).unwrap_or_default();
        let tokens = tools.iter().map(|tool| tokens::estimate(tool.as_bytes())).sum();
        Share { tools: tools.len(), tokens }
    }
}

fn counted(tools: usize) -> String {
    format!("{tools} tool{}", if tools == 1 { "" } else { "s" })
}

/// A number with a comma before each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
