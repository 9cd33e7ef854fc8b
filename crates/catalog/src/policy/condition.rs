//! Conditions: what must hold besides the lists, by time, by address, by arguments. TF-54

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{Listed, Subject, Trace};
use crate::schema::{Mismatch, Schema};

pub const DAY_MINUTES: u32 = 24 * 60;
pub const WEEK_MINUTES: u32 = 7 * DAY_MINUTES;

/// What must hold for the tools that it is about; each part that is there.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The tools, and where the condition is written.
    pub tools: Listed,
    pub window: Option<Window>,
    /// Addresses that calls may come from; all, if there are none.
    pub addresses: Vec<IpNet>,
    pub arguments: Option<Constraint>,
}

/// A minute of the week, from Monday midnight in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment(pub u32);

/// A part of certain days, such as 22:00 to 06:00 on weekdays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From Monday: the days on which it begins.
    pub days: [bool; 7],
    /// Minutes of the day; it goes on past midnight where the end is not after the start.
    pub from: u32,
    pub until: u32,
    /// Minutes by which the clock that is meant is ahead of UTC.
    pub ahead: i32,
}

/// What the arguments of a call must be like.
#[derive(Clone, Debug)]
pub struct Constraint(Schema);

impl Condition {
    pub fn is_about(&self, subject: &Subject<'_>) -> bool {
        self.tools.has(subject)
    }

    /// Whether calls may come from an address. On this machine's own pipes there is none.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        self.addresses.is_empty()
            || address.is_some_and(|address| {
                self.addresses.iter().any(|network| network.contains(&address.to_canonical()))
            })
    }

    pub(super) fn holds(&self, is_elsewhere: bool, now: Moment, trace: Trace<'_>) -> bool {
        let at = &self.tools.at;
        if is_elsewhere {
            trace(format_args!("`{at}` wants another address than the caller's: denied"));
            return false;
        }
        if self.window.is_some_and(|window| !window.is_open(now)) {
            trace(format_args!("`{at}` is not met at this time: denied"));
            return false;
        }
        if self.window.is_some() || !self.addresses.is_empty() {
            trace(format_args!("`{at}` is met"));
        }
        if self.arguments.is_some() {
            trace(format_args!("`{at}` looks at the arguments of each call"));
        }
        true
    }
}

impl Window {
    pub fn is_open(&self, now: Moment) -> bool {
        let minute = self.local(now);
        let since_start = (minute % DAY_MINUTES + DAY_MINUTES - self.from) % DAY_MINUTES;
        let begun = (minute + WEEK_MINUTES - since_start) % WEEK_MINUTES / DAY_MINUTES;
        self.days[begun as usize % 7] && since_start < self.length()
    }

    /// How many minutes until it opens or closes, at least one.
    pub fn next_edge(&self, now: Moment) -> u32 {
        let minute = self.local(now) % DAY_MINUTES;
        let until = |edge: u32| match (edge + DAY_MINUTES - minute) % DAY_MINUTES {
            0 => DAY_MINUTES,
            minutes => minutes,
        };
        until(self.from).min(until((self.from + self.length()) % DAY_MINUTES))
    }

    fn length(&self) -> u32 {
        match (self.until + DAY_MINUTES - self.from) % DAY_MINUTES {
            0 => DAY_MINUTES,
            minutes => minutes,
        }
    }

    fn local(&self, now: Moment) -> u32 {
        let week = i64::from(WEEK_MINUTES);
        let minute = (i64::from(now.0) + i64::from(self.ahead)).rem_euclid(week);
        u32::try_from(minute).unwrap_or_default()
    }
}

impl Constraint {
    /// Reads a JSON Schema; references to other places are not followed.
    pub fn new(schema: &Value) -> Result<Constraint, String> {
        Schema::new(schema).map(Constraint)
    }

    /// Checks the arguments; the error is for the model, which sent them.
    pub fn check(&self, arguments: &str) -> Result<(), String> {
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else {
            return Err("the arguments can't be read".to_owned());
        };
        self.0.check(&arguments).map_err(|Mismatch { at, problem }| {
            let place = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
            format!("{place}: {problem}")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Constraint, DAY_MINUTES, Moment, WEEK_MINUTES, Window};

    const WEEKDAYS: [bool; 7] = [true, true, true, true, true, false, false];

    fn at(day: u32, hour: u32, minute: u32) -> Moment {
        Moment(day * DAY_MINUTES + hour * 60 + minute)
    }

    #[test]
    fn window_is_open_on_its_days_between_its_hours() {
        // TF-54
        let office = Window { days: WEEKDAYS, from: 8 * 60, until: 18 * 60, ahead: 0 };
        assert!(office.is_open(at(0, 8, 0)) && office.is_open(at(4, 17, 59)));
        assert!(!office.is_open(at(0, 7, 59)) && !office.is_open(at(0, 18, 0)));
        assert!(!office.is_open(at(5, 12, 0)));
        let ahead = Window { ahead: 120, ..office };
        assert!(ahead.is_open(at(0, 6, 0)) && !ahead.is_open(at(0, 16, 0)));
    }

    #[test]
    fn window_goes_on_past_midnight_and_past_the_week() {
        let days = [false, false, false, false, false, false, true];
        let night = Window { days, from: 22 * 60, until: 6 * 60, ahead: 0 };
        assert!(night.is_open(at(6, 22, 0)) && night.is_open(at(0, 5, 59)));
        assert!(!night.is_open(at(0, 22, 0)) && !night.is_open(at(6, 5, 0)));
        let always = Window { days: [true; 7], from: 0, until: 0, ahead: -60 };
        assert!((0..WEEK_MINUTES).all(|minute| always.is_open(Moment(minute))));
    }

    #[test]
    fn window_changes_at_its_edges_only() {
        let window = Window { days: WEEKDAYS, from: 22 * 60, until: 6 * 60 + 30, ahead: 90 };
        for minute in 0..WEEK_MINUTES {
            let now = Moment(minute);
            let edge = window.next_edge(now);
            for later in 1..edge {
                let then = Moment((minute + later) % WEEK_MINUTES);
                assert_eq!(window.is_open(now), window.is_open(then), "{minute} + {later}");
            }
        }
    }

    #[test]
    fn arguments_are_checked_and_the_problem_named() {
        // TF-54
        let schema = json!({"properties": {"path": {"type": "string", "pattern": "^/srv/"}}});
        let constraint = Constraint::new(&schema).unwrap();
        assert_eq!(constraint.check(r#"{"path":"/srv/a"}"#), Ok(()));
        let problem = constraint.check(r#"{"path":"/etc/passwd"}"#).unwrap_err();
        assert!(problem.starts_with("`/path`: "), "{problem}");
        assert!(Constraint::new(&json!({"type": 7})).is_err());
        assert!(Constraint::new(&json!({"$ref": "https://example.com/schema"})).is_err());
    }
}
