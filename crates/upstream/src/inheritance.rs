//! What a process inherits though nobody meant it to: descriptors that the parent of the gateway has left open.

use std::fs;
use std::os::fd::RawFd;

/// Closes all descriptors but the three of everybody.
///
/// To be called first of all: nothing in this process may own one of them yet.
pub fn close() {
    let numbers = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<RawFd>().ok();
    // The list itself is open while it is read, so it is read to its end before.
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")
        .map(|list| list.flatten().filter_map(numbers).collect())
        .unwrap_or_default();
    for number in open.into_iter().filter(|number| *number > 2) {
        _ = nix::unistd::close(number);
    }
}
