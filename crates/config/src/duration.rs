//! Durations as people write them: `500ms`, `30s`, `2m`, `1h`, or a number of seconds.

use std::time::Duration;

use crate::limits::DURATION_MAX;

/// Why something is no duration for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("write a number of seconds, or a text such as `500ms`, `30s`, `2m` or `1h`")]
    Unreadable,
    #[error("it must be more than 0 and at most 24 hours")]
    OutOfRange,
}

pub fn from_text(text: &str) -> Result<Duration, DurationError> {
    let unit = text.trim_start_matches(|c: char| !c.is_alphabetic());
    let number = &text[..text.len() - unit.len()];
    let seconds_of_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(DurationError::Unreadable),
    };
    let number: f64 = number.parse().map_err(|_| DurationError::Unreadable)?;
    from_seconds(number * seconds_of_unit)
}

pub fn from_seconds(seconds: f64) -> Result<Duration, DurationError> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero() && *duration <= DURATION_MAX)
        .ok_or(DurationError::OutOfRange)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DurationError, from_seconds, from_text};

    #[test]
    fn every_unit_is_understood() {
        assert_eq!(from_text("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(from_text("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(from_text("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(from_text("24h"), Ok(Duration::from_hours(24)));
        assert_eq!(from_seconds(0.25), Ok(Duration::from_millis(250)));
    }

    #[test]
    fn other_texts_are_unreadable() {
        for text in ["", "30", "s", "1 s", "1d", "1e3s", "inf", "NaNs", "1m30s", "soon", "1µs"] {
            assert_eq!(from_text(text), Err(DurationError::Unreadable), "{text}");
        }
    }

    #[test]
    fn nothing_less_than_nothing_and_more_than_a_day_are_out_of_range() {
        for text in ["0s", "-1s", "25h", "86400001ms", "0.0000001ms"] {
            assert_eq!(from_text(text), Err(DurationError::OutOfRange), "{text}");
        }
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(from_seconds(seconds), Err(DurationError::OutOfRange));
        }
    }
}
