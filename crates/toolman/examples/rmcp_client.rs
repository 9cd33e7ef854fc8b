//! Drives toolman with the official Rust SDK: `rmcp_client TOOLMAN DIRECTORY [MODE]` over stdio,
//! `rmcp_client URL TOKEN [MODE]` over HTTP.
//!
//! MODE is `legacy` (the default), `modern`, or `auto`. The walk is that of
//! `peers/clients/scenario.py`. The last line on stdout is `ok`, or the exit code is 1.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the test reads what it prints")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rmcp::model::{
    CallToolRequestParams, ContentBlock, GetPromptRequestParams, JsonObject, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext,
    RunningService,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);

/// A confirmation is a sentence, not a page: a model reads it on every activation.
const CONFIRMATION_LENGTH_MAX: usize = 300;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match timeout(DEADLINE, Box::pin(drive(&arguments))).await {
        Ok(done) => done,
        Err(_) => Err(anyhow::anyhow!("not done after {DEADLINE:?}")),
    };
    match done {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("failed at the step: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

async fn drive(arguments: &[String]) -> anyhow::Result<()> {
    let [first, second, mode @ ..] = arguments else {
        bail!("usage: rmcp_client TOOLMAN DIRECTORY | URL TOKEN [legacy|modern|auto]");
    };
    let mode = mode.first().map_or("legacy", String::as_str);
    let (changed, changes) = watch::channel(0);
    let changed = Arc::new(changed);
    let client = connect(first, second, mode, Changes(Arc::clone(&changed))).await;
    let client = client.context("connect")?;
    let version = client.peer_info().map(|info| info.protocol_version.clone());
    let version = version.context("the server said which revision it speaks")?;
    let is_modern = version == ProtocolVersion::V_2026_07_28;
    let is_expected = if mode == "legacy" {
        version == ProtocolVersion::V_2025_11_25
    } else {
        is_modern || mode == "auto"
    };
    ensure!(is_expected, "the newest revision of the era is spoken; saw: {version}");
    if is_modern {
        listen(&client, changed).await.context("listen for changed lists")?;
    }
    let mut walk = Walk { client, changes };
    walk.started().await.context("wait for the servers")?;
    walk.activate().await.context("activate a tool")?;
    walk.use_items().await.context("use items")?;
    walk.err().await.context("call what cannot be called")?;
    walk.crash().await.context("call a tool that kills its server")?;
    walk.client.cancel().await.context("close")?;
    Ok(())
}

type Client = RunningService<RoleClient, Changes>;

async fn connect(
    first: &str,
    second: &str,
    mode: &str,
    changes: Changes,
) -> Result<Client, anyhow::Error> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match mode {
        "legacy" => ClientLifecycleMode::Initialize,
        "modern" => ClientLifecycleMode::Discover { preferred_versions },
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        unknown => bail!("no mode is named `{unknown}`"),
    };
    let connected: Result<Client, ClientInitializeError> = if first.starts_with("http://") {
        let config = StreamableHttpClientTransportConfig::with_uri(first).auth_header(second);
        let transport = StreamableHttpClientTransport::from_config(config);
        changes.serve_with_lifecycle(transport, mode).await
    } else {
        let mut command = Command::new(std::path::absolute(first)?);
        command.current_dir(second);
        changes.serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await
    };
    Ok(connected?)
}

/// Counts the changes of the list of tools, so that a step can wait for the next one.
struct Changes(Arc<watch::Sender<u64>>);

impl ClientHandler for Changes {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// A modern client hears of changes on a stream that it asked for.
async fn listen(client: &Client, changed: Arc<watch::Sender<u64>>) -> anyhow::Result<()> {
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(wanted).await?;
    tokio::spawn(async move {
        while let Ok(Some(_)) = subscription.next().await {
            changed.send_modify(|count| *count += 1);
        }
    });
    Ok(())
}

/// What a call gave: a result, or an error of JSON-RPC.
#[derive(Debug)]
struct Answer {
    is_error: bool,
    is_rpc_error: bool,
    texts: Vec<String>,
}

struct Walk {
    client: Client,
    changes: watch::Receiver<u64>,
}

impl Walk {
    /// Waits until every server that the walk needs is in the catalog; a slow one joins late.
    async fn started(&mut self) -> anyhow::Result<()> {
        let needed = ["every_echo", "time_get_current_time", "sqlite_list_tables", "crash_die"];
        loop {
            let seen = self.seen();
            let tools = self.client.list_all_tools().await?;
            let catalog = tools.first().and_then(|tool| tool.description.clone());
            let catalog = catalog.context("the first tool describes the catalog")?;
            if needed.iter().all(|name| catalog.contains(name)) {
                break;
            }
            self.after(seen).await?;
        }
        let names = self.tool_names().await?;
        let is_listed = |name: &str| names.iter().any(|listed| listed == name);
        ensure!(is_listed("every_echo"), "an active tool is listed; saw: {names:?}");
        ensure!(is_listed("toolman_activate"), "`toolman_activate` is listed; saw: {names:?}");
        ensure!(!is_listed("time_get_current_time"), "an inactive tool is not; saw: {names:?}");
        Ok(())
    }

    async fn activate(&mut self) -> anyhow::Result<()> {
        let seen = self.seen();
        let lists = json!({"tools_on": ["time_get_current_time"], "tools_off": [],
            "resources_on": [], "resources_off": []});
        let answer = self.call("toolman_activate", lists).await;
        let [confirmation, definition] = answer.texts.as_slice() else {
            bail!("activation answers with two blocks; saw: {answer:?}");
        };
        ensure!(!answer.is_error, "activation succeeds; saw: {answer:?}");
        ensure!(confirmation.len() <= CONFIRMATION_LENGTH_MAX, "it is short: {confirmation}");
        for word in ["time_get_current_time", "inputSchema", "timezone"] {
            ensure!(definition.contains(word), "the definition has `{word}`; saw: {definition}");
        }
        self.after(seen).await?;
        let names = self.tool_names().await?;
        let is_listed = names.iter().any(|name| name == "time_get_current_time");
        ensure!(is_listed, "an activated tool is listed; saw: {names:?}");
        let answer = self.call("time_get_current_time", json!({"timezone": "UTC"})).await;
        ensure!(!answer.is_error, "an activated tool can be called; saw: {answer:?}");
        Ok(())
    }

    async fn use_items(&mut self) -> anyhow::Result<()> {
        self.echo().await?;
        let uri = "every_demo://resource/static/document/architecture.md";
        let resources = self.client.list_all_resources().await?;
        ensure!(resources.iter().any(|resource| resource.uri == uri), "`{uri}` is listed");
        let read = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        let Some(ResourceContents::TextResourceContents { text, .. }) = read.contents.first()
        else {
            bail!("the resource is a text; saw: {read:?}");
        };
        ensure!(text.contains("Everything Server"), "the document is that of the server: {text}");
        let prompts = self.client.list_all_prompts().await?;
        for name in ["every_simple-prompt", "sqlite_mcp-demo"] {
            ensure!(prompts.iter().any(|prompt| prompt.name == name), "`{name}` is listed");
        }
        let asked = GetPromptRequestParams::new("every_args-prompt")
            .with_arguments(object(json!({"city": "Bonn"})));
        let prompt = self.client.get_prompt(asked).await?;
        let prompt = serde_json::to_string(&prompt)?;
        ensure!(prompt.contains("Bonn"), "the argument of a prompt arrives; saw: {prompt}");
        Ok(())
    }

    async fn err(&mut self) -> anyhow::Result<()> {
        let calls = [("time_convert_time", "toolman_activate"), ("every_ecko", "every_echo")];
        for (name, hint) in calls {
            let answer = self.call(name, json!({})).await;
            ensure!(answer.is_error && !answer.is_rpc_error, "it is a result; saw: {answer:?}");
            ensure!(answer.texts.concat().contains(hint), "it says `{hint}`; saw: {answer:?}");
        }
        Ok(())
    }

    async fn crash(&mut self) -> anyhow::Result<()> {
        let seen = self.seen();
        let answer = self.call("crash_die", json!({})).await;
        ensure!(answer.is_error, "a call that kills its server is an error; saw: {answer:?}");
        self.after(seen).await?;
        loop {
            let seen = self.seen();
            if !self.tool_names().await?.iter().any(|name| name.starts_with("crash_")) {
                return self.echo().await;
            }
            self.after(seen).await?;
        }
    }

    async fn echo(&self) -> anyhow::Result<()> {
        let answer = self.call("every_echo", json!({"message": "hi"})).await;
        ensure!(!answer.is_error, "`every_echo` answers; saw: {answer:?}");
        ensure!(answer.texts == ["Echo: hi"], "it is relayed as it is; saw: {answer:?}");
        Ok(())
    }

    async fn tool_names(&self) -> anyhow::Result<Vec<String>> {
        let tools = self.client.list_all_tools().await?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    async fn call(&self, name: &str, arguments: Value) -> Answer {
        let asked = CallToolRequestParams::new(name.to_owned()).with_arguments(object(arguments));
        match self.client.call_tool(asked).await {
            Ok(result) => {
                let text = |block: &ContentBlock| Some(block.as_text()?.text.clone());
                let texts = result.content.iter().filter_map(text).collect();
                Answer { is_error: result.is_error == Some(true), is_rpc_error: false, texts }
            }
            Err(problem) => {
                Answer { is_error: true, is_rpc_error: true, texts: vec![problem.to_string()] }
            }
        }
    }

    fn seen(&self) -> u64 {
        *self.changes.borrow()
    }

    async fn after(&mut self, seen: u64) -> anyhow::Result<()> {
        self.changes.wait_for(|count| *count > seen).await?;
        Ok(())
    }
}

fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else {
        unreachable!("arguments are objects");
    };
    object
}
