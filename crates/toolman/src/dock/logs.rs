//! `toolman logs`: what the tools of a namespace have printed, and what they print now.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::dock::check_name;
use mcp::names::UpstreamName;
use mcp::text::tame;
use tokio::time::sleep;
use upstream::printed::former;

use crate::cli::{Cli, Logs, Misuse};
use crate::data_dir;

/// How often a file is looked at for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where is kept what a namespace prints.
pub fn path(data: &Path, name: &UpstreamName) -> PathBuf {
    data.join("logs").join(format!("{name}.log"))
}

pub async fn run(cli: &Cli, asked: &Logs) -> anyhow::Result<i32> {
    let (name, _) = check_name(&asked.namespace).map_err(Misuse)?;
    let path = path(&data_dir::folder(cli)?, &name);
    let mut bytes = fs::read(former(&path)).unwrap_or_default();
    let mut reading = Reading::default();
    let is_there = reading.read_on(&path, &mut bytes)?;
    if !is_there && !asked.follow {
        let shown = path.display();
        anyhow::bail!(
            "nothing is known of what `{name}` prints: there is no `{shown}`; is it served with this `--data-dir`?"
        );
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<_> = text.lines().collect();
    let from = asked.lines.map_or(0, |wanted| lines.len().saturating_sub(wanted));
    let mut goes_on = show(&lines[from..]);
    let mut rest = Vec::new();
    while asked.follow && goes_on {
        sleep(LOOK_EVERY).await;
        reading.read_on(&path, &mut rest)?;
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&rest[..whole]).into_owned();
        rest.drain(..whole);
        goes_on = show(&text.lines().collect::<Vec<_>>());
    }
    Ok(0)
}

/// Prints lines; `false` if nobody reads them any more. What tools print must not move the cursor of who looks.
fn show(lines: &[&str]) -> bool {
    let text: String = lines.iter().map(|line| tame(line) + "\n").collect();
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// How far a file was read, and which one.
#[derive(Default)]
struct Reading {
    file: Option<(u64, File)>,
}

impl Reading {
    /// Reads what has come since: the rest of the file, and the one that has taken its place. Whether there is one.
    fn read_on(&mut self, path: &Path, bytes: &mut Vec<u8>) -> io::Result<bool> {
        if let Some((_, file)) = &mut self.file {
            file.read_to_end(bytes)?;
        }
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(self.file.is_some());
            }
            Err(error) => return Err(error),
        };
        let inode = file.metadata()?.ino();
        if self.file.as_ref().is_none_or(|(known, _)| *known != inode) {
            file.read_to_end(bytes)?;
            self.file = Some((inode, file));
        }
        Ok(true)
    }
}
