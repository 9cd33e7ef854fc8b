//! The git of this machine: where it is, and whether its known holes are closed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp::text::{shorten, tame};
use upstream::launch::Errand;

use crate::desk::Desk;
use crate::limits::SAID_BYTES_MAX;

/// Versions in which the holes of 2024 and 2025 are closed: the first of each line.
const MENDED: [(u32, u32); 8] =
    [(43, 7), (44, 4), (45, 4), (46, 4), (47, 3), (48, 2), (49, 1), (50, 1)];
const ASKING_TIME_MAX: Duration = Duration::from_secs(10);

/// Where it is, by the path of the manager.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .find(|file| file.is_absolute() && file.is_file())
}

/// What there is to say against it; asked once.
pub async fn warning(desk: &Desk, git: &Path) -> Option<String> {
    let asked = desk.sources.git.get_or_init(|| async {
        let errand = Errand {
            program: git.to_owned(),
            args: vec![OsString::from("--version")],
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            confinement: None,
            input: Vec::new(),
            time_max: ASKING_TIME_MAX,
            output_bytes_max: SAID_BYTES_MAX,
        };
        let ended = desk.spawner.run(errand).await.ok()?;
        let said = String::from_utf8_lossy(&ended.output).into_owned();
        let warning = against(&said)?;
        tracing::warn!("{warning}");
        Some(warning)
    });
    asked.await.clone()
}

/// What there is to say against a version, as `git --version` tells it.
pub fn against(said: &str) -> Option<String> {
    let version = said.trim().strip_prefix("git version ").unwrap_or_default();
    let mut numbers = version.split(['.', ' ', '-']).map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let patch = numbers.next().unwrap_or_default();
    let newest = MENDED.last().map_or(0, |(minor, _)| *minor);
    let is_mended = major > 2
        || (major == 2 && minor > newest)
        || (major == 2 && MENDED.iter().any(|(line, first)| minor == *line && patch >= *first));
    if is_mended {
        return None;
    }
    let shown = shorten(&tame(version));
    Some(format!(
        "the git of this machine ({shown}) may have holes that were closed in 2.50.1: update it"
    ))
}
