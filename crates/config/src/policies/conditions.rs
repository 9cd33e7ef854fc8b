//! `conditions` of a policy: what must hold besides its lists.

use std::net::IpAddr;

use catalog::policy::Listed;
use catalog::policy::condition::{Condition, Constraint, DAY_MINUTES, Window};
use ipnet::IpNet;
use mcp::text::shorten;
use toml::de::DeValue;

use crate::fault::Faults;
use crate::reader::Value;
use crate::tools_toml::patterns;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const HOURS: &str = "write it as `08:00-18:00`, in UTC, or as `08:00-18:00+02:00`";

/// Where something is written.
type Located<'l> = &'l dyn Fn(&Value<'_>, &Faults<'_>) -> Box<str>;

pub fn read(value: &Value<'_>, located: Located<'_>, faults: &mut Faults<'_>) -> Vec<Condition> {
    let elements = value.elements("condition", faults).unwrap_or_default();
    elements.iter().filter_map(|element| condition(element, located, faults)).collect()
}

fn condition(
    value: &Value<'_>,
    located: Located<'_>,
    faults: &mut Faults<'_>,
) -> Option<Condition> {
    let mut section = value.section("in a condition", faults)?;
    let tools = section.get("tools").map(|value| patterns(&value, faults));
    if tools.is_none() {
        value.report("has no `tools`; name those that it is about, or `[\"*\"]`", faults);
    }
    let hours = section.get("hours").and_then(|value| {
        let text = value.string(faults)?;
        let hours = parse_hours(text);
        if hours.is_none() {
            value.report(&format!("is `{}`; {HOURS}", shorten(text)), faults);
        }
        hours
    });
    let days = section.get("days").map(|value| days(&value, faults));
    let addresses = section.get("addresses").map(|value| {
        let addresses = networks(&value, faults);
        if matches!(value.node(), DeValue::Array(array) if array.is_empty()) {
            value.report("is empty; leave it out, or name an address", faults);
        }
        addresses
    });
    let arguments = section.get("arguments").and_then(|value| constraint(&value, faults));
    section.close(&[], faults);
    let window = (hours.is_some() || days.is_some()).then(|| {
        let (from, until, ahead) = hours.unwrap_or((0, 0, 0));
        Window { days: days.unwrap_or([true; 7]), from, until, ahead }
    });
    if window.is_none() && addresses.is_none() && arguments.is_none() {
        let fix = "add `hours`, `days`, `addresses` or `arguments`";
        value.report(&format!("asks for nothing; {fix}"), faults);
    }
    Some(Condition {
        tools: Listed { at: located(value, faults), patterns: tools? },
        window,
        addresses: addresses.unwrap_or_default(),
        arguments,
    })
}

/// Start and end in minutes of the day, and by how many the clock is ahead of UTC.
fn parse_hours(text: &str) -> Option<(u32, u32, i32)> {
    let clock = |text: &str| {
        let (hours, minutes) = text.split_once(':')?;
        let (hours, minutes): (u32, u32) = (two_digits(hours)?, two_digits(minutes)?);
        (minutes < 60).then_some(hours * 60 + minutes)
    };
    let (span, ahead) = match text.rfind(['+', '-']) {
        Some(at) if text[at..].starts_with('+') || text.matches('-').count() == 2 => {
            let minutes = i32::try_from(clock(&text[at + 1..])?).ok()?;
            (&text[..at], if text[at..].starts_with('-') { -minutes } else { minutes })
        }
        _ => (text, 0),
    };
    let (from, until) = span.split_once('-')?;
    let (from, until) = (clock(from.trim())?, clock(until.trim())?);
    let is_in_day = from < DAY_MINUTES && until <= DAY_MINUTES && ahead.abs() <= 14 * 60;
    is_in_day.then_some((from, until % DAY_MINUTES, ahead))
}

fn two_digits(text: &str) -> Option<u32> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn days(value: &Value<'_>, faults: &mut Faults<'_>) -> [bool; 7] {
    let mut days = [false; 7];
    for (element, text) in value.strings("day", faults) {
        match DAYS.iter().position(|day| *day == text.to_lowercase()) {
            Some(day) => days[day] = true,
            None => {
                let problem =
                    format!("is `{}`; it must be one of {}", shorten(text), DAYS.join(", "));
                element.report(&problem, faults);
            }
        }
    }
    days
}

/// Addresses and networks.
pub(crate) fn networks(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<IpNet> {
    let mut networks = Vec::new();
    for (element, text) in value.strings("address", faults) {
        let network =
            text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()));
        match network {
            Some(network) => networks.push(network),
            None => {
                let fix = "write an address or a network, such as `10.0.0.0/8`";
                element.report(&format!("is `{}`; {fix}", shorten(text)), faults);
            }
        }
    }
    networks
}

fn constraint(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Constraint> {
    let schema = match value.node() {
        DeValue::Table(_) => value.json(),
        _ => {
            value.report_type("a JSON Schema, as a table", faults);
            return None;
        }
    };
    match Constraint::new(&schema) {
        Ok(constraint) => Some(constraint),
        Err(problem) => {
            value.report(&format!("is no JSON Schema: {}", shorten(&problem)), faults);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_hours;

    #[test]
    fn hours_are_read_with_their_clock() {
        assert_eq!(parse_hours("08:00-18:30"), Some((480, 1110, 0)));
        assert_eq!(parse_hours("22:00-06:00+02:00"), Some((1320, 360, 120)));
        assert_eq!(parse_hours("22:00-06:00-05:30"), Some((1320, 360, -330)));
        assert_eq!(parse_hours("00:00-24:00"), Some((0, 0, 0)));
        for wrong in ["", "8-18", "08:00", "08:00-25:00", "08:60-09:00", "08:00-09:00+15:00", "-"] {
            assert_eq!(parse_hours(wrong), None, "{wrong}");
        }
    }
}
