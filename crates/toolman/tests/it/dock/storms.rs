//! Many faults and many reloads while calls are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::processes::kill;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Data, Dock, HELLO};

const NAMESPACES: usize = 10;
const KILLS: usize = 500;
/// Workers that are started anew at a time: starting them is what takes this machine's time.
const KILLED_AT_ONCE: usize = 2;
const RELOADS: usize = 1_000;
/// Who make so many calls a second together.
const CALLERS: u32 = 8;
const CALLS_A_SECOND: u32 = 200;

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

/// How long it took until those who waited were told, and until the namespace was of use again.
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
    kill("-KILL", u32::try_from(pid).unwrap());
    let killed = Instant::now();
    let answer = timeout(Duration::from_secs(20), waiting).await.expect("no call hangs").unwrap();
    let told = killed.elapsed();
    assert_eq!(answer.status, 502, "{namespace}: {answer:?}");
    assert!(answer.body.contains("was killed by signal 9"), "{}", answer.body);
    let again = Instant::now();
    let next = state(dock, namespace).await;
    let back = again.elapsed();
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
        let (usual, worst) = (times[KILLS * 95 / 100], times[KILLS - 1]);
        println!("{what} after at most {usual:?} in 95 of 100 cases, {worst:?} in all");
        // What else this machine does may delay a few.
        assert!(usual <= Duration::from_secs(1), "{what} after {usual:?}");
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

#[tokio::test]
async fn reloads_under_load_fail_no_call_and_mix_nothing() {
    // TD-11, TD-114, HARDENING L01
    let _machine = crate::MACHINE.write().await;
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    write_round(&data, 0);
    let dock = Arc::new(Dock::start(&data).await);
    let (is_over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let (dock, is_over, calls) = (Arc::clone(&dock), Arc::clone(&is_over), Arc::clone(&calls));
        callers.spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) * CALLERS / CALLS_A_SECOND);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            while !is_over.load(Ordering::Relaxed) {
                ticks.tick().await;
                let namespace = if number % 2 == 0 { "a" } else { "b" };
                let answer = dock.call(namespace, "hello", &json!({})).await;
                assert_eq!(answer.status, 200, "{namespace}: {answer:?}");
                let count = calls.fetch_add(1, Ordering::Relaxed);
                if count % 4 == 0 {
                    let tools = dock.tools("b").await;
                    assert!(is_whole(&tools), "{tools:?}");
                }
            }
        });
    }
    let began = Instant::now();
    let mut turns = interval(Duration::from_millis(20));
    for round in 1..=RELOADS {
        turns.tick().await;
        if let Some(caller) = callers.try_join_next() {
            caller.unwrap();
        }
        // Most find nothing new; every tenth exchanges a worker.
        if round % 10 == 0 {
            write_round(&data, round);
        }
        dock.reload().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    println!("{RELOADS} reloads and {calls:?} calls in {seconds:.1} s");
    assert!(calls.load(Ordering::Relaxed) > 2 * RELOADS, "{calls:?}");
    let last = format!("one_{RELOADS}");
    assert!(dock.tools("b").await.contains(&last));
    assert_eq!(dock.text("b", &last, &json!({})).await, "Hello, World!");
}
