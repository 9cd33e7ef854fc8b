//! Many faults and many reloads while calls are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::processes::kill;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::doors::{modern_headers, modern_params};
use super::{Data, Dock, HELLO};
use crate::up::request;

const NAMESPACES: usize = 10;
const KILLS: usize = 500;
/// Workers that are started anew at a time: starting them is what takes this machine's time.
const KILLED_AT_ONCE: usize = 2;
/// In how long 99 of 100 are told, and are of use again. What else this machine does may delay a few; a build that is not
/// optimized has less to spare.
const NEARLY_ALL_MAX: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 1_000 });
const RELOADS: usize = 1_000;
const RELOADS_A_SECOND: usize = 50;
/// So many calls are made in the time of a reload, at least: 200 a second.
const CALLS_A_RELOAD: usize = 4;
const CALLS_A_SECOND: usize = RELOADS_A_SECOND * CALLS_A_RELOAD;
/// What is left of that, as measured; a build that is not optimized, on a busy machine, may make fewer.
const RATE_MIN: f64 = if cfg!(debug_assertions) { 100.0 } else { 190.0 };
/// Calls under way at a time.
const CALLS_AT_ONCE: usize = 16;

/// Fails if it is called twice with the same number.
const ONCE: &str = r#"
import os
from fastmcp.tools import tool

@tool
def once(number: int) -> int:
    """Take a number that nobody has taken."""
    os.close(os.open(os.path.join(os.environ["HOME"], str(number)), os.O_CREAT | os.O_EXCL))
    return number
"#;

const VICTIM: &str = r#"
import asyncio, os
from fastmcp.tools import tool

waiting = 0

@tool
async def wait() -> None:
    """Wait for the end."""
    global waiting
    waiting += 1
    await asyncio.sleep(30)

@tool
async def state() -> dict:
    """Say who waits, and where."""
    return {"waiting": waiting, "pid": os.getpid()}
"#;

/// How long it took from the kill until those who waited were told, and until the namespace was of use again.
struct Fault {
    told: Duration,
    back: Duration,
}

async fn state(dock: &Dock, namespace: &str) -> Value {
    let answer = dock.call(namespace, "state", &json!({})).await;
    assert_eq!(answer.status, 200, "{namespace}: {answer:?}");
    answer.json()["structuredContent"].clone()
}

/// Kills the worker of a namespace while a call is under way there.
async fn kill_one(dock: &Arc<Dock>, namespace: &str) -> Fault {
    let (caller, name) = (Arc::clone(dock), namespace.to_owned());
    let waiting = tokio::spawn(async move { caller.call(&name, "wait", &json!({})).await });
    let pid = loop {
        let state = state(dock, namespace).await;
        if state["waiting"] == 1 {
            break state["pid"].as_u64().unwrap();
        }
    };
    let killed = Instant::now();
    kill("-KILL", u32::try_from(pid).unwrap());
    let answer = timeout(Duration::from_secs(20), waiting).await.expect("no call hangs").unwrap();
    let told = killed.elapsed();
    assert_eq!(answer.status, 502, "{namespace}: {answer:?}");
    assert!(answer.body.contains("was killed by signal 9"), "{}", answer.body);
    let next = state(dock, namespace).await;
    let back = killed.elapsed();
    assert_eq!(dock.tools(namespace).await, ["state", "wait"], "its tools stay listed");
    assert_ne!(next["pid"], pid);
    Fault { told, back }
}

#[tokio::test]
async fn killed_workers_cost_their_own_calls_and_no_more() {
    // TD-02, TD-12, HARDENING L05
    let _machine = crate::MACHINE.write().await;
    let names: Vec<_> = (0..NAMESPACES).map(|number| format!("n{number}")).collect();
    let files: Vec<_> = names.iter().map(|name| format!("{name}/t.py")).collect();
    let mut files: Vec<_> = files.iter().map(|file| (file.as_str(), VICTIM)).collect();
    files.push(("calm/t.py", HELLO));
    let data = Data::new(&files);
    let dock = Arc::new(Dock::start(&data).await);
    let (room, is_over) =
        (Arc::new(Semaphore::new(KILLED_AT_ONCE)), Arc::new(AtomicBool::new(false)));
    let mut storm = JoinSet::new();
    for name in names {
        let (dock, room) = (Arc::clone(&dock), Arc::clone(&room));
        storm.spawn(async move {
            let mut faults = Vec::new();
            for _ in 0..KILLS / NAMESPACES {
                let _turn = room.acquire().await.unwrap();
                faults.push(kill_one(&dock, &name).await);
            }
            faults
        });
    }
    let (calm, ends) = (Arc::clone(&dock), Arc::clone(&is_over));
    let calm = tokio::spawn(async move {
        let (mut calls, mut ticks) = (0, interval(Duration::from_millis(20)));
        while !ends.load(Ordering::Relaxed) {
            ticks.tick().await;
            assert_eq!(calm.text("calm", "hello", &json!({})).await, "Hello, World!");
            calls += 1;
        }
        calls
    });
    let mut faults = Vec::new();
    while let Some(of_one) = storm.join_next().await {
        faults.extend(of_one.unwrap());
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(calm.await.unwrap() > KILLS, "its neighbour is served all the while");
    assert_eq!(faults.len(), KILLS);
    let (mut told, mut back): (Vec<_>, Vec<_>) =
        faults.iter().map(|fault| (fault.told, fault.back)).unzip();
    for (what, times) in [("told", &mut told), ("back", &mut back)] {
        times.sort();
        let (half, usual) = (times[KILLS / 2], times[KILLS * 95 / 100]);
        let (nearly_all, worst) = (times[KILLS * 99 / 100], times[KILLS - 1]);
        println!(
            "{what} after {half:?} (50 %), {usual:?} (95 %), {nearly_all:?} (99 %), {worst:?}"
        );
        assert!(usual <= Duration::from_secs(1), "{what} after {usual:?}");
        assert!(nearly_all <= NEARLY_ALL_MAX, "{what} after {nearly_all:?}");
        assert!(worst <= Duration::from_secs(5), "{what} after {worst:?}");
    }
}

/// What the folder `b` holds in a round: each file tells of it.
fn write_round(data: &Data, round: usize) {
    for file in ["one", "two", "three"] {
        let text = HELLO.replace("hello", &format!("{file}_{round}"));
        data.write(&format!("b/{file}.py"), &text);
    }
}

/// Whether all tools of a list are of the same round.
fn is_whole(tools: &[String]) -> bool {
    let rounds: Vec<_> = tools.iter().filter_map(|tool| tool.split_once('_')).collect();
    rounds.len() == 3 && rounds.iter().all(|(_, round)| *round == rounds[0].1)
}

/// Makes a call that must be made once, and now and then looks at the list; how long the call took.
async fn call_once(dock: &Dock, number: usize) -> Duration {
    let namespace = if number.is_multiple_of(2) { "a" } else { "b" };
    let began = Instant::now();
    let answer = dock.call(namespace, "once", &json!({"number": number})).await;
    let took = began.elapsed();
    assert_eq!(answer.status, 200, "{namespace}: {answer:?}");
    if number.is_multiple_of(4) {
        let tools = dock.tools("b").await;
        assert!(is_whole(&tools), "{tools:?}");
    }
    if number.is_multiple_of(16) {
        let list = request(1, "tools/list", modern_params(json!({}))).to_string();
        let headers = [&[("X-Namespace", "b")][..], &modern_headers("tools/list", "")].concat();
        let list = dock.ask("POST", "/mcp", &headers, &list).await.json();
        let tools = list["result"]["tools"].as_array().unwrap();
        let tools: Vec<_> =
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert!(is_whole(&tools), "over MCP: {tools:?}");
    }
    took
}

/// Makes calls at their pace until it is told to end; how long each took.
async fn call_on(
    dock: Arc<Dock>,
    made: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
) -> Vec<Duration> {
    let room = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(CALLS_A_SECOND).unwrap());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut calls, mut took) = (JoinSet::new(), Vec::new());
    for number in 0.. {
        ticks.tick().await;
        let permit = Arc::clone(&room).acquire_owned().await.unwrap();
        while let Some(done) = calls.try_join_next() {
            took.push(done.unwrap());
        }
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let (dock, made) = (Arc::clone(&dock), Arc::clone(&made));
        calls.spawn(async move {
            let took = call_once(&dock, number).await;
            made.fetch_add(1, Ordering::Relaxed);
            drop(permit);
            took
        });
    }
    took.extend(calls.join_all().await);
    took
}

#[tokio::test]
async fn reloads_under_load_fail_no_call_and_mix_nothing() {
    // TD-11, TD-114, HARDENING L01
    let _machine = crate::MACHINE.write().await;
    let data = Data::new(&[("a/t.py", ONCE), ("b/t.py", ONCE)]);
    write_round(&data, 0);
    let dock = Arc::new(Dock::start(&data).await);
    let (is_over, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let calling = tokio::spawn(call_on(Arc::clone(&dock), Arc::clone(&made), Arc::clone(&is_over)));
    let began = Instant::now();
    let mut turns = interval(Duration::from_secs(1) / u32::try_from(RELOADS_A_SECOND).unwrap());
    for round in 1..=RELOADS {
        turns.tick().await;
        // On a machine that can't make 200 calls a second meanwhile, reloads come as much slower.
        while made.load(Ordering::Relaxed) < CALLS_A_RELOAD * (round - 1) {
            assert!(!calling.is_finished(), "a call has failed");
            turns.tick().await;
        }
        // Most find nothing new; every tenth exchanges a worker.
        if round % 10 == 0 {
            write_round(&data, round);
        }
        dock.reload().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    let mut took = calling.await.unwrap();
    took.sort();
    let (calls, nearly_all) = (took.len(), took[took.len() * 99 / 100]);
    println!("{RELOADS} reloads and {calls} calls in {seconds:.1} s; 99 % within {nearly_all:?}");
    // So many calls came with each reload, however slow the machine is, and none was made twice.
    assert!(calls >= CALLS_A_RELOAD * (RELOADS - 1), "{calls} calls");
    let rate = f64::from(u32::try_from(calls).unwrap()) / seconds;
    assert!(rate >= RATE_MIN, "{rate:.0} calls a second");
    let taken = |namespace: &str| {
        let scratch = data.path().join("scratch").join(namespace);
        let names = std::fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().is_some_and(|name| name.parse::<usize>().is_ok())).count()
    };
    assert_eq!(taken("a") + taken("b"), calls);
    let last = format!("one_{RELOADS}");
    assert!(dock.tools("b").await.contains(&last));
    assert_eq!(dock.text("b", &last, &json!({})).await, "Hello, World!");
}
