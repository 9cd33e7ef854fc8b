//! Asking a person for something that must not be seen.

use std::io::{BufRead as _, Read as _, Write as _};
use std::os::fd::AsFd as _;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::host::stop_on_signals;

/// A terminal gives at most so many bytes of a line, and loses the rest.
const LINE_BYTES_MAX: usize = 4095;

/// What becomes of a question.
pub enum Answer {
    Text(Zeroizing<Vec<u8>>),
    /// By Ctrl-C.
    Interrupted,
}

/// Asks on the terminal, twice, without showing what is typed; the terminal is as before afterwards.
pub async fn ask_twice(question: &str) -> anyhow::Result<Answer> {
    let _dark = Dark::new()?;
    let stop = stop_on_signals()?;
    let Some(first) = ask(&format!("{question}: "), &stop).await? else {
        return Ok(Answer::Interrupted);
    };
    let Some(second) = ask("again: ", &stop).await? else { return Ok(Answer::Interrupted) };
    if first != second {
        anyhow::bail!("the two are not the same; nothing was set");
    }
    if first.len() >= LINE_BYTES_MAX {
        anyhow::bail!("this is too long for a terminal; pipe it in: `… < FILE`");
    }
    Ok(Answer::Text(first))
}

/// One line; `None` if a signal came first.
async fn ask(
    question: &str,
    stop: &CancellationToken,
) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
    write!(std::io::stderr(), "{question}")?;
    std::io::stderr().flush()?;
    let reading = tokio::task::spawn_blocking(read_line);
    let line = tokio::select! {
        line = reading => Some(line??),
        () = stop.cancelled() => None,
    };
    // What was typed in the dark did not move to the next line.
    writeln!(std::io::stderr())?;
    Ok(line)
}

fn read_line() -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX + 1));
    std::io::stdin().lock().read_until(b'\n', &mut line)?;
    without_line_end(&mut line);
    Ok(line)
}

/// Everything on stdin, without the end of its last line.
pub fn read_all(bytes_max: usize) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(bytes_max + 3));
    std::io::stdin().lock().take(bytes_max as u64 + 3).read_to_end(&mut text)?;
    without_line_end(&mut text);
    Ok(text)
}

fn without_line_end(text: &mut Vec<u8>) {
    if text.last() == Some(&b'\n') {
        text.pop();
        if text.last() == Some(&b'\r') {
            text.pop();
        }
    }
}

/// A terminal that does not show what is typed, until it is dropped.
struct Dark(Termios);

impl Dark {
    fn new() -> std::io::Result<Dark> {
        let input = std::io::stdin();
        let before = tcgetattr(input.as_fd())?;
        let mut dark = before.clone();
        dark.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        // Stopped by Ctrl-Z, we would leave a shell that shows nothing.
        dark.special_codes[SpecialCodeIndex::VSUSP] = 0;
        tcsetattr(input.as_fd(), OptionalActions::Flush, &dark)?;
        Ok(Dark(before))
    }
}

impl Drop for Dark {
    fn drop(&mut self) {
        _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}
