//! A program that knows the master key, as that of a keyring does: it writes the key to its stdout.

use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use zeroize::Zeroizing;

use crate::limits::{KEY_COMMAND_MAX, LOCK_PAUSE, MASTER_BYTES_MAX};
use crate::patience;

/// Runs the program, without a shell and for a bounded time; what it wrote, or what went wrong.
pub(crate) fn ask(line: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut words = line.split_ascii_whitespace();
    let program = words.next().ok_or("it is empty; name a program and its arguments")?;
    let mut command = Command::new(program);
    // Stdin may be the protocol; what it complains of is for whoever reads our log.
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    command.env_remove("SECRETS_KEY");
    #[expect(clippy::disallowed_methods, reason = "no server, but a program that ends at once")]
    let mut child =
        command.spawn().map_err(|error| format!("`{program}` can't be run: {error}"))?;
    let said = listen(&mut child);
    if said.is_err() {
        _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let said = said.map_err(|problem| format!("`{program}` {problem}"))?;
    if !status.success() {
        return Err(format!("`{program}` failed with {status}; run it by hand to see why"));
    }
    if said.is_empty() {
        return Err(format!("`{program}` wrote nothing; see whether it knows the key"));
    }
    Ok(said)
}

/// What a program writes until it ends, which it must do in time.
fn listen(child: &mut Child) -> Result<Zeroizing<Vec<u8>>, String> {
    let latest = Instant::now() + KEY_COMMAND_MAX;
    let late = || format!("did not end within {KEY_COMMAND_MAX:?}");
    let stdout = child.stdout.take().ok_or("has no output")?;
    let said = patience::read(stdout, KEY_COMMAND_MAX).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => late(),
        _ => format!("can't be heard: {error}"),
    })?;
    if said.len() as u64 > MASTER_BYTES_MAX {
        return Err(format!("wrote over {MASTER_BYTES_MAX} bytes, which is no key"));
    }
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if Instant::now() > latest {
            return Err(late());
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    Ok(said)
}
