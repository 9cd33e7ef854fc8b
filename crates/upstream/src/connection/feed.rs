//! The stream on which a legacy server speaks by itself, beside the answers to calls.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::sleep;

use super::{Connection, Loss, Wire};
use crate::limits::{LINE_BYTES_MAX, REOPEN_DELAY_MAX, REOPEN_DELAY_MIN};
use crate::sse::{Decoder, Event};
use crate::web::Body;

impl Connection {
    /// Follows the stream for as long as the server offers one, opening it again where it ends.
    pub async fn follow_feed(&self) {
        let Wire::Posts(http) = &self.0.wire else { return };
        let mut decoder = Decoder::new(LINE_BYTES_MAX);
        let mut attempts = 0;
        let mut was_open = false;
        loop {
            match http.get(decoder.last_id()).await {
                Err(failure) => _ = self.failed(failure),
                Ok(response) if response.status == StatusCode::OK => {
                    if !response.is_event_stream {
                        return;
                    }
                    was_open = true;
                    decoder.resume();
                    if self.hear_out(response.body, &mut decoder).await {
                        attempts = 0;
                    }
                }
                Ok(response) => match response.status {
                    // A server that has never offered one may say so in this way, too.
                    StatusCode::NOT_FOUND if was_open && http.terms().has_session => {
                        return self.lose(Loss::Session);
                    }
                    status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                    }
                    // It offers none.
                    _ => return,
                },
            }
            sleep(pause(decoder.retry(), attempts)).await;
            attempts += 1;
        }
    }

    /// Takes what comes until the stream ends; whether anything came.
    async fn hear_out(&self, mut body: Body, decoder: &mut Decoder) -> bool {
        let mut has_come = false;
        while let Ok(Some(chunk)) = body.next().await {
            has_come = true;
            decoder.push(&chunk);
            while let Some(event) = decoder.next_event() {
                match event {
                    Event::Message { data, .. } => self.receive(&data),
                    Event::TooLarge { head } => self.receive_oversized(&head, b""),
                }
            }
        }
        has_come
    }
}

/// How long to wait before a stream is opened again: longer each time, and at least as long as
/// the server says.
pub(crate) fn pause(asked: Option<Duration>, attempts: u32) -> Duration {
    let doubled = REOPEN_DELAY_MIN.saturating_mul(1 << attempts.min(5));
    jittered(asked.unwrap_or_default().max(doubled).min(REOPEN_DELAY_MAX))
}

/// Up to a quarter more, by chance, so that many do not come back at the same moment.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let chance = RandomState::new().build_hasher().finish().to_le_bytes()[0];
    pause + pause.mul_f64(f64::from(chance) / 1024.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause;
    use crate::limits::{REOPEN_DELAY_MAX, REOPEN_DELAY_MIN};

    #[track_caller]
    fn check(asked: Option<Duration>, attempts: u32, expected: Duration) {
        let pause = pause(asked, attempts);
        assert!(pause >= expected && pause <= expected * 5 / 4, "{pause:?}");
    }

    #[test]
    fn server_can_lengthen_the_pause_but_not_abolish_it() {
        for asked in [None, Some(Duration::ZERO)] {
            check(asked, 0, REOPEN_DELAY_MIN);
            check(asked, 2, REOPEN_DELAY_MIN * 4);
            check(asked, 40, REOPEN_DELAY_MAX);
        }
        check(Some(REOPEN_DELAY_MIN * 3), 0, REOPEN_DELAY_MIN * 3);
        check(Some(REOPEN_DELAY_MIN * 3), 2, REOPEN_DELAY_MIN * 4);
        check(Some(Duration::MAX), 0, REOPEN_DELAY_MAX);
    }
}
