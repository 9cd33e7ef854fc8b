//! The folder that the tools of a namespace write to.
//!
//! Workers of root have no more rights than the owner of a file has. So what was made while we ran as somebody else
//! becomes ours, where we may do that.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

use rustix::process::{getegid, geteuid};

/// Makes the folder, or makes it ours.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let is_ours = fs::metadata(folder)?.uid() == geteuid().as_raw();
    if is_ours || !geteuid().is_root() {
        return Ok(());
    }
    // The folder itself comes last: if this ends halfway, it is done again.
    take_over(folder)?;
    lchown(folder, Some(geteuid().as_raw()), Some(getegid().as_raw()))
}

/// Everything in a folder; links themselves, and not what they lead to.
fn take_over(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            take_over(&entry.path())?;
        }
        lchown(entry.path(), Some(geteuid().as_raw()), Some(getegid().as_raw()))?;
    }
    Ok(())
}
