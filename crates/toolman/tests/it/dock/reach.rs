//! What a worker reaches of others although it may open none of their files, and what it must still be able to do.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use testkit::binary::Folder;
use tokio::process::Command;

use super::{Data, Dock, HELLO};
use crate::TOOLMAN;

/// A tool that runs expressions and says what came of each.
const TRY: &str = r#"
import ctypes, os, resource, signal, socket, stat, time
from fastmcp.tools import tool

libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
    return "done"

def branch(flags):
    """A child, by the call that every other way to one ends in; 56 is its number."""
    pid = libc.syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return os.waitpid(pid, 0)[1]

def status(name):
    lines = dict(line.split(":\t") for line in open("/proc/self/status").read().splitlines())
    return lines[name].strip()

@tool
def attempt(expressions: list[str], gateway: int = 0) -> dict:
    """Try."""
    found = {}
    for one in expressions:
        try:
            found[one] = "reached: %r" % (eval(one, dict(globals(), gateway=gateway)),)
        except BaseException as error:
            found[one] = type(error).__name__
    return found
"#;

/// What came of each expression.
async fn attempt(dock: &Dock, namespace: &str, expressions: &[&str]) -> Vec<(String, String)> {
    let arguments = json!({"expressions": expressions, "gateway": dock.child.id().unwrap()});
    let answer = dock.call(namespace, "attempt", &arguments).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let found = answer.json()["structuredContent"].clone();
    let found = found.as_object().unwrap().iter();
    found.map(|(what, outcome)| (what.clone(), outcome.as_str().unwrap().to_owned())).collect()
}

async fn refused(dock: &Dock, namespace: &str, expressions: &[&str]) {
    for (what, outcome) in attempt(dock, namespace, expressions).await {
        assert_eq!(outcome, "PermissionError", "{what}");
    }
}

async fn reached(dock: &Dock, namespace: &str, expressions: &[&str]) {
    for (what, outcome) in attempt(dock, namespace, expressions).await {
        assert!(outcome.starts_with("reached"), "{what}: {outcome}");
    }
}

fn serve(data: &Path) -> Command {
    let mut command = Folder::new(TOOLMAN).command(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data).current_dir(data);
    command
}

#[tokio::test]
async fn worker_changes_nothing_of_other_processes_and_of_files_outside() {
    // HARDENING §4.3
    let data = Data::new(&[("a/t.py", TRY)]);
    fs::write(data.path().join("secrets.key"), "0123456789abcdef0123456789abcdef").unwrap();
    let dock = Dock::start(&data).await;
    let key = data.path().join("secrets.key").display().to_string();
    refused(
        &dock,
        "a",
        &[
            "resource.prlimit(gateway, resource.RLIMIT_NOFILE, (1000, 1000))",
            "os.sched_setaffinity(gateway, {0})",
            "os.sched_setscheduler(gateway, os.SCHED_BATCH, os.sched_param(0))",
            "os.sched_setparam(gateway, os.sched_param(0))",
            "os.setpriority(os.PRIO_PROCESS, gateway, 5)",
            "call('syscall', 251, 1, gateway, 2 << 13)",
            "signal.pidfd_send_signal(os.pidfd_open(gateway), 0)",
            "call('syscall', 438, os.pidfd_open(gateway), 1, 0)",
            // The desk of `secrets edit` may be there.
            "os.listdir('/dev/shm')",
            "call('inotify_add_watch', call('inotify_init') and 3, b'/dev/shm', 256)",
            &format!("os.chmod({key:?}, 0o666)"),
            &format!("os.chown({key:?}, 1000, 1000)"),
            &format!("os.setxattr({key:?}, 'user.x', b'x')"),
            &format!("open({key:?}).read()"),
            "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)",
            "socket.socket(40, socket.SOCK_STREAM)",
        ],
    )
    .await;
    reached(
        &dock,
        "a",
        &[
            "resource.prlimit(gateway, resource.RLIMIT_NOFILE)",
            "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            "os.nice(1)",
            "os.sched_setaffinity(0, os.sched_getaffinity(0))",
            "open(os.path.join(os.environ['HOME'], 'x'), 'w').close()",
            "os.chmod(os.path.join(os.environ['HOME'], 'x'), 0o755)",
        ],
    )
    .await;
}

#[tokio::test]
async fn worker_of_root_has_none_of_its_privileges() {
    // HARDENING §4.3, seed 003: as root it could read tokens off the wire, and set the clock of the machine.
    let data = Data::new(&[("a/t.py", TRY)]);
    let dock = Dock::start(&data).await;
    let mut expected = vec!["CapInh", "CapPrm", "CapEff", "CapAmb"];
    if rustix::process::geteuid().is_root() {
        expected.push("CapBnd");
    }
    for name in expected {
        let (_, found) =
            attempt(&dock, "a", &[&format!("int(status({name:?}), 16)")]).await.remove(0);
        assert_eq!(found, "reached: 0", "{name}");
    }
    let nodes = "os.mknod(os.path.join(os.environ['HOME'], 'node'), 0o600 |";
    refused(
        &dock,
        "a",
        &[
            "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)",
            "socket.socket(socket.AF_INET6, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.IPPROTO_UDP)",
            "socket.socket(socket.AF_INET, 10, 768)",
            &format!("{nodes} stat.S_IFCHR, os.makedev(1, 11))"),
            &format!("{nodes} stat.S_IFBLK, os.makedev(8, 0))"),
            "time.clock_settime(time.CLOCK_REALTIME, time.time())",
            "socket.sethostname(socket.gethostname())",
            "call('setdomainname', b'x', 1)",
            "call('adjtimex', ctypes.create_string_buffer(512))",
            "call('klogctl', 10, None, 0)",
            "call('acct', None)",
            "call('shmget', 0, 4096, 0o1600)",
            "call('prctl', 4, 0, 0, 0, 0)",
            "branch(0x10000000)",
            "branch(0x40000000)",
            "branch(0x20000000 | 0x10000000)",
        ],
    )
    .await;
    // As if the kernel had none of them: libraries know what to do then. One is an older way to give numbers.
    let absent =
        ["call('syscall', 435, None, 0)", "os.memfd_create('x')", "call('syscall', 0x40000027)"];
    for (what, outcome) in attempt(&dock, "a", &absent).await {
        assert_eq!(outcome, "OSError", "{what}");
    }
    reached(
        &dock,
        "a",
        &[
            "branch(0)",
            &format!("{nodes} stat.S_IFIFO)"),
            "socket.if_nameindex()",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)",
            "__import__('subprocess').run(['true'], check=True)",
            "__import__('threading').Thread(target=print).start()",
        ],
    )
    .await;
    let health = dock.ask("GET", "/health", &[], "").await;
    assert!(health.body.contains("full: "), "{}", health.body);
}

#[tokio::test]
async fn files_of_another_owner_stand_in_no_workers_way() {
    // Without its privileges root is a user like any other.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let data = Data::new(&[("a/t.py", TRY), ("a/kept.txt", "kept")]);
    let scratch = data.path().join("scratch/a");
    fs::create_dir_all(scratch.join("deep")).unwrap();
    fs::write(scratch.join("deep/old"), "old").unwrap();
    symlink("/etc/hosts", scratch.join("link")).unwrap();
    for (path, mode) in
        [("scratch/a/deep/old", 0o600), ("scratch/a/deep", 0o700), ("scratch/a", 0o700)]
    {
        let path = data.path().join(path);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(4_294_000), Some(4_294_000)).unwrap();
    }
    for (file, mode) in [("t.py", 0o040), ("kept.txt", 0)] {
        let path = data.path().join("tools/a").join(file);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(4_294_000), None).unwrap();
    }
    let dock = Dock::start(&data).await;
    let home = "os.path.join(os.environ['HOME'],";
    reached(
        &dock,
        "a",
        &[
            &format!("open({home} 'deep/old'), 'a').write('new')"),
            &format!("open({home} 'fresh'), 'w').close()"),
            "open(os.path.join(os.path.dirname(__file__), 'kept.txt')).read()",
        ],
    )
    .await;
    assert_eq!(fs::metadata("/etc/hosts").unwrap().uid(), 0, "no link was followed");
}

#[tokio::test]
async fn worker_without_network_has_no_sockets_but_pairs() {
    let data = Data::new(&[("a/t.py", TRY), ("a/tooldock.yaml", "network: false\n")]);
    let dock = Dock::start(&data).await;
    let families = ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"];
    let sockets = families.map(|family| format!("socket.socket(socket.{family})"));
    refused(&dock, "a", &sockets.each_ref().map(String::as_str)).await;
    reached(
        &dock,
        "a",
        &[
            "(lambda pair: pair[0].send(b'x'))(socket.socketpair())",
            "__import__('asyncio').run(__import__('asyncio').sleep(0))",
        ],
    )
    .await;
}

#[tokio::test]
async fn descriptors_that_the_parent_left_open_reach_nobody() {
    let data = Data::new(&[("a/t.py", TRY)]);
    let secret = data.path().join("left-open");
    fs::write(&secret, "hush").unwrap();
    let server = "[[servers]]\nnamespace = \"s\"\ncommand = \"ls -l /proc/self/fd > fds\"\n";
    let file = format!("surface = \"namespace\"\n[dock]\n{server}");
    fs::write(data.path().join("tools.toml"), file).unwrap();
    let inner = serve(data.path());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec 9<left-open 8</etc/passwd; exec \"$@\"", "sh", TOOLMAN]);
    command.args(inner.as_std().get_args()).current_dir(data.path()).kill_on_drop(true);
    let dock = Dock::spawn(command).await;
    for (what, outcome) in attempt(&dock, "a", &["os.read(9, 4)", "os.read(8, 4)"]).await {
        assert_eq!(outcome, "OSError", "{what}");
    }
    let seen = fs::read_to_string(data.path().join("fds")).unwrap();
    assert!(!seen.contains("left-open") && !seen.contains("passwd"), "{seen}");
}

#[tokio::test]
async fn path_around_the_data_directory_is_granted_without_it() {
    // The data directory may lie below what every program reads.
    let outer = TempDir::new().unwrap();
    let data = outer.path().join("app/data");
    fs::create_dir_all(data.join("tools/a")).unwrap();
    fs::create_dir_all(data.join("tools/b")).unwrap();
    fs::write(data.join("tools/a/t.py"), TRY).unwrap();
    fs::write(data.join("tools/b/t.py"), HELLO).unwrap();
    fs::write(outer.path().join("app/library"), "open to all").unwrap();
    fs::write(data.join("secrets.key"), "0123456789abcdef0123456789abcdef").unwrap();
    let (wide, inside) = (outer.path().display(), data.display());
    let manifest = format!("read: [\"{wide}\", \"{inside}\"]\nwrite: [\"{wide}\"]\n");
    fs::write(data.join("tools/a/tooldock.yaml"), manifest).unwrap();
    let dock = Dock::spawn(serve(&data)).await;
    let open = |path: &str| format!("open({:?}).read()", outer.path().join(path));
    refused(
        &dock,
        "a",
        &[
            &open("app/data/secrets.key"),
            &open("app/data/tools/b/t.py"),
            &format!("os.listdir({data:?})"),
            &format!("os.unlink({:?})", data.join("secrets.key")),
        ],
    )
    .await;
    reached(&dock, "a", &[&open("app/library")]).await;
}

#[tokio::test]
async fn path_with_too_much_around_the_data_directory_is_left_out() {
    // All paths are handed over in one argument, of which the kernel takes 128 KiB.
    let outer = TempDir::new().unwrap();
    let data = outer.path().join("data");
    fs::create_dir_all(data.join("tools/a")).unwrap();
    fs::write(data.join("tools/a/t.py"), TRY).unwrap();
    for number in 0..1_200 {
        fs::write(outer.path().join(format!("{number:0>120}")), "").unwrap();
    }
    let wide = outer.path().display();
    fs::write(
        data.join("tools/a/tooldock.yaml"),
        format!("read: [\"{wide}\", \"/etc/hostname\"]\n"),
    )
    .unwrap();
    let dock = Dock::spawn(serve(&data)).await;
    let one = outer.path().join(format!("{:0>120}", 1));
    refused(&dock, "a", &[&format!("open({one:?})")]).await;
    reached(&dock, "a", &["open('/etc/hostname')"]).await;
    let health = dock.ask("GET", "/health", &[], "").await;
    let fault = format!("`{wide}` is not granted: too many paths would have to be named");
    assert!(health.body.contains(&fault), "{}", health.body);
}

#[tokio::test]
async fn folder_can_not_undo_what_the_operator_requires() {
    let data = Data::new(&[("a/t.py", TRY)]);
    let elsewhere = TempDir::new().unwrap();
    fs::write(elsewhere.path().join("allowed"), "fine").unwrap();
    let script = data.path().join("tools/a/python");
    let ran = elsewhere.path().join("ran");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\nexec python3 \"$@\"\n", ran.display()))
        .unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let (script, allowed) = (script.display(), elsewhere.path().display());
    data.write(
        "a/tooldock.yaml",
        &format!("python: {script}\nread: [\"/\", \"{allowed}/allowed\"]\nwrite: [\"/\"]\nnetwork: true\nsandbox: false\n"),
    );
    fs::write(
        data.path().join("tools.toml"),
        format!("surface = \"namespace\"\n[dock]\nrequire_sandbox = \"full\"\nnetwork = false\nallow_read = [\"{allowed}\"]\n"),
    )
    .unwrap();
    let dock = Dock::start(&data).await;
    refused(
        &dock,
        "a",
        &[
            "open('/etc/shadow').read()",
            "open('/toolman-was-here', 'w')",
            "socket.socket(socket.AF_INET)",
            &format!("open('{allowed}/allowed', 'a')"),
        ],
    )
    .await;
    reached(&dock, "a", &[&format!("open('{allowed}/allowed').read()")]).await;
    assert!(!ran.exists(), "it would have run without any confinement");
}

#[tokio::test]
async fn deep_result_and_endless_hint_harm_nobody_else() {
    let deep = "import threading\nfrom typing import Any, Dict, List, Union\nfrom fastmcp.tools import tool\n\
        gate = threading.Event()\n\n\
        @tool\ndef deep() -> Any:\n    \"\"\"Nest.\"\"\"\n    value = []\n    for _ in range(200):\n        value = [value]\n    return {\"v\": value}\n\n\
        @tool\ndef wait() -> str:\n    \"\"\"Wait.\"\"\"\n    gate.wait(20)\n    return \"waited\"\n\n\
        @tool\ndef go() -> str:\n    \"\"\"Let go.\"\"\"\n    gate.set()\n    return \"gone\"\n";
    let default = format!(
        "from fastmcp.tools import tool\n\n@tool\ndef f(x: list = {}{}):\n    \"\"\"F.\"\"\"\n",
        "[".repeat(150),
        "]".repeat(150)
    );
    let endless = "from typing import Dict, List, Union\nfrom fastmcp.tools import tool\n\
        J = Union[int, List[\"J\"], Dict[str, \"J\"]]\n\n@tool\ndef g(x: J):\n    \"\"\"G.\"\"\"\n";
    let data = Data::new(&[("a/t.py", deep), ("a/d.py", &default), ("a/e.py", endless)]);
    let dock = Dock::start(&data).await;
    let listed = dock.tools("a").await;
    assert!(
        ["deep", "wait", "go"].iter().all(|name| listed.iter().any(|it| it == name)),
        "{listed:?}"
    );
    let nothing = json!({});
    let (waited, ()) = tokio::join!(dock.text("a", "wait", &nothing), async {
        let failed = dock.call("a", "deep", &nothing).await;
        assert_eq!(failed.status, 500, "{failed:?}");
        assert!(failed.body.contains("nested too deep"), "{}", failed.body);
        assert_eq!(dock.text("a", "go", &nothing).await, "gone");
    });
    assert_eq!(waited, "waited");
}

#[tokio::test]
async fn ordinary_libraries_work_in_a_worker() {
    let source = r#"
import asyncio, concurrent.futures, http.client, multiprocessing, os, shutil, sqlite3, subprocess, sys, tempfile, threading
from fastmcp.tools import tool

async def shell():
    process = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].strip().decode()

def database():
    path = os.path.join(tempfile.mkdtemp(), "x.db")
    with sqlite3.connect(path) as db:
        db.execute("pragma journal_mode=wal")
        db.execute("create table t (x)")
        db.execute("insert into t values (7)")
    return db.execute("select x from t").fetchone()[0]

def copies():
    with tempfile.TemporaryDirectory() as folder:
        first, second = os.path.join(folder, "a"), os.path.join(folder, "b")
        open(first, "w").write("x")
        return open(shutil.copy2(first, second)).read()

def pool(kind):
    with multiprocessing.get_context(kind).Pool(2) as workers:
        return workers.map(abs, [-1, -2, -3])

def web(port):
    connection = http.client.HTTPConnection("localhost", port, timeout=5)
    connection.request("GET", "/health")
    return connection.getresponse().status

@tool
def everything(port: int) -> dict:
    """Use them all."""
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        threaded = list(threads.map(abs, [-1, -2]))
    return {"shell": asyncio.run(shell()), "database": database(), "copies": copies(), "threads": threaded,
            "spawned": pool("spawn"), "forked": pool("fork"), "web": web(port),
            "run": subprocess.run(["true"]).returncode}
"#;
    let data = Data::new(&[("a/t.py", source)]);
    let dock = Dock::start(&data).await;
    let port: u16 = dock.address.rsplit(':').next().unwrap().parse().unwrap();
    let answer = dock.call("a", "everything", &json!({"port": port})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let expected = json!({"shell": "hi", "database": 7, "copies": "x", "threads": [1, 2],
        "spawned": [1, 2, 3], "forked": [1, 2, 3], "web": 200, "run": 0});
    assert_eq!(answer.json()["structuredContent"], expected);
}
