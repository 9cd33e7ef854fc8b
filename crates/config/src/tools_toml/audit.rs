//! The section `[audit]`.

use std::path::PathBuf;

use mcp::text::shorten;
use toml::de::DeValue;

use super::TOP_KEYS;
use super::texts::expanded;
use crate::Surroundings;
use crate::audit::Audit;
use crate::fault::Faults;
use crate::limits::RETENTION_DAYS_MAX;
use crate::reader::Value;

pub fn read(value: &Value<'_>, surroundings: &Surroundings<'_>, faults: &mut Faults<'_>) -> Audit {
    let usual = Audit::default();
    let Some(mut section) = value.section("in `[audit]`", faults) else { return usual };
    let enabled = section.get("enabled").and_then(|value| value.boolean(faults));
    let values = section.get("values").and_then(|value| value.boolean(faults));
    let days = section.get("retention_days").and_then(|value| days(&value, faults));
    let folder = section.get("folder").and_then(|value| folder(&value, surroundings, faults));
    section.close(&TOP_KEYS, faults);
    Audit {
        enabled: enabled.unwrap_or(usual.enabled),
        values: values.unwrap_or(usual.values),
        retention_days: days.unwrap_or(usual.retention_days),
        folder,
    }
}

fn days(value: &Value<'_>, faults: &mut Faults<'_>) -> Option<u32> {
    let DeValue::Integer(integer) = value.node() else {
        value.report_type("a number of days", faults);
        return None;
    };
    let days = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
    let days = days.filter(|days| (1..=RETENTION_DAYS_MAX).contains(days));
    if days.is_none() {
        let written = shorten(&integer.to_string());
        let problem = format!("is `{written}`; it must be from 1 to {RETENTION_DAYS_MAX} days");
        value.report(&problem, faults);
    }
    days
}

fn folder(
    value: &Value<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Option<PathBuf> {
    let text = expanded(value, value.string(faults)?, surroundings.environment, faults)?;
    if text.is_empty() {
        value.report("is empty; write the path of a folder, or leave it out", faults);
        return None;
    }
    Some(surroundings.folder.join(text))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Surroundings;

    /// Checks what a section means, or its faults.
    #[track_caller]
    fn check(section: &str, expected: &str) {
        let surroundings = Surroundings {
            file: Path::new("t"),
            folder: Path::new("/project"),
            environment: &|name| (name == "LOGS").then(|| "/var/log".to_owned()),
        };
        let text = format!("servers = [{{ command = 'run' }}]\n{section}");
        let found = match crate::parse(&text, &surroundings) {
            Ok(config) => format!("{:?}", config.audit),
            Err(faults) => {
                let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
        };
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn section_says_what_is_recorded_where_and_for_how_long() {
        check("", "None");
        let usual = "enabled: true, values: false, retention_days: 30, folder: None";
        check("[audit]", usual);
        check("[audit]\nenabled = false", "enabled: false");
        check("[audit]\nvalues = true\nretention_days = 0x10", "values: true, retention_days: 16");
        check("[audit]\nfolder = '${LOGS}/calls'", r#"folder: Some("/var/log/calls")"#);
        check("[audit]\nfolder = 'calls'", r#"folder: Some("/project/calls")"#);
    }

    #[test]
    fn every_fault_of_the_section_is_told_with_its_fix() {
        check("audit = true", "t:2:9: `audit` is a boolean; it must be a table");
        for (section, fault) in [
            ("enabled = 1", "t:3:11: `enabled` is an integer; it must be `true` or `false`"),
            ("values = 'no'", "t:3:10: `values` is a string; it must be `true` or `false`"),
            ("retention_days = '1d'", "`retention_days` is a string; it must be a number of days"),
            ("retention_days = 0", "`retention_days` is `0`; it must be from 1 to 3650 days"),
            ("retention_days = -1", "`retention_days` is `-1`; it must be from 1 to 3650 days"),
            ("retention_days = 3651", "`retention_days` is `3651`; it must be from 1 to 3650"),
            ("folder = ''", "`folder` is empty; write the path of a folder, or leave it out"),
            ("folder = '${NONE}'", "`folder` uses `${NONE}`, which is not set;"),
            (
                "retention = 1",
                "unknown key `retention` in `[audit]`; did you mean `retention_days`?",
            ),
            ("surface = 'filter'", "`surface` stands in `[audit]`; move it to the top"),
        ] {
            check(&format!("[audit]\n{section}"), fault);
        }
    }
}
