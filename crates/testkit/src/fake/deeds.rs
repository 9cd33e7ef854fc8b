//! What the tools of a fake server do, by their names.

use std::time::Duration;

use mcp::json;
use mcp::rpc::{self, Code, Outcome, Raw};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Server, tool};

impl Server {
    /// Makes other tools of all of them.
    fn mutate(&self, id: &Raw) {
        for tool in &mut self.script.lock().unwrap().tools {
            tool["description"] = json!("does something else");
        }
        self.send(rpc::notification("notifications/tools/list_changed", None));
        self.echo(id, "{}", "null");
    }

    pub(super) async fn call(&self, id: Raw, params: Raw) {
        let wanted = ["name", "arguments", "_meta"];
        let [name, arguments, meta] = params.members(wanted).unwrap();
        let arguments = arguments.unwrap_or("{}").to_owned();
        let meta = meta.unwrap_or("null").to_owned();
        let name = json::string(name.unwrap()).unwrap().into_owned();
        match name.as_str() {
            "die" => {
                eprintln!("dying as told");
                std::process::exit(3);
            }
            "error" | "picky" => self.refuse(&name, &id),
            "fail" => self.result(
                &id,
                &json!({
                    "content": [{"type": "text", "text": "it failed"}], "isError": true,
                }),
            ),
            "big" => self.answer_at_length(&id, &arguments),
            "never" => self.note("never", None),
            "slow" => {
                let arguments: Value = serde_json::from_str(&arguments).unwrap();
                tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap())).await;
                self.echo(&id, "{}", "null");
            }
            "twice" | "wrong_id" | "garbage" | "huge" | "nan" | "both" | "text_id" | "pretty"
            | "null_error" => {
                self.misbehave(&name, &id, &arguments, &meta);
            }
            "progress" => self.report_progress(&id, &meta, Duration::ZERO).await,
            "stroll" => self.report_progress(&id, &meta, Duration::from_millis(300)).await,
            "plod" => self.report_progress(&id, &meta, Duration::from_secs(4)).await,
            "log" => self.log(&id, &arguments, &meta).await,
            "ask" => self.ask(&id, &arguments).await,
            "mutate" => self.mutate(&id),
            "chatter" => {
                for _ in 0..3_000 {
                    let params = br#"{"level":"info","data":"blah"}"#;
                    self.send(rpc::notification("notifications/message", Some(params)));
                }
                self.send("no message either\n".repeat(3_000));
                self.script.lock().unwrap().tools.push(tool("extra"));
                self.send(rpc::notification("notifications/tools/list_changed", None));
                self.echo(&id, &arguments, &meta);
            }
            "touch" => {
                self.touch(&arguments);
                self.echo(&id, &arguments, &meta);
            }
            "grow" => {
                self.script.lock().unwrap().tools.push(tool("extra"));
                self.tell("notifications/tools/list_changed", "");
                self.echo(&id, &arguments, &meta);
            }
            "seen" => {
                let seen = self.seen.lock().unwrap().clone();
                self.result(&id, &json!({"content": [], "structuredContent": {"seen": seen}}));
            }
            "breed" => self.breed(&id),
            "who" => self.tell_of_itself(&id),
            "client" => self.tell_of_client(&id),
            // What it is to say.
            "say" => self.send(rpc::result(&id, arguments.as_bytes())),
            _ => self.echo(&id, &arguments, &meta),
        }
    }

    /// Answers with an error of its own.
    fn refuse(&self, how: &str, id: &Raw) {
        let error = match how {
            "picky" => r#"{"code":-32602,"message":"`x` must be a number","data":1.10}"#,
            _ => r#"{"code":-32050,"message":"no","data":{"big":12345678901234567890}}"#,
        };
        self.send(rpc::relayed_error(id, error.as_bytes()));
    }

    /// Says what its client declares.
    fn tell_of_client(&self, id: &Raw) {
        let declared = self.client.lock().unwrap().clone();
        self.result(id, &json!({"content": [{"type": "text", "text": declared}]}));
    }

    /// Sends a log message, after so many milliseconds if told, and then the answer.
    async fn log(&self, id: &Raw, arguments: &str, meta: &str) {
        let asked: Value = serde_json::from_str(arguments).unwrap();
        let answers_first = asked["answers_first"] == true;
        if answers_first {
            self.echo(id, arguments, meta);
        }
        if let Some(pause) = asked["ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let params = r#"{"level":"info","data":"hello","x-vendor":1}"#;
        self.send(rpc::notification("notifications/message", Some(params.as_bytes())));
        if !answers_first {
            self.echo(id, arguments, meta);
        }
    }

    /// Answers, but not as one should.
    fn misbehave(&self, how: &str, id: &Raw, arguments: &str, meta: &str) {
        match how {
            "twice" => {
                self.echo(id, arguments, meta);
                self.echo(id, r#"{"second":true}"#, meta);
            }
            "wrong_id" => {
                self.echo(&Raw::trusted("999999999"), arguments, meta);
                self.echo(&Raw::trusted("\"x\""), arguments, meta);
                self.echo(id, arguments, meta);
            }
            "garbage" => {
                for garbage in ["hello\n{oops", "[1,2]", "\u{0}\u{1}", "{\"jsonrpc\":\"2.0\"}"] {
                    self.send(garbage);
                }
                self.echo(id, arguments, meta);
            }
            "nan" => {
                self.send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":NaN}}}}"#, text(id)));
            }
            "pretty" => {
                let lines = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ";
                self.send(format!("{lines}{},\n  \"result\": {{}}\n}}", text(id)));
            }
            "null_error" => {
                let error = r#"{"code":-32700,"message":"parse error"}"#;
                self.send(format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#));
            }
            "both" => {
                let both =
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}},"error":null}}"#, text(id));
                self.send(both);
            }
            "text_id" => self.echo(&Raw::trusted(format!("\"{}\"", text(id))), arguments, meta),
            _ => {
                let text = "x".repeat(65 * 1024 * 1024);
                self.result(id, &json!({"content": [{"type": "text", "text": text}]}));
            }
        }
    }

    /// Answers with as many bytes as it is asked for.
    fn answer_at_length(&self, id: &Raw, arguments: &str) {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let bytes = usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap();
        self.result(id, &json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]}));
    }

    /// Gives back what was sent, byte for byte, with members that nobody knows.
    fn echo(&self, id: &Raw, arguments: &str, meta: &str) {
        let result = format!(
            r#"{{"x-first":1.10,"content":[{{"type":"text","text":"ok","x":[]}}],"structuredContent":{arguments},"_meta":{meta},"x-last":12345678901234567890}}"#
        );
        self.send(rpc::result(id, result.as_bytes()));
    }

    async fn report_progress(&self, id: &Raw, meta: &str, pause: Duration) {
        let [token] = json::members(meta.as_bytes(), ["progressToken"]).unwrap();
        for step in 1..=3 {
            let params = format!(
                r#"{{"progressToken":{},"progress":{step},"total":3,"x-vendor":"kept"}}"#,
                token.unwrap()
            );
            tokio::time::sleep(pause).await;
            self.send(rpc::notification("notifications/progress", Some(params.as_bytes())));
        }
        tokio::time::sleep(pause).await;
        self.echo(id, "{}", "null");
    }

    /// Asks the client what the arguments say, and gives back its answer.
    /// Asks, perhaps after a while, and perhaps when it has answered already; a cancellation does not stop it.
    async fn ask(&self, id: &Raw, arguments: &str) {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let answers_first = arguments["answers_first"] == true;
        if answers_first {
            self.echo(id, "{}", "null");
        }
        if let Some(pause) = arguments["ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let (answer, answered) = oneshot::channel();
        self.asks.lock().unwrap().push_back(answer);
        let params = arguments.get("params").map(Value::to_string);
        let method = arguments["method"].as_str().unwrap();
        let ask_id = format!("\"ask-{}\"", text(id));
        self.send(rpc::request(&ask_id, method, params.as_deref().map(str::as_bytes)));
        let is_silent_then = arguments["then"] == "never";
        if arguments["cancel"] == true {
            let params = format!(r#"{{"requestId":{ask_id}}}"#);
            self.send(rpc::notification("notifications/cancelled", Some(params.as_bytes())));
            if !is_silent_then {
                self.echo(id, "{}", "null");
            }
            return;
        }
        let answered = answered.await;
        if answers_first {
            let outcome = match answered {
                Ok(Outcome::Result(raw) | Outcome::Error(raw)) => text(&raw),
                Err(_) => "nothing".into(),
            };
            return self.note(&format!("answer {outcome}"), None);
        }
        if is_silent_then {
            return;
        }
        match answered {
            Ok(Outcome::Result(raw)) => self.echo(id, &text(&raw), "null"),
            Ok(Outcome::Error(raw)) => {
                self.echo(id, &format!(r#"{{"refused":{}}}"#, text(&raw)), "null");
            }
            Err(_) => self.error(id, Code::INTERNAL, "no answer"),
        }
    }

    /// Says which process it is, how it was started, and what its environment says to `FAKE_KEY`.
    fn tell_of_itself(&self, id: &Raw) {
        let arguments: Vec<_> = std::env::args().skip(1).collect();
        let key = std::env::var("FAKE_KEY").ok();
        let told = json!({"pid": std::process::id(), "arguments": arguments, "key": key});
        self.result(id, &json!({"content": [], "structuredContent": told}));
    }

    /// Starts descendants of every kind that is hard to get rid of; gives their process ids.
    fn breed(&self, id: &Raw) {
        let script = "sleep 600 & echo $!; \
            setsid sh -c 'trap \"\" TERM HUP INT; echo $$; exec sleep 600' & \
            (setsid sh -c 'sleep 600 & echo $!; exec sleep 600' &)";
        let server = self.clone();
        let id = id.clone();
        // The descendants keep the pipe, so it is read only until the shell has ended.
        std::thread::spawn(move || {
            let path = std::env::temp_dir().join(format!("breed-{}", std::process::id()));
            let file = std::fs::File::create(&path).unwrap();
            let status =
                std::process::Command::new("sh").arg("-c").arg(script).stdout(file).status();
            assert!(status.is_ok());
            let mut pids = String::new();
            while pids.lines().count() < 3 {
                std::thread::sleep(Duration::from_millis(5));
                pids = std::fs::read_to_string(&path).unwrap();
            }
            _ = std::fs::remove_file(&path);
            let pids: Vec<u32> = pids.lines().map(|pid| pid.trim().parse().unwrap()).collect();
            server.result(&id, &json!({"content": [], "structuredContent": {"pids": pids}}));
        });
    }
}

fn text(raw: &Raw) -> String {
    String::from_utf8_lossy(raw.as_bytes()).into_owned()
}
