//! Tools that take all they can get: it costs their own namespace, for a moment.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::processes::{command_line, descendants, is_alive, resident_kib};

use super::{Data, Dock, HELLO};

/// All of them end by themselves after some seconds, should nobody end them.
const BOMBS: &str = r#"
import mmap, os, sys, threading, time
from fastmcp.tools import tool

@tool
def fine() -> str:
    """Say so."""
    return "fine"

@tool
def fork_bomb() -> str:
    """Multiply."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            os.fork()
        except OSError:
            pass
    os._exit(1)

@tool
def hiding_bomb() -> str:
    """Multiply, each process in a session of its own and without a parent."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
    os._exit(1)

@tool
def children(count: int) -> int:
    """Have some children for a moment."""
    import subprocess
    living = [subprocess.Popen(["sleep", "30"]) for _ in range(count)]
    time.sleep(2.5)
    for child in living:
        child.kill()
        child.wait()
    return count

@tool
def memory_bomb(processes: int, megabytes: int) -> str:
    """Take memory in many processes."""
    for _ in range(processes):
        if os.fork() == 0:
            taken = bytearray(megabytes * 1024 * 1024)
            time.sleep(8)
            os._exit(len(taken) % 2)
    time.sleep(8)
    return "survived"

@tool
def shared_bomb(megabytes: int) -> str:
    """Take memory that is shared, though with nobody."""
    taken = mmap.mmap(-1, megabytes * 1024 * 1024)
    for _ in range(megabytes):
        taken.write(bytes(1024 * 1024))
    time.sleep(8)
    return "survived"

@tool
def thread_bomb(count: int) -> str:
    """Be many, without a process."""
    threading.stack_size(64 * 1024)
    for _ in range(count):
        threading.Thread(target=time.sleep, args=(8,), daemon=True).start()
    time.sleep(8)
    return "survived"

def fill(folder: str, megabytes: int, deleted: bool, opened: bool = False) -> str:
    kept = []
    for number in range(megabytes):
        path = os.path.join(folder, "toolman-bomb-%d-%d" % (os.getpid(), number))
        file = open(path, "wb")
        file.write(bytes(1024 * 1024))
        file.flush()
        if deleted:
            os.unlink(path)
        if deleted or opened:
            kept.append(file)
        else:
            file.close()
    time.sleep(8)
    return "survived"

@tool
def disk_bomb(megabytes: int, deleted: bool) -> str:
    """Take the disk."""
    return fill(os.environ["HOME"], megabytes, deleted)

@tool
def named_memory_bomb(megabytes: int, deleted: bool, opened: bool = False) -> str:
    """Take memory in files."""
    return fill("/dev/shm", megabytes, deleted, opened)

@tool
def write(name: str, megabytes: int) -> int:
    """Write one file."""
    with open(os.path.join(os.environ["HOME"], name), "wb") as file:
        return sum(file.write(bytes(1024 * 1024)) for _ in range(megabytes))

@tool
def endless() -> str:
    """Never end, and hold the interpreter while at it."""
    while True:
        pass
"#;

fn bombs() -> Data {
    Data::new(&[
        ("bad/t.py", BOMBS),
        ("bad/tooldock.yaml", "processes: 24\nmemory_mb: 400\ntimeout: 20\n"),
        ("good/t.py", HELLO),
    ])
}

/// Calls what goes off, while a neighbour is served; what its caller is told.
async fn set_off(dock: &Dock, tool: &str, arguments: &serde_json::Value) -> String {
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    let neighbour = dock.workers("good");
    let nothing = json!({});
    let bomb = dock.call("bad", tool, arguments);
    tokio::pin!(bomb);
    let answer = loop {
        tokio::select! {
            answer = &mut bomb => break answer,
            served = dock.text("good", "hello", &nothing) => assert_eq!(served, "Hello, World!"),
        }
    };
    assert_eq!(answer.status, 502, "{answer:?}");
    let began = Instant::now();
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(dock.workers("good"), neighbour, "its worker is the same");
    assert_eq!(dock.workers("bad").len(), 1, "nothing is left of it");
    answer.body
}

#[tokio::test]
async fn fork_bomb_costs_its_namespace_only() {
    // HARDENING §4.3
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    for tool in ["fork_bomb", "hiding_bomb"] {
        let told = set_off(&dock, tool, &json!({})).await;
        assert!(told.contains("`processes` allows 24"), "{tool}: {told}");
        // What has no parent any more is not left over, either.
        let below = descendants(dock.child.id().unwrap());
        let living: Vec<_> = below.into_iter().filter(|pid| is_alive(*pid)).collect();
        let lines: Vec<_> = living.iter().map(|pid| command_line(*pid)).collect();
        assert!(living.len() <= 4, "two guards and two workers: {lines:?}");
    }
    // Some are allowed.
    assert_eq!(dock.text("bad", "children", &json!({"count": 10})).await, "10");
}

#[tokio::test]
async fn memory_of_many_processes_is_bounded_together() {
    // HARDENING W11
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    let before = resident_kib(dock.child.id().unwrap());
    let told = set_off(&dock, "memory_bomb", &json!({"processes": 6, "megabytes": 150})).await;
    assert!(told.contains("`memory_mb` allows"), "{told}");
    let after = resident_kib(dock.child.id().unwrap());
    assert!(after < before + 16 * 1024, "{before} KiB before, {after} KiB after");
}

#[tokio::test]
async fn memory_that_is_shared_counts_in_a_single_process_too() {
    // HARDENING W11
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    let told = set_off(&dock, "shared_bomb", &json!({"megabytes": 600})).await;
    assert!(told.contains("a process with more than the 400 MiB"), "{told}");
    assert!(told.contains("`memory_mb` allows"), "{told}");
}

#[tokio::test]
async fn threads_are_bounded_as_processes_are() {
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    let told = set_off(&dock, "thread_bomb", &json!({"count": 1500})).await;
    assert!(told.contains("threads, where `processes: 24` allows 384"), "{told}");
}

/// What is left of bombs in the memory that all share.
fn left_in_memory() -> Vec<String> {
    let files = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("toolman-bomb")).collect()
}

#[tokio::test]
async fn files_that_are_memory_count_as_memory() {
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    data.write("bad/tooldock.yaml", "memory_mb: 100\ntimeout: 20\nsandbox: false\n");
    let dock = Dock::start(&data).await;
    // It has them open, so they are laid to its charge.
    for deleted in [true, false] {
        let arguments = json!({"megabytes": 400, "deleted": deleted, "opened": true});
        let told = set_off(&dock, "named_memory_bomb", &arguments).await;
        assert!(told.contains("of more than the 100 MiB that `memory_mb` allows"), "{told}");
        assert_eq!(left_in_memory(), [""; 0], "it was removed");
    }
}

#[tokio::test]
async fn worker_of_root_has_its_own_files_that_are_memory() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    data.write("bad/tooldock.yaml", "memory_mb: 100\ntimeout: 20\n");
    let dock = Dock::start(&data).await;
    let arguments = json!({"megabytes": 400, "deleted": false});
    let told = dock.call("bad", "named_memory_bomb", &arguments).await;
    assert_eq!(told.status, 500, "{told:?}");
    assert!(told.body.contains("holds no more than `memory_mb` allows"), "{told:?}");
    assert_eq!(left_in_memory(), [""; 0], "nobody else has them");
    let health = dock.ask("GET", "/health", &[], "").await;
    assert!(health.body.contains("own /dev/shm"), "{health:?}");
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
}

/// How much is in a folder, and in how many files.
fn held(folder: &Path) -> (u64, usize) {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    (files.iter().map(|file| file.metadata().unwrap().len()).sum(), files.len())
}

#[tokio::test]
async fn disk_that_a_namespace_may_fill_is_bounded() {
    let data = bombs();
    data.write("bad/tooldock.yaml", "disk_mb: 48\ntimeout: 20\n");
    let scratch = data.path().join("scratch/bad");
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::write(scratch.join("kept"), vec![1; 8 << 20]).unwrap();
    let dock = Dock::start(&data).await;
    for deleted in [false, true] {
        let arguments = json!({"megabytes": 1000, "deleted": deleted});
        let told = set_off(&dock, "disk_bomb", &arguments).await;
        assert!(told.contains("more than the 48 MiB that `disk_mb` allows"), "{told}");
        let (bytes, files) = held(&scratch);
        assert!(bytes <= 48 << 20 && files > 0, "{bytes} bytes in {files} files");
        assert_eq!(
            std::fs::read(scratch.join("kept")).unwrap().len(),
            8 << 20,
            "it was not touched"
        );
    }
}

#[tokio::test]
async fn scratch_folder_that_is_too_full_already_is_only_read() {
    let data = bombs();
    data.write("bad/tooldock.yaml", "disk_mb: 4\n");
    let scratch = data.path().join("scratch/bad");
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::write(scratch.join("kept"), vec![1; 8 << 20]).unwrap();
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    let worker = dock.workers("bad");
    let told = dock.call("bad", "write", &json!({"name": "more", "megabytes": 1})).await;
    assert_eq!(told.status, 500, "{told:?}");
    assert!(told.body.contains("`disk_mb` allows"), "{told:?}");
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    assert_eq!(dock.workers("bad"), worker, "it was not ended for that");
    assert_eq!(std::fs::read(scratch.join("kept")).unwrap().len(), 8 << 20, "nothing is removed");
}

#[tokio::test]
async fn endless_loop_costs_its_namespace_only() {
    // TD-13, HARDENING W09
    let data = bombs();
    data.write("bad/tooldock.yaml", "timeout: 1\n");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    let began = Instant::now();
    let (endless, neighbour) =
        tokio::join!(async { dock.call("bad", "endless", &json!({})).await }, async {
            dock.text("good", "hello", &json!({})).await
        });
    assert_eq!((endless.status, neighbour.as_str()), (504, "Hello, World!"), "{endless:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Those who call before it is replaced may be told so; the next one is served.
    let next = dock.call("bad", "fine", &json!({})).await;
    if next.status != 200 {
        assert!(next.body.contains("was silent, and is replaced"), "{next:?}");
        assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    }
}

#[tokio::test]
async fn modules_named_like_libraries_stand_in_nobodys_way() {
    let data = Data::new(&[
        ("bad/json.py", "raise RuntimeError('not the library')\n"),
        ("bad/asyncio.py", "loads = None\n"),
        ("bad/socket.py", HELLO),
        ("bad/toolman_dock.py", "raise RuntimeError('nor the runtime')\n"),
        (
            "bad/t.py",
            "import json\nfrom fastmcp.tools import tool\n\n@tool\ndef dump() -> str:\n    \"\"\"Use it.\"\"\"\n    return json.dumps([1])\n",
        ),
        ("good/t.py", HELLO),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "dump", &json!({})).await, "[1]");
    assert_eq!(dock.text("bad", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
}
