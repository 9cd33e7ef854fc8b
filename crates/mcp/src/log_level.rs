//! How grave a log message is.

use crate::json;

/// The levels of syslog, least grave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    pub const ALL: [(&'static str, LogLevel); 8] = [
        ("debug", LogLevel::Debug),
        ("info", LogLevel::Info),
        ("notice", LogLevel::Notice),
        ("warning", LogLevel::Warning),
        ("error", LogLevel::Error),
        ("critical", LogLevel::Critical),
        ("alert", LogLevel::Alert),
        ("emergency", LogLevel::Emergency),
    ];

    /// The level that a JSON string names.
    pub fn parse(text: &str) -> Option<LogLevel> {
        let name = json::string(text)?;
        LogLevel::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, level)| level)
    }

    pub fn as_str(self) -> &'static str {
        LogLevel::ALL[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::LogLevel;

    #[test]
    fn levels_are_named_and_ordered() {
        for (at, (name, level)) in LogLevel::ALL.into_iter().enumerate() {
            assert_eq!(level as usize, at);
            assert_eq!(level.as_str(), name);
            assert_eq!(LogLevel::parse(&format!("\"{name}\"")), Some(level));
        }
        assert!(LogLevel::Debug < LogLevel::Emergency);
        assert_eq!(LogLevel::parse("\"loud\""), None);
        assert_eq!(LogLevel::parse("7"), None);
    }
}
