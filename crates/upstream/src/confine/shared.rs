//! A `/dev/shm` of one's own: what is in there is memory, nobody else sees it, and it is gone with its last process.
//!
//! It takes a privilege to have one, so this is done before they are given up, and left out where we have none.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use super::SHARED;

/// Files in there take memory of the kernel, too.
const FILES_MAX: u32 = 16_384;

/// Puts one of at most so many bytes in the place of the common one, for this process and all that it starts.
pub fn take(bytes_max: u64) -> nix::Result<()> {
    const NOTHING: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What we mount is for nobody else, but others may still unmount what is theirs.
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let options = format!("size={bytes_max},nr_inodes={FILES_MAX},mode=1777");
    mount(Some("tmpfs"), SHARED, Some("tmpfs"), flags, Some(options.as_str()))
}
