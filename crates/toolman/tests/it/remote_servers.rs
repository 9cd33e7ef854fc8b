//! Servers given by `url`, through the real binary: credentials, reports, errors.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::fake::Script;
use testkit::web::{Dialect, Manners, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::TOOLMAN;
use crate::http_limits::{Service, TOKEN};
use crate::http_settings::certify;
use crate::up::Up;

const SECRET: &str = "correct-horse-battery";

async fn site(dialect: Dialect) -> Site {
    Site::start(Manners::new(dialect, Script::with_tools(["echo", "bad name"]))).await
}

fn folder(site: &Site) -> Folder {
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nname = \"far\"\nurl = \"{}?key={SECRET}\"\n\
         headers = {{ Authorization = \"Bearer ${{FAR_TOKEN}}\", X-Team = \"tools\" }}\n",
        site.url()
    );
    Folder::new(TOOLMAN).with_tools_toml(&text)
}

#[tokio::test]
async fn remote_server_gets_its_own_credentials_and_never_a_clients() {
    let site = site(Dialect::Legacy).await;
    let folder = folder(&site);
    let mut up = Up::start_with(&folder, &[("FAR_TOKEN", SECRET)]).await;
    up.initialize().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"x": 1}}});
    let more = [("Cookie", "a=b"), ("X-Forwarded-For", "1.2.3.4"), ("X-Client", "secret")];
    let answer = up.send("POST", &more, &call.to_string()).await;
    assert!(answer.body.contains(r#"{"x":1}"#), "{answer:?}");
    let seen = site.seen("tools/call").remove(0);
    let own = format!("Bearer {SECRET}");
    assert_eq!(seen.header("authorization"), Some(own.as_str()));
    assert_eq!(seen.header("x-team"), Some("tools"));
    for name in ["cookie", "x-forwarded-for", "x-client", "origin"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn report_shows_a_remote_server_like_any_other_and_no_secret() {
    for (dialect, revision) in [(Dialect::Legacy, "2025-11-25"), (Dialect::Modern, "2026-07-28")] {
        let site = site(dialect).await;
        let folder = folder(&site);
        let mut command = folder.command(&["check", "--json"]);
        command.env("FAR_TOKEN", SECRET).env("TOOLMAN_LOG", "trace");
        let output = command.output().await.unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let server = &report["servers"][0];
        assert_eq!((&server["name"], &server["state"]), (&json!("far"), &json!("ready")));
        assert_eq!((&server["revision"], &server["tools"]), (&json!(revision), &json!(1)));
        assert_eq!(report["withheld"][0], "tool `bad name` of `far`: its name holds ` `");
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}

#[tokio::test]
async fn problems_of_a_remote_server_say_what_to_do() {
    let site = site(Dialect::Legacy).await;
    site.refuse_all(Some(401));
    let output = folder(&site).command(&["check"]).env("FAR_TOKEN", SECRET).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "server `far` can't be used: it answered `initialize` with HTTP status 401: \
                    go away; see whether `headers` hold the right credentials";
    assert!(text.contains(expected), "{text}");
    assert!(!output.status.success());
    site.stop();
    let output = folder(&site).command(&["check"]).env("FAR_TOKEN", SECRET).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("server `far` can't be reached: "), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}

#[tokio::test]
async fn server_whose_http_can_be_read_in_two_ways_is_not_used() {
    for (fields, fault) in [
        ("content-length: 2\r\ncontent-length: 3\r\n", "it has several lengths"),
        ("content-length: -2\r\n", "its `Content-Length` is no number"),
        (
            "content-length: 2\r\ntransfer-encoding: chunked\r\n",
            "it has both `Content-Length` and `Transfer-Encoding`",
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{{}}\r\n");
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // A head that is not read whole would reset the connection.
                _ = stream.read(&mut [0; 8192]).await;
                _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let text = format!("[[servers]]\nname = \"far\"\nurl = \"{url}\"\n");
        let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
        let output = folder.command(&["check"]).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&format!("sent a reply that is not valid HTTP: {fault}")), "{text}");
        assert!(!output.status.success());
        serving.abort();
    }
}

#[tokio::test]
async fn gateway_reaches_another_gateway_over_tls() {
    let far = crate::folder("surface = \"filter\"", &[("a", "echo")]);
    certify(far.path(), "own");
    let flags = ["--tls-cert", "own.pem", "--tls-key", "own.key"];
    let service = Service::start(&far, &flags).await;
    let port = service.address.rsplit(':').next().unwrap();
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nurl = \"https://localhost:{port}/mcp\"\n\
         headers = {{ Authorization = \"Bearer {TOKEN}\" }}\n"
    );
    let near = Folder::new(TOOLMAN).with_tools_toml(&text);
    for (trusted, code, words) in
        [("own.pem", Some(0), "all is well"), ("own.key", Some(1), "can't be reached")]
    {
        let mut check = near.command(&["check"]);
        check.env("SSL_CERT_FILE", far.path().join(trusted));
        let output = check.stdin(std::process::Stdio::null()).output().await.unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), code, "{stdout}");
        assert!(stdout.contains(words), "{stdout}");
    }
}

#[tokio::test]
async fn gateway_reaches_another_gateway() {
    let site = site(Dialect::Modern).await;
    let far = folder(&site);
    let up = Up::start_with(&far, &[("FAR_TOKEN", SECRET)]).await;
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"b\"\nurl = \"http://{}/mcp\"\n\
         headers = {{ Authorization = \"Bearer {}\" }}\n",
        up.address, up.token
    );
    let near = Folder::new(TOOLMAN).with_tools_toml(&text);
    let mut toolman = near.start().await;
    assert_eq!(toolman.client.tool_names().await, ["b_echo"]);
}
