//! What programs do that know a namespace by its `OpenAPI` document only, and what people see of it.

use serde_json::{Value, json};
use testkit::http::send;
use testkit::peers::python_program;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{Data, Dock, HELLO, TOKEN, examples};
use crate::real_peers;

/// Examples that are made up for each tool.
const EXAMPLES: &str = "50";

/// The web service that the example `async-tool` asks; where it is.
async fn weather() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let body = r#"{"name":"Berlin","main":{"temp":7.5,"humidity":80},"weather":[{"description":"mist"}]}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = [0; 16 * 1024];
                _ = stream.read(&mut asked).await;
                _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    format!("http://{address}")
}

/// All examples, as they are; the weather is asked of `service`.
fn all_examples(service: &str) -> Data {
    let data = Data::new(&[]).with_examples();
    for file in ["weather.py", "requirements.txt"] {
        let text = std::fs::read_to_string(examples().join("async-tool").join(file)).unwrap();
        data.write(&format!("async-tool/{file}"), &text);
    }
    // The search takes a converted scalar for a fault of the schema.
    for name in ["basic-tool", "multi-tool", "typed-tool"] {
        data.write(&format!("{name}/tooldock.yaml"), "strict: true\n");
    }
    let settings = format!(
        "strict: true\nenv: {{ WEATHER_API_KEY: none, WEATHER_BASE_URL: \"{service}\" }}\n"
    );
    data.write("async-tool/tooldock.yaml", &settings);
    data
}

#[tokio::test]
async fn generated_clients_call_every_example_and_no_search_finds_a_fault() {
    // TD-07, TD-27, TD-72: as LiteLLM and Open WebUI use such a document, with a bearer token and `X-Namespace`.
    let _machine = crate::MACHINE.read().await;
    let service = weather().await;
    let data = all_examples(&service);
    let dock = Dock::start(&data).await;
    let base = format!("http://{}", dock.address);
    let python = python_program("openapi", "python");
    let ticket = json!({"title": "a", "priority": "high", "tags": ["x"], "parent": {"title": "b"}});
    let filed = json!({"title": "a", "priority": "high", "tags": ["x"],
        "parent": {"title": "b", "priority": "low", "tags": [], "parent": null}});
    let calls = [
        ("basic-tool", json!({"say_hello": [{"name": "Ada"}, {"result": "Hello, Ada!"}]})),
        (
            "async-tool",
            json!({"get_weather": [{"city": "Berlin"},
                {"city": "Berlin", "temperature": 7.5, "description": "mist", "humidity": 80}]}),
        ),
        (
            "multi-tool",
            json!({
                "add": [{"a": 1, "b": 2.5}, {"result": 3.5}],
                "multiply": [{"a": 2, "b": 2.5}, {"result": 5.0}],
                "reverse": [{"text": "abc"}, {"result": "cba"}],
                "count_words": [{"text": "a b a"}, {"a": 2, "b": 1}],
            }),
        ),
        (
            "typed-tool",
            json!({
                "file_ticket": [{"ticket": ticket}, filed],
                "sum_up": [{"numbers": [1, 2, 6], "how": "mean"}, {"result": 3.0}],
                "swatch": [{"red": 1, "green": 2, "blue": 3}, Value::Null],
            }),
        ),
    ];
    for (namespace, calls) in &calls {
        let calls = calls.to_string();
        real_peers::run(&python, "generated.py", &[&base, TOKEN, namespace, &calls]).await;
        real_peers::run(&python, "faults.py", &[&base, TOKEN, namespace, EXAMPLES]).await;
        assert_eq!(dock.workers(namespace).len(), 1, "and its worker is alive");
    }
}

#[tokio::test]
async fn page_for_people_is_whole_in_itself_and_says_nothing_without_a_token() {
    let data = Data::new(&[("secretive/t.py", &HELLO.replace("Greet", "<script>Greet"))]);
    let dock = Dock::start(&data).await;
    for (path, kind) in [
        ("/docs", "text/html"),
        ("/docs/page.js", "text/javascript"),
        ("/docs/style.css", "text/css"),
    ] {
        let page = send(&dock.address, "GET", path, &[], "").await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.header("content-type").unwrap().starts_with(kind), "{path}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        for elsewhere in ["http://", "https://", "//cdn", "innerHTML", "eval("] {
            assert!(!page.body.contains(elsewhere), "{path} has {elsewhere}");
        }
        assert!(!page.body.contains("secretive") && !page.body.contains("hello"), "{path}");
        let foreign = [("Origin", "https://evil.example")];
        assert_eq!(send(&dock.address, "GET", path, &foreign, "").await.status, 403);
    }
    assert_eq!(send(&dock.address, "GET", "/docs/other", &[], "").await.status, 401);
    assert_eq!(dock.ask("GET", "/docs/other", &[], "").await.status, 404);
    assert_eq!(dock.ask("POST", "/docs", &[], "{}").await.status, 404);
}
