//! Days and moments in UTC, as they are written in files and in their names.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A day, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

/// A text is no day or moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a time before now such as `30m`, `1h` or `7d`, or a day such as `2026-07-28`")]
pub struct NoTime;

impl Day {
    pub fn of(time: SystemTime) -> Day {
        Day(u32::try_from(since_epoch(time).as_secs() / DAY_SECONDS).unwrap_or(u32::MAX))
    }

    /// The day this many days before.
    pub fn before(self, days: u32) -> Day {
        Day(self.0.saturating_sub(days))
    }

    /// Year, month and day of the month, by the rules of the Gregorian calendar.
    fn parts(self) -> (u32, u32, u32) {
        // Years begin in March here, so that the leap day is the last of its year.
        let days = self.0 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year + era * 400 + u32::from(month <= 2), month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Day {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Day, NoTime> {
        let mut parts = text.splitn(3, '-').map(|part| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| is_number)
        });
        let (Some(Some(year)), Some(Some(month)), Some(Some(day))) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(NoTime);
        };
        if !(1970..=9999).contains(&year) {
            return Err(NoTime);
        }
        let (from_march, year) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
        let of_year = (153 * (from_march % 12) + 2) / 5 + day.saturating_sub(1);
        let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
        let found = Day(days.checked_sub(719_468).ok_or(NoTime)?);
        // Whatever is no day comes out as another one.
        if found.to_string() == text { Ok(found) } else { Err(NoTime) }
    }
}

/// A moment as it is written: of one length, so that texts are in the order of time.
pub fn moment(time: SystemTime) -> [u8; 27] {
    let (since, day) = (since_epoch(time), Day::of(time));
    let (year, month, of_month) = day.parts();
    let seconds = u32::try_from(since.as_secs() % DAY_SECONDS).unwrap_or_default();
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    // There is a moment in every line, and a formatter takes long.
    let mut put = |end: usize, digits: usize, mut number: u32| {
        for place in text[end - digits..end].iter_mut().rev() {
            *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
            number /= 10;
        }
    };
    put(4, 4, year);
    put(7, 2, month);
    put(10, 2, of_month);
    put(13, 2, seconds / 3600);
    put(16, 2, seconds / 60 % 60);
    put(19, 2, seconds % 60);
    put(26, 6, since.subsec_micros());
    text
}

/// The same as a string.
pub fn moment_text(time: SystemTime) -> String {
    moment(time).iter().copied().map(char::from).collect()
}

/// The moment that a text means, as it is written: `1h` before now, or the beginning of a day.
pub fn since(text: &str, now: SystemTime) -> Result<String, NoTime> {
    if let Ok(day) = text.parse::<Day>() {
        return Ok(format!("{day}T00:00:00.000000Z"));
    }
    let is_moment = text.len() >= 20 && text.ends_with('Z') && text.get(10..11) == Some("T");
    if is_moment && text[..10].parse::<Day>().is_ok() {
        return Ok(text.to_owned());
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().map_err(|_| NoTime)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => DAY_SECONDS,
        _ => return Err(NoTime),
    };
    let back = Duration::from_secs(number.saturating_mul(seconds));
    Ok(moment_text(now.checked_sub(back).filter(|then| *then > UNIX_EPOCH).unwrap_or(UNIX_EPOCH)))
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{Day, moment_text, since};

    #[test]
    fn days_are_those_of_the_calendar() {
        for (day, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (20_773, "2026-11-16"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Day(day).to_string(), text);
            assert_eq!(text.parse(), Ok(Day(day)));
        }
        for text in ["", "2026", "2026-02-30", "2026-13-01", "2026-1-1", "1969-12-31", "x-y-z"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }

    #[test]
    fn moments_have_microseconds_and_one_length() {
        let time = UNIX_EPOCH + Duration::from_micros(1_794_816_121_000_042);
        assert_eq!(moment_text(time), "2026-11-16T08:02:01.000042Z");
    }

    #[test]
    fn since_means_a_time_before_now_or_a_day() {
        let now = UNIX_EPOCH + Duration::from_secs(1_794_816_121);
        let check = |text: &str, expected: &str| assert_eq!(since(text, now).unwrap(), expected);
        check("1h", "2026-11-16T07:02:01.000000Z");
        check("30m", "2026-11-16T07:32:01.000000Z");
        check("7d", "2026-11-09T08:02:01.000000Z");
        check("2026-11-16", "2026-11-16T00:00:00.000000Z");
        check("2026-11-16T07:00:00Z", "2026-11-16T07:00:00Z");
        for text in ["", "1", "h", "1y", "yesterday", "2026-11-31", "-1h", "1é"] {
            assert!(since(text, now).is_err(), "{text}");
        }
    }
}
