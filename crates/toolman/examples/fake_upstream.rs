//! The fake upstream of the tests as a process: `fake_upstream [option]… [tool]…`.
//!
//! Options: `--crash`, `--crash-if FILE`, `--gate FILE`, `--sulk FILE`, `--hang`, `--delay MS`, `--page N`, `--mark FILE`, `--noise LINES`
//! (on stderr), `--ignore-eof`, `--cling` (a
//! grandchild keeps the pipes), `--resource URI`, `--template URI`, `--prompt NAME`,
//! `--tools FILE` (definitions as a JSON list).

#![expect(clippy::print_stderr, reason = "a fake may talk")]

use std::time::Duration;

use testkit::fake::{self, Script};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut script = Script::default();
    let mut ignores_eof = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("the option has a value");
        match argument.as_str() {
            "--crash" => {
                eprintln!("crashing as told");
                std::process::exit(1);
            }
            "--crash-if" => {
                if std::path::Path::new(&value()).exists() {
                    eprintln!("crashing as told");
                    std::process::exit(1);
                }
            }
            "--gate" => script.gate = Some(value().into()),
            "--sulk" => script.sulk = Some(value().into()),
            "--hang" => script.hangs = true,
            "--delay" => script.delay = Duration::from_millis(value().parse().expect("a number")),
            "--page" => script.page = Some(value().parse().expect("a number")),
            "--mark" => script.mark = Some(value().into()),
            "--noise" => eprint!("{}", "noise\n".repeat(value().parse().expect("a number"))),
            "--ignore-eof" => ignores_eof = true,
            "--cling" => cling(),
            "--resource" => script.resources.push(fake::resource(&value())),
            "--template" => script.templates.push(fake::template(&value())),
            "--tools" => {
                let text = std::fs::read_to_string(value()).expect("a file of definitions");
                script.tools.extend(serde_json::from_str::<Vec<_>>(&text).expect("a list"));
            }
            "--prompt" => script.prompts.push(fake::prompt(&value())),
            tool => script.tools.push(fake::tool(tool)),
        }
    }
    fake::serve(script, tokio::io::stdin(), tokio::io::stdout()).await;
    if ignores_eof {
        std::future::pending::<()>().await;
    }
}

/// Leaves the pipes in the hands of a grandchild in a session of its own.
#[expect(clippy::disallowed_methods, reason = "a fake that misbehaves")]
fn cling() {
    let mut command = std::process::Command::new("setsid");
    drop(command.args(["sleep", "600"]).spawn());
}
