//! System calls that no tool needs, and that would lead out of a confinement or into the kernel.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

/// Refused always.
const REFUSED: &[libc::c_long] = &[
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
    libc::SYS_fspick,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_kexec_file_load,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // What belongs to the whole machine. Most of it takes a privilege, too.
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // These stay when all processes have ended, and belong to nobody whose memory could be counted.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
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
const OLDER: [libc::c_long; 4] =
    [libc::SYS_chown, libc::SYS_lchown, libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: [libc::c_long; 0] = [];
/// Answered as if the kernel had none of them, so that libraries use what they used before: what the first is asked for
/// no filter can see, and the memory of the others belongs to no process.
const UNKNOWN: [libc::c_long; 3] = [libc::SYS_clone3, libc::SYS_memfd_create, MEMFD_SECRET];
const MEMFD_SECRET: libc::c_long = 447;
/// From here on, numbers mean calls of a second kind on some kernels (x32), which other filters would let through.
const SECOND_KIND: u32 = 0x4000_0000;
/// What a child must not get of its own: it would be root in there.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Calls that make a file of any kind, and which of their arguments says so.
#[cfg(target_arch = "x86_64")]
const NODES: &[(libc::c_long, u8)] = &[(libc::SYS_mknod, 1), (libc::SYS_mknodat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const NODES: &[(libc::c_long, u8)] = &[(libc::SYS_mknodat, 2)];
const DEVICES: [libc::mode_t; 2] = [libc::S_IFCHR, libc::S_IFBLK];
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
/// Those of them that hear what others send, and say it in their name.
const RAW: [(libc::c_int, libc::c_int); 4] = [
    (libc::AF_INET, libc::SOCK_RAW),
    (libc::AF_INET6, libc::SOCK_RAW),
    (libc::AF_INET, SOCK_PACKET),
    (libc::AF_INET6, SOCK_PACKET),
];
const SOCK_PACKET: libc::c_int = 10;
/// The kind of a socket, without the flags that are given together with it.
const SOCKET_KIND: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Gives them up, for good. Landlock has seen to it that no privileges can be gained.
pub fn forgo(has_network: bool) -> Result<(), seccompiler::Error> {
    let mut rules: Rules = REFUSED.iter().chain(&OLDER).map(|call| (*call, Vec::new())).collect();
    add_others(&mut rules)?;
    for (call, argument) in MODES {
        let refused = MODES_REFUSED.map(|bit| when(argument, SeccompCmpOp::MaskedEq(bit), bit));
        rules.insert(call, refused.into_iter().map(alone).collect::<Result<_, _>>()?);
    }
    add_offspring(&mut rules)?;
    add_sockets(&mut rules, has_network)?;
    let refusal = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)?;
    apply_filter(&without_unknown())
}

/// A filter of its own, as each has one way to refuse.
fn without_unknown() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    // The number of the call comes first in what is looked at.
    let mut program = vec![step(LOAD, 0)];
    let numbers = UNKNOWN.iter().filter_map(|call| u32::try_from(*call).ok());
    for (code, number) in
        numbers.map(|number| (IF_EQUAL, number)).chain([(IF_AT_LEAST, SECOND_KIND)])
    {
        program.push(sock_filter { jf: 1, ..step(code, number) });
        program.push(step(RETURN, absent));
    }
    program.push(step(RETURN, libc::SECCOMP_RET_ALLOW));
    program
}

/// What may be made, but not of every kind: children, files that are devices. And nobody hides from its guard.
fn add_offspring(rules: &mut Rules) -> Result<(), seccompiler::Error> {
    let namespaces = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        alone(when(0, SeccompCmpOp::MaskedEq(flag), flag))
    });
    rules.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    for (call, argument) in NODES {
        let kind = SeccompCmpOp::MaskedEq(libc::S_IFMT.into());
        let devices = DEVICES.map(|device| alone(when(*argument, kind.clone(), device.into())));
        rules.insert(*call, devices.into_iter().collect::<Result<_, _>>()?);
    }
    let hide = u64::from(libc::PR_SET_DUMPABLE.unsigned_abs());
    rules.insert(libc::SYS_prctl, vec![alone(when(0, SeccompCmpOp::Eq, hide))?]);
    Ok(())
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
        let mut sockets = vec![SeccompRule::new(none_of_these)?, SeccompRule::new(other_netlink)?];
        for (family, kind) in RAW {
            let (family, kind) = (u64::from(family.unsigned_abs()), u64::from(kind.unsigned_abs()));
            let of_kind = when(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)?;
            sockets.push(SeccompRule::new(vec![when(0, SeccompCmpOp::Eq, family)?, of_kind])?);
        }
        sockets
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
