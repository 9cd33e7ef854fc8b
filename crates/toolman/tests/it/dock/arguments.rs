//! Arguments are looked at before a worker runs them, by the gateway and by the worker, and nothing else is refused.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::processes::kill;
use tokio::time::timeout;

use super::{Data, Dock};

const TYPED: &str = r#"
from __future__ import annotations
import datetime, decimal, enum
from dataclasses import dataclass, field
from typing import *
from pydantic import Field
from fastmcp.tools import tool

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Point:
    x: int
    y: float = 0.5

@dataclass
class Node:
    value: int
    children: List[Node] = field(default_factory=list)

@tool
def plain(a: int, b: str = "b", c: Optional[List[int]] = None) -> str:
    """Plain."""
    return repr((a, b, c))

@tool
def rich(p: Point, color: Color = Color.RED, kind: Literal["x", 1] = 1, size: Annotated[int, Field(ge=1, le=9)] = 1,
         step: Annotated[float, Field(multiple_of=0.1)] = 0.1, word: Annotated[str, Field(pattern="^(?=a)")] = "a",
         price: decimal.Decimal = decimal.Decimal(1), when: Union[datetime.date, str] = "now",
         table: Dict[int, str] = {}, names: Set[str] = set(), tree: Optional[Node] = None,
         pair: Tuple[int, str] = (1, "a"), anything: Any = None) -> str:
    """Rich."""
    return "fine"

@tool
def others(a: int = 1, **rest) -> str:
    """Take anything else."""
    return repr(rest)
"#;

#[tokio::test]
async fn gateway_and_worker_refuse_the_same_in_the_same_words() {
    // TD-108, TD-149
    let data = Data::new(&[("a/t.py", TYPED)]);
    let calls = [
        ("plain", json!({"a": "one"})),
        ("plain", json!({})),
        ("plain", json!({"a": 1, "z": 1})),
        ("plain", json!({"a": 1, "c": [1, "x"]})),
        ("plain", json!({"a": 1, "b": null})),
        ("rich", json!({"p": {"x": 1.5}})),
        ("rich", json!({"p": {}})),
        ("rich", json!({"p": {"x": 1}, "color": "green"})),
        ("rich", json!({"p": {"x": 1}, "size": 10})),
        ("others", json!({"a": null})),
    ];
    // The first call of a worker is answered by the worker itself: nothing is known of it before.
    let mut by_worker = Vec::new();
    for (tool, arguments) in &calls {
        let dock = Dock::start(&data).await;
        let answer = dock.call("a", tool, arguments).await;
        assert_eq!(answer.status, 422, "{tool} {arguments}: {answer:?}");
        by_worker.push(answer.body);
        if by_worker.len() == calls.len() {
            // A worker that stands still answers nothing, so these are not its answers.
            for _ in 0..20 {
                assert_eq!(dock.call("a", "others", &json!({})).await.status, 200);
            }
            let worker = dock.workers("a")[0];
            kill("-STOP", worker);
            for ((tool, arguments), expected) in calls.iter().zip(&by_worker) {
                // `tree` refers to itself, so the worker alone can tell.
                if *tool == "rich" {
                    continue;
                }
                let asking = dock.call("a", tool, arguments);
                let answer = timeout(Duration::from_secs(5), asking).await.expect("at once");
                assert_eq!((answer.status, &answer.body), (422, expected), "{tool} {arguments}");
            }
            kill("-CONT", worker);
            let fine = dock.call("a", "plain", &json!({"a": 1})).await;
            assert_eq!(fine.status, 200, "{fine:?}");
        }
    }
}

#[tokio::test]
async fn what_a_worker_takes_is_not_refused_before() {
    // TD-149
    let without_tree = TYPED.replace(", tree: Optional[Node] = None", "");
    let data = Data::new(&[("a/t.py", &without_tree), ("b/t.py", TYPED)]);
    let dock = Dock::start(&data).await;
    let point = json!({"x": 1});
    let with = |key: &str, value: Value| ("rich", json!({"p": point, key: value}));
    for namespace in ["a", "b"] {
        for (tool, arguments) in [
            ("plain", json!({"a": 5.0})),
            ("plain", json!({"a": "5", "c": ["1", true]})),
            ("plain", json!({"a": 12_345_678_901_234_567_u64, "b": "\u{e9}", "c": null})),
            ("rich", json!({"p": {"x": 1, "y": 2}})),
            with("color", json!("blue")),
            with("kind", json!("x")),
            with("size", json!(9)),
            with("step", json!(0.3)),
            with("word", json!("ab")),
            with("price", json!("1.10")),
            with("price", json!(1.5)),
            with("when", json!("2024-01-02")),
            with("when", json!("soon")),
            with("table", json!({"7": "x"})),
            with("names", json!(["a", "b"])),
            with("pair", json!([1, "a"])),
            with("anything", json!({"deep": [null]})),
            ("others", json!({"z": [1], "a": 2})),
        ] {
            // The first of them starts the worker; by the last, the gateway looks too.
            for _ in 0..2 {
                let answer = dock.call(namespace, tool, &arguments).await;
                assert_eq!(answer.status, 200, "{tool} {arguments}: {answer:?}");
            }
        }
    }
    let answer = dock.call("a", "rich", &json!({"p": point, "word": "b"})).await;
    assert_eq!(answer.status, 422, "the worker has the last word: {answer:?}");
}

#[tokio::test]
async fn first_call_with_wrong_arguments_starts_no_worker() {
    // TD-108, TD-149
    let sources = super::HELLO.replace("name: str = \"World\"", "name: str, times: int = 1");
    let data = Data::new(&[("a/t.py", &sources)]);
    let dock = Dock::start(&data).await;
    let wrong = json!({"name": 1, "times": "x"});
    let refused = dock.call("a", "hello", &wrong).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(dock.workers("a").is_empty(), "nobody had to be asked");
    // Who runs says the same.
    assert_eq!(dock.call("a", "hello", &json!({"name": "Ada"})).await.status, 200);
    assert_eq!(dock.call("a", "hello", &wrong).await.body, refused.body);
}

#[tokio::test]
async fn scalars_are_converted_unless_the_folder_is_strict() {
    // TD-149
    let half = "from fastmcp.tools import tool\n\n@tool\ndef half(n: int) -> int:\n    \"\"\"Halve.\"\"\"\n    return n // 2\n";
    let strict = ("b/tooldock.yaml", "strict: true\n");
    let data = Data::new(&[("a/t.py", half), ("b/t.py", half), strict]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "half", &json!({"n": "84"})).await, "42");
    let refused = dock.call("b", "half", &json!({"n": "84"})).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("expected an integer, got"), "{refused:?}");
    assert!(dock.workers("b").is_empty(), "the gateway is as strict");
}
