//! Reading the trail, line by line and within bounds.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use crate::entry::{Call, Event, Line};
use crate::error::Error;
use crate::files::{self, FileName};
use crate::limits::LINE_BYTES_MAX;

/// Which calls are wanted; what is absent does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub agent: Option<String>,
    /// The exposed name, the name at the upstream, or what was asked for; a `*` at its end stands
    /// for anything.
    pub tool: Option<String>,
    /// The first moment that counts; see [`crate::calendar::since`].
    pub since: Option<String>,
    /// Only what was not let through.
    pub denied: bool,
}

impl Filter {
    fn wants(&self, at: &str, call: &Call<'_>) -> bool {
        let is_named = |wanted: &String| {
            let fits = |name: &str| match wanted.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == wanted,
            };
            [Some(&*call.asked), call.name.as_deref(), call.item.as_deref()]
                .into_iter()
                .flatten()
                .any(fits)
        };
        self.since.as_deref().is_none_or(|since| at >= since)
            && self.agent.as_ref().is_none_or(|agent| call.agent.as_deref() == Some(agent))
            && self.tool.as_ref().is_none_or(is_named)
            && !(self.denied && call.is_allowed())
    }

    /// Whether a file can hold what is wanted: a line may be some time older than its file.
    fn looks_into(&self, file: FileName) -> bool {
        let day = |since: &String| since.get(..10).and_then(|day| day.parse().ok());
        self.since.as_ref().and_then(day).is_none_or(|first| file.day >= first)
    }
}

/// Reads all calls that are wanted, file by file; how many lines could not be read.
pub fn each_call(
    folder: &Path,
    filter: &Filter,
    mut act: impl FnMut(&str, &Call<'static>),
) -> Result<usize, Error> {
    let mut unreadable = 0;
    for file in files::list(folder)?.into_iter().filter(|file| filter.looks_into(*file)) {
        each_line(&file.in_folder(folder), |text| {
            match serde_json::from_slice::<Line>(text.bytes) {
                Ok(Line { at, event: Event::Call(call), .. }) if filter.wants(&at, &call) => {
                    act(&at, &call);
                }
                Ok(_) => {}
                Err(_) => unreadable += usize::from(text.is_whole),
            }
        })?;
    }
    Ok(unreadable)
}

/// One line of a file.
pub(crate) struct Text<'a> {
    /// Counted from 1.
    pub number: usize,
    /// Without its newline.
    pub bytes: &'a [u8],
    /// Whether there is one, and it is not too far away.
    pub is_whole: bool,
}

/// Reads a file line by line; a file that has just been removed has none.
pub(crate) fn each_line(path: &Path, mut act: impl FnMut(&Text<'_>)) -> Result<(), Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(Error::at(path))?,
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let bounded = reader.by_ref().take(LINE_BYTES_MAX as u64);
        if { bounded }.read_until(b'\n', &mut line).map_err(Error::at(path))? == 0 {
            return Ok(());
        }
        number += 1;
        let (bytes, is_whole) = match line.strip_suffix(b"\n") {
            Some(bytes) => (bytes, true),
            None => (line.as_slice(), false),
        };
        act(&Text { number, bytes, is_whole });
    }
}
