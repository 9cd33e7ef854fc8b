//! Reads the message of a call as often as it is told to, and does nothing else: its instructions are counted.

use std::process::ExitCode;

use bytes::Bytes;
use mcp::params::Params;
use mcp::rpc::{self, Message};

const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{"name":"s0_echo","arguments":{"text":"what is \"said\"","number":17,"list":[1,2.5,null],"flag":true},"_meta":{"progressToken":7}}}"#;

fn main() -> ExitCode {
    let times = std::env::args().nth(1).and_then(|times| times.parse().ok()).unwrap_or(1_u64);
    let frame = Bytes::from_static(CALL);
    let reads_it = (0..times).all(|_| {
        let Ok(Message::Request { params, .. }) = rpc::parse(&frame) else { return false };
        Params::parse(params.as_ref(), "name").is_ok_and(|params| params.name() == "s0_echo")
    });
    if reads_it { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
