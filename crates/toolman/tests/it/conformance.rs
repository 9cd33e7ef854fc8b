//! The official conformance suite: what the fixture can do directly, it can do through us.

use std::process::Stdio;

use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::conformance::{self, Fixture, Run, Status};
use testkit::forwarder::Forwarder;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::TOOLMAN;

const TOKEN: &str = "the-token-of-the-conformance-tests";

/// `toolman serve` before the fixture, reachable without a token.
struct Served {
    url: String,
    _forwarder: Forwarder,
    _child: Child,
    _folder: Folder,
}

impl Served {
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    async fn start(tools_toml: &str) -> Served {
        let folder = Folder::new(TOOLMAN).with_tools_toml(tools_toml);
        let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("BEARER_TOKEN", TOKEN).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // It is printed when every server has answered.
        let banner = timeout(PATIENCE, lines.next_line()).await.expect("it starts").unwrap();
        let banner = banner.expect("it says where it serves");
        let address = banner.split("http://").nth(1).unwrap().trim_end_matches("/mcp");
        // The suite cannot send a token.
        let forwarder = Forwarder::start(address, TOKEN).await;
        let url = format!("http://{}/mcp", forwarder.address);
        Served { url, _forwarder: forwarder, _child: child, _folder: folder }
    }
}

/// What the fixture can do by itself; the suite is asked once.
async fn direct(revision: &'static str) -> &'static Run {
    static LEGACY: OnceCell<Run> = OnceCell::const_new();
    static MODERN: OnceCell<Run> = OnceCell::const_new();
    let run = if revision == "2026-07-28" { &MODERN } else { &LEGACY };
    let suite = async || {
        let fixture = Fixture::start(TOOLMAN, "both").await;
        conformance::run(&fixture.url, revision).await
    };
    run.get_or_init(suite).await
}

#[track_caller]
fn assert_nothing_is_lost(direct: &Run, through: &Run) {
    let lost = direct.checks.lost_in(&through.checks);
    assert!(lost.is_empty(), "{} checks are lost:\n{}", lost.len(), lost.join("\n"));
    assert!(through.exit.success(), "{}", through.output);
}

#[tokio::test]
async fn fixture_passes_the_required_sets() {
    let _alone = crate::MACHINE.write().await;
    for (revision, scenarios) in [("2025-11-25", 33), ("2026-07-28", 50)] {
        let run = direct(revision).await;
        assert!(run.exit.success(), "{}", run.output);
        // Those that are not scored as well: the gateway is held to them.
        assert_eq!(run.checks.not_passed(), Vec::<String>::new(), "{}", run.output);
        assert_eq!(run.checks.scenarios(), scenarios, "{}", run.output);
        assert!(run.checks.count(Status::Success) > scenarios);
    }
}

#[tokio::test]
async fn forwarder_that_adds_the_token_loses_no_check() {
    let _alone = crate::MACHINE.write().await;
    let fixture = Fixture::start(TOOLMAN, "both").await;
    let address = fixture.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let forwarder = Forwarder::start(address, TOKEN).await;
    let url = format!("http://{}/mcp", forwarder.address);
    let revision = "2025-11-25";
    assert_nothing_is_lost(direct(revision).await, &conformance::run(&url, revision).await);
}

/// The upstream speaks one era only, so that it is sure which one the gateway uses.
async fn hold_the_gateway_to(era: &str, revision: &'static str) {
    let _alone = crate::MACHINE.write().await;
    let fixture = Fixture::start(TOOLMAN, era).await;
    let server = format!("[[servers]]\nurl = \"{}\"\nera = \"{era}\"\n", fixture.url);
    let served = Served::start(&format!("surface = \"filter\"\n{server}")).await;
    assert_nothing_is_lost(direct(revision).await, &conformance::run(&served.url, revision).await);
}

#[tokio::test]
#[ignore = "the gateway does not pass on `resources/subscribe` yet"]
async fn every_check_passes_through_the_gateway_to_a_fixture_over_stdio() {
    let _alone = crate::MACHINE.write().await;
    let command = format!("{} --stdio --era legacy", Fixture::program(TOOLMAN).display());
    let server = format!("[[servers]]\nnamespace = \"\"\ncommand = \"{command}\"\n");
    let served = Served::start(&format!("active_toolsets = [\"*\"]\n{server}")).await;
    let revision = "2025-11-25";
    assert_nothing_is_lost(direct(revision).await, &conformance::run(&served.url, revision).await);
}

#[tokio::test]
#[ignore = "the gateway has no HTTP upstreams yet"]
async fn every_check_passes_through_the_gateway_2025_11_25() {
    hold_the_gateway_to("legacy", "2025-11-25").await;
}

#[tokio::test]
#[ignore = "the gateway has no HTTP upstreams and no modern era yet"]
async fn every_check_passes_through_the_gateway_2026_07_28() {
    hold_the_gateway_to("modern", "2026-07-28").await;
}
