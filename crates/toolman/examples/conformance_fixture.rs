//! The server of the conformance suite as a process; see the crate `fixture`.
//!
//! `conformance_fixture [--port N | --stdio] [--era both|legacy|modern]`

#![expect(clippy::print_stderr, reason = "a fixture may talk")]

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match fixture::run(std::env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}
