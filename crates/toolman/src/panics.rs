//! Panics: told on stderr, as they are the only report of a crash that there is.

use std::backtrace::{Backtrace, BacktraceStatus};

use crate::terminal;

/// Has panics told without values: what one says may hold the text that it is about, and so that of a secret.
pub fn report() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        let shown = match backtrace.status() {
            BacktraceStatus::Captured => format!("\n{backtrace}"),
            _ => String::new(),
        };
        terminal::complain(&format!("toolman: a fault of our own: {panic}{shown}"));
    }));
}

#[cfg(test)]
mod tests;
