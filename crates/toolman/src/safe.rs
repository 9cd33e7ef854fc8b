//! The safe of the data directory, as the command line and the environment have it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use audit::calendar;
use secrets::error::Error;
use secrets::master::{MasterKey, Sources};
use secrets::store::Store;

use crate::cli::{Cli, Misuse};
use crate::secrets::desk;
use crate::{data_dir, handover, terminal};

/// The safe; nothing is read yet. `None` if there is no data directory.
pub fn open(cli: &Cli) -> Option<Arc<Store>> {
    let folder = data_dir::folder(cli).ok()?;
    Some(Arc::new(store(cli, folder)))
}

/// The same for a command that is about secrets.
pub fn required(cli: &Cli) -> Result<Store, Misuse> {
    Ok(store(cli, data_dir::folder(cli)?))
}

fn store(cli: &Cli, folder: PathBuf) -> Store {
    desk::sweep(&folder);
    let sources = sources(cli);
    if sources.allows_weak {
        terminal::complain(
            "toolman: ALLOW_INSECURE_SECRETS is set: weak master keys are accepted; unset it \
             where secrets matter",
        );
    }
    let mut store = Store::new(folder, sources, || calendar::moment_text(SystemTime::now()));
    if cli.data_dir.is_some() {
        store = store.to_be_named();
    }
    match data_dir::state_folder() {
        Some(memory) => store.with_memory(&memory.join("generations")),
        None => store,
    }
}

/// Refuses to go on with a master key that is no good, though nothing may need it. K08
pub fn check_key(cli: &Cli) -> Result<(), Misuse> {
    let Ok(folder) = data_dir::folder(cli) else { return Ok(()) };
    // A pipe can be read once, and a keyring may ask a person: that is for whoever needs it.
    let sources = Sources { fd: None, command: None, ..sources(cli) };
    match MasterKey::find(&folder, &sources) {
        Err(error @ Error::WeakKey { .. }) => Err(Misuse(error.to_string())),
        _ => Ok(()),
    }
}

/// Whether somebody has said where the master key is.
pub fn is_key_named(cli: &Cli) -> bool {
    let Sources { file, fd, command, text, .. } = sources(cli);
    file.is_some() || fd.is_some() || command.is_some() || text.is_some()
}

fn sources(cli: &Cli) -> Sources {
    let variable = |name| std::env::var(name).ok();
    Sources {
        file: cli.key_file.clone(),
        fd: variable("SECRETS_KEY_FD"),
        command: cli.key_command.clone(),
        text: handover::key(),
        allows_weak: variable("ALLOW_INSECURE_SECRETS").is_some_and(|value| value == "1"),
    }
}

/// An error of the safe as the command line has it.
pub fn worded(error: Error) -> anyhow::Error {
    if error.is_misuse() { Misuse(error.to_string()).into() } else { error.into() }
}
