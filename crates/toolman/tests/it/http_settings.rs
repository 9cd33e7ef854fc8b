//! What an operator can choose for the HTTP door: TLS, origins, hosts, versions, metrics.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Request, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::http_limits::{Service, TOKEN, hello};
use crate::up::{Up, call};
use crate::{fake, folder};

/// Writes a certificate for `localhost` and its key.
pub fn certify(folder: &Path, name: &str) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
}

/// A TLS connection that trusts only this certificate.
async fn secure(address: &str, certificate: &Path, protocol: &[u8]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

fn initialize() -> Request<Full<Bytes>> {
    Request::post("https://localhost/mcp")
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::from(hello("2025-11-25")))
        .unwrap()
}

/// What `initialize` is answered over HTTP/2.
async fn greet_h2(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> String {
    let executor = TokioExecutor::new();
    let (mut sender, connection) = http2::handshake(executor, TokioIo::new(io)).await.unwrap();
    tokio::spawn(connection);
    let response = sender.send_request(initialize()).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_2));
    assert!(response.headers().contains_key("mcp-session-id"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn service_speaks_tls_and_both_versions_of_http() {
    let folder = folder("", &[("a", "echo")]);
    certify(folder.path(), "own");
    let service = Service::start(&folder, &["--tls-cert", "own.pem", "--tls-key", "own.key"]).await;
    assert!(service.url.starts_with("https://127.0.0.1:"), "{}", service.url);
    // One that never says a word does not keep the others waiting.
    let _silent = TcpStream::connect(&service.address).await.unwrap();
    let certificate = folder.path().join("own.pem");
    let stream = secure(&service.address, &certificate, b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    assert!(greet_h2(stream).await.contains("2025-11-25"));

    let stream = secure(&service.address, &certificate, b"http/1.1").await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = initialize();
    request.headers_mut().insert("host", "localhost".parse().unwrap());
    *request.uri_mut() = "/mcp".parse().unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::OK, Version::HTTP_11));

    // Who speaks plainly here is not answered.
    let mut plain = TcpStream::connect(&service.address).await.unwrap();
    let head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut plain, head).await.unwrap();
    let mut answer = Vec::new();
    _ = timeout(PATIENCE, plain.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP"));
}

#[tokio::test]
async fn plain_service_takes_http2_from_who_begins_with_it() {
    let folder = folder("", &[("a", "echo")]);
    let service = Service::start(&folder, &[]).await;
    assert!(service.url.starts_with("http://"), "{}", service.url);
    let stream = TcpStream::connect(&service.address).await.unwrap();
    assert!(greet_h2(stream).await.contains("2025-11-25"));
}

#[tokio::test]
async fn certificates_of_no_use_are_explained() {
    let folder = folder("", &[("a", "echo")]);
    certify(folder.path(), "own");
    certify(folder.path(), "other");
    std::fs::write(folder.path().join("empty.pem"), "nothing\n").unwrap();
    for (certificate, key, words) in [
        ("none.pem", "own.key", "can't read the certificate `none.pem`: No such file"),
        ("own.pem", "none.key", "can't read the key `none.key`: No such file"),
        ("empty.pem", "own.key", "there is no certificate in `empty.pem`; it must be PEM"),
        ("own.pem", "own.pem", "there is no key in `own.pem`; it must be PEM"),
        ("own.pem", "other.key", "`other.key` does not belong to the certificate in `own.pem`"),
    ] {
        let run = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        let output = folder.run(&run).await;
        assert_eq!(output.status.code(), Some(2), "{words}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
    let output = folder.run(&["serve", "--tls-cert", "own.pem"]).await;
    assert_eq!(output.status.code(), Some(2), "a key is needed, too");
}

fn folder_with_http(section: &str) -> Folder {
    let command = fake("echo");
    let text = format!(
        "active_toolsets = [\"*\"]\n[http]\n{section}\n\
         [[servers]]\nnamespace = \"a\"\ncommand = \"{command}\"\n"
    );
    Folder::new(crate::TOOLMAN).with_tools_toml(&text)
}

#[tokio::test]
async fn pages_of_named_origins_may_use_the_door_and_no_others() {
    // H05
    let folder = folder_with_http("allowed_origins = [\"https://app.example\"]");
    let service = Service::start(&folder, &[]).await;
    let (own, foreign) = (("Origin", "https://app.example"), ("Origin", "https://evil.example"));
    let asks = ("Access-Control-Request-Method", "POST");
    for path in ["/mcp", "/health", "/sse", "/metrics", "/tools"] {
        let answer = send(&service.address, "OPTIONS", path, &[own, asks], "").await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(own.1));
        assert!(answer.header("vary").unwrap().contains("Origin"));
        assert!(answer.header("access-control-allow-methods").unwrap().contains("DELETE"));
        let allowed = answer.header("access-control-allow-headers").unwrap();
        for header in ["Authorization", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID"] {
            assert!(allowed.contains(header), "{allowed}");
        }
        let answer = send(&service.address, "OPTIONS", path, &[foreign, asks], "").await;
        assert_eq!(answer.status, 403, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(send(&service.address, "POST", path, &[foreign], "").await.status, 403);
    }
    let answer = service.send("/mcp", &[own], &hello("2025-11-25")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some(own.1));
    let exposed = answer.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("Mcp-Session-Id") && exposed.contains("WWW-Authenticate"));
    let stranger = send(&service.address, "POST", "/mcp", &[own], "").await;
    assert_eq!(stranger.status, 401, "the token is needed all the same");
    assert_eq!(stranger.header("access-control-allow-origin"), Some(own.1));
    let rebound = [own, asks, ("Host", "evil.example")];
    assert_eq!(send(&service.address, "OPTIONS", "/mcp", &rebound, "").await.status, 403);
}

#[tokio::test]
async fn nothing_is_said_of_origins_where_none_is_named() {
    let folder = folder("", &[("a", "echo")]);
    let service = Service::start(&folder, &[]).await;
    let origin = ("Origin", "http://localhost:3000");
    let answer = service.send("/mcp", &[origin], &hello("2025-11-25")).await;
    assert_eq!(answer.status, 200);
    for header in ["access-control-allow-origin", "access-control-expose-headers", "vary"] {
        assert_eq!(answer.header(header), None);
    }
}

#[tokio::test]
async fn only_named_hosts_are_served() {
    // H07
    let folder = folder_with_http("allowed_hosts = [\"gateway.example:8000\", \"any.example\"]");
    let service = Service::start(&folder, &[]).await;
    for (host, status) in [
        ("gateway.example:8000", 200),
        ("Gateway.Example:8000", 200),
        ("gateway.example:9000", 403),
        ("any.example:1", 200),
        ("localhost", 200),
        ("evil.example", 403),
    ] {
        let answer = send(&service.address, "GET", "/health", &[("Host", host)], "").await;
        assert_eq!(answer.status, status, "{host}");
    }
}

#[tokio::test]
async fn section_of_the_file_opens_the_door_unless_flags_and_environment_say_otherwise() {
    let folder = folder_with_http(
        "listen = \"127.0.0.1:0\"\ntoken = \"${SOME_TOKEN}\"\nlegacy_sse = false\n\
         tls_cert = \"own.pem\"\ntls_key = \"own.key\"",
    );
    certify(folder.path(), "own");
    let mut command = folder.command(&["serve"]);
    command.env("SOME_TOKEN", TOKEN);
    let service = Service::run(command).await;
    assert!(service.url.starts_with("https://127.0.0.1:"), "{}", service.url);
    assert!(!service.url.contains(":8000"), "{}", service.url);
    let stream = secure(&service.address, &folder.path().join("own.pem"), b"h2").await;
    greet_h2(stream).await;

    let folder = folder_with_http("token = \"the-token-of-the-file\"\nlegacy_sse = false");
    let sse = [("Accept", "application/json")];
    let service = Service::start(&folder, &[]).await;
    assert_eq!(service.send("/sse", &sse, "").await.status, 404, "BEARER_TOKEN wins");
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BEARER_TOKEN", TOKEN).env("ENABLE_LEGACY_MCP", "true");
    let service = Service::run(command).await;
    assert_eq!(service.send("/sse", &sse, "").await.status, 406, "the environment wins");
}

#[tokio::test]
async fn only_the_chosen_versions_are_spoken() {
    // TD-100
    let folder = folder_with_http("supported_versions = [\"2025-03-26\", \"2025-06-18\"]");
    let service = Service::start(&folder, &[]).await;
    for (asked, agreed) in
        [("2025-03-26", "2025-03-26"), ("2025-11-25", "2025-06-18"), ("1999", "2025-06-18")]
    {
        let answer = service.send("/mcp", &[], &hello(asked)).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], agreed, "{asked}");
    }
    let header = [("MCP-Protocol-Version", "2025-11-25")];
    let answer = service.send("/mcp", &header, &hello("2025-11-25")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("use 2025-03-26, 2025-06-18"), "{}", answer.body);
    let environment = [("MCP_SUPPORTED_VERSIONS", "2024-11-05, 2025-11-25")];
    let up = Up::start_with(&folder, &environment).await;
    let answer = up.send("POST", &[], &hello("2025-06-18")).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25", "the environment wins");
}

#[tokio::test]
async fn wrong_settings_are_refused_before_anything_starts() {
    // X01
    let file = folder_with_http("listen = \"8000\"\ntoken = \"change_me\"\nsesion_ttl = 1");
    let output = file.run(&["serve"]).await;
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    for words in [
        "tools.toml:3:10: `listen` is `8000`; write an address and a port",
        "tools.toml:4:9: `token` is too weak; use at least 16 visible ASCII characters",
        "tools.toml:5:1: unknown key `sesion_ttl` in `[http]`; did you mean `session_ttl`?",
    ] {
        assert!(stderr.contains(words), "{stderr}");
    }
    assert!(!stderr.contains("change_me"), "{stderr}");
    let folder = folder("", &[("a", "echo")]);
    for (variable, value, words) in [
        ("MCP_SESSION_TTL_HOURS", "soon", "MCP_SESSION_TTL_HOURS is `soon`; use hours"),
        ("MCP_SESSION_TTL_HOURS", "0", "MCP_SESSION_TTL_HOURS is `0`; use hours"),
        ("MCP_SUPPORTED_VERSIONS", "2025", "use some of 2024-11-05, 2025-03-26, 2025-06-18"),
        ("MCP_SUPPORTED_VERSIONS", ",", "MCP_SUPPORTED_VERSIONS is `,`; use some of"),
    ] {
        let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
        let output = command.env(variable, value).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{variable}={value}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[tokio::test]
async fn metrics_count_what_happens() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo error"), ("down", "--crash")]);
    let service = Service::start(&folder, &[]).await;
    let stranger = send(&service.address, "GET", "/metrics", &[], "").await;
    assert_eq!(stranger.status, 401);
    let session = service.session().await;
    let of_session = [("Mcp-Session-Id", session.as_str())];
    for (id, name) in [(1, "a_echo"), (2, "a_echo"), (3, "a_error")] {
        service.send("/mcp", &of_session, &call(id, name, json!({})).to_string()).await;
    }
    service.send("/mcp", &[("Accept", "text/html")], &hello("2025-11-25")).await;
    service.wait_for("toolman_connections", 1).await;
    service.wait_for("toolman_request_bytes", 0).await;
    let page = service.send("/metrics", &[], "").await;
    let content_type = page.header("content-type").unwrap();
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    for line in [
        "toolman_requests_total{door=\"http\",class=\"2xx\"} 5",
        "toolman_requests_total{door=\"http\",class=\"4xx\"} 1",
        "toolman_requests_total{door=\"probe\",class=\"4xx\"} 1",
        "toolman_refused_total{status=\"401\"} 1",
        "toolman_refused_total{status=\"406\"} 1",
        "toolman_sessions 1",
        "toolman_lost_notices_total 0",
        "toolman_upstream_up{upstream=\"a\"} 1",
        "toolman_upstream_up{upstream=\"down\"} 0",
        "toolman_upstream_restarts_total{upstream=\"down\"} 0",
        "toolman_upstream_unattributed_total{upstream=\"a\"} 0",
        "toolman_calls_total{upstream=\"a\",outcome=\"ok\"} 2",
        "toolman_calls_total{upstream=\"a\",outcome=\"error\"} 1",
        "toolman_calls_total{upstream=\"a\",outcome=\"timeout\"} 0",
        "toolman_call_seconds_bucket{upstream=\"a\",le=\"+Inf\"} 3",
        "toolman_call_seconds_bucket{upstream=\"a\",le=\"60.000\"} 3",
        "toolman_call_seconds_count{upstream=\"a\"} 3",
    ] {
        assert!(page.body.lines().any(|found| found == line), "{line} in\n{}", page.body);
    }
    for name in page.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = name.split(' ').next().unwrap();
        assert_eq!(page.body.matches(&format!("# TYPE {name} ")).count(), 1, "{name}");
    }
}

#[tokio::test]
async fn wrong_token_is_told_from_none_and_nobody_is_sent_to_log_in() {
    let service = Service::start(&folder_with_http(""), &[]).await;
    let ask = async |path: &str, token: Option<&str>| {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> =
            bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
        send(&service.address, "POST", path, &headers, "{}").await
    };
    let missing = ask("/mcp", None).await;
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some("Bearer")));
    assert!(missing.body.contains("send the token as `Authorization: Bearer …`"));
    let wrong = ask("/mcp", Some("a-token-of-somebody-else")).await;
    let challenge = r#"Bearer error="invalid_token""#;
    assert_eq!((wrong.status, wrong.header("www-authenticate")), (401, Some(challenge)));
    assert!(wrong.body.contains("the token is not known here"), "{}", wrong.body);
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/openid-configuration",
        "/register",
    ] {
        let answer = ask(path, None).await;
        assert_eq!((answer.status, answer.header("www-authenticate")), (404, None), "{path}");
        assert_eq!(ask(path, Some(TOKEN)).await.status, 404, "{path}");
    }
    assert_eq!(ask("/tools", None).await.status, 401);
}

#[tokio::test]
async fn all_faults_of_the_environment_are_told_in_one_go() {
    let folder = folder_with_http("");
    let mut command = folder.command(&["serve"]);
    command.envs([
        ("SECRETS_KEY", "short"),
        ("TOOLMAN_PORT", "door"),
        ("MCP_SESSION_TTL_HOURS", "721"),
        ("BEARER_TOKEN", "x"),
    ]);
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in [
        "the master key from SECRETS_KEY has fewer than 16 characters",
        "TOOLMAN_PORT is `door`; it must be a port",
        "MCP_SESSION_TTL_HOURS is `721`; use hours, more than 0 and at most 720",
        "BEARER_TOKEN is too weak",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn file_that_somebody_may_think_is_read_is_told() {
    let folder = folder_with_http("");
    std::fs::create_dir(folder.path().join("kept")).unwrap();
    std::fs::write(folder.path().join("kept/config.yaml"), "port: 1\n").unwrap();
    let output = folder.run(&["--data-dir", "kept", "check"]).await;
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("kept/config.yaml: is not read; settings are in `tools.toml`"), "{said}");
}
