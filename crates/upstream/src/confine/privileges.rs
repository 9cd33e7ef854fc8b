//! What root may do that others may not, given up: without it, root is a user who happens to own much.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// Gives all of them up, for good: no program that is run later can bring them back.
pub fn give_up() -> Result<(), Errno> {
    set_no_new_privs(true)?;
    // First the bounds of what programs may bring with them, as that takes a privilege. Others than root have none, and
    // nothing can be gained any more.
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // The last one that this kernel knows has been met, or it is not ours to say.
        if remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    // Kernels before 4.3 know of none.
    _ = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none)?;
    if capabilities(None)? == none { Ok(()) } else { Err(Errno::PERM) }
}
