//! System calls that no tool needs, and that would lead out of a confinement or into the kernel.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// Refused always.
const REFUSED: [libc::c_long; 50] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // What is asked for through these, no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_fsopen,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_kexec_file_load,
    libc::SYS_quotactl_fd,
    // What reaches into other processes.
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    // Landlock does not see these: they would tell the names of files in folders that can't be listed.
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    // Nor these: they change files that can't even be opened.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
/// Not named by the library yet; they are the same on every machine.
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;
const FCHMODAT2: libc::c_long = 452;
/// Those of the same kind that only the older machine has.
#[cfg(target_arch = "x86_64")]
const OLDER: [libc::c_long; 2] = [libc::SYS_chown, libc::SYS_lchown];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [libc::c_long; 0] = [];
/// Refused for any process but the caller: its number is the first argument, and 0 means oneself.
const FOR_ONESELF: [libc::c_long; 6] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];
/// Those with what kind of number it is before it, and the kind that means all processes of a user.
const FOR_A_KIND: [(libc::c_long, u64); 2] =
    [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
/// Calls that set the mode of a file, and which of their arguments it is.
#[cfg(target_arch = "x86_64")]
const MODES: [(libc::c_long, u8); 4] =
    [(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
#[cfg(not(target_arch = "x86_64"))]
const MODES: [(libc::c_long, u8); 3] =
    [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
/// Modes that nobody sets: of another user's rights, and writable for everybody. Landlock does not see changes of
/// modes, and tools copy files with theirs, so the others have to be let through.
const MODES_REFUSED: [u64; 3] = [0o4000, 0o2000, 0o002];
/// Families of sockets for those who may open connections.
const OPEN: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Gives them up, for good. Landlock has seen to it that no privileges can be gained.
pub fn forgo(has_network: bool) -> Result<(), seccompiler::Error> {
    let mut rules: Rules = REFUSED.iter().chain(&OLDER).map(|call| (*call, Vec::new())).collect();
    add_others(&mut rules)?;
    for (call, argument) in MODES {
        let refused = MODES_REFUSED.map(|bit| when(argument, SeccompCmpOp::MaskedEq(bit), bit));
        rules.insert(call, refused.into_iter().map(alone).collect::<Result<_, _>>()?);
    }
    add_sockets(&mut rules, has_network)?;
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

/// What may be done to oneself, but not to another process of the same user: the gateway is one.
fn add_others(rules: &mut Rules) -> Result<(), seccompiler::Error> {
    for call in FOR_ONESELF {
        rules.insert(call, vec![alone(when(0, SeccompCmpOp::Ne, 0))?]);
    }
    for (call, user) in FOR_A_KIND {
        let another = alone(when(1, SeccompCmpOp::Ne, 0))?;
        rules.insert(call, vec![another, alone(when(0, SeccompCmpOp::Eq, user))?]);
    }
    // Looking at limits is no harm; the third argument is the new one.
    let limits = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let set_for_another = SeccompRule::new(vec![when(0, SeccompCmpOp::Ne, 0)?, limits])?;
    rules.insert(libc::SYS_prlimit64, vec![set_for_another]);
    Ok(())
}

/// Which sockets there are. A socket of Unix leads to whoever listens on this machine, so without `network` there
/// is none; a pair of them, which event loops need, leads nowhere else.
fn add_sockets(rules: &mut Rules, has_network: bool) -> Result<(), seccompiler::Error> {
    let not =
        |family: libc::c_int| when(0, SeccompCmpOp::Ne, u64::try_from(family).unwrap_or_default());
    rules.insert(libc::SYS_socketpair, vec![alone(not(libc::AF_UNIX))?]);
    let sockets = if has_network {
        let none_of_these = OPEN.into_iter().map(not).collect::<Result<_, _>>()?;
        let netlink = u64::try_from(libc::AF_NETLINK).unwrap_or_default();
        // Addresses of this machine are asked for by it; its protocol 0 is that of routes.
        let other_netlink =
            vec![when(0, SeccompCmpOp::Eq, netlink)?, when(2, SeccompCmpOp::Ne, 0)?];
        vec![SeccompRule::new(none_of_these)?, SeccompRule::new(other_netlink)?]
    } else {
        Vec::new()
    };
    rules.insert(libc::SYS_socket, sockets);
    Ok(())
}

fn when(
    argument: u8,
    comparison: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
}

fn alone(
    condition: Result<SeccompCondition, seccompiler::BackendError>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition?])
}
