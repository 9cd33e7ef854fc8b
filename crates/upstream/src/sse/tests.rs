//! What a stream of bytes says, however it is cut.

use std::time::Duration;

use super::{Decoder, Event};

const BYTES_MAX: usize = 64;

fn render(event: &Event) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
    match event {
        Event::Message { name, data } if name == "message" => text(data),
        Event::Message { name, data } => format!("{}={}", text(name), text(data)),
        Event::TooLarge { head } => format!("too large: {}", text(&head[..head.len().min(10)])),
    }
}

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (String, Decoder) {
    let mut decoder = Decoder::new(BYTES_MAX);
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next_event() {
            events.push(render(&event));
        }
    }
    (events.join(" | "), decoder)
}

/// Checks the events of a text in one piece, byte by byte, and cut in two at every place.
#[track_caller]
fn check(text: &str, expected: &str) {
    let bytes = text.as_bytes();
    assert_eq!(decode([bytes]).0, expected);
    assert_eq!(decode(bytes.chunks(1)).0, expected, "byte by byte");
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(decode([first, second]).0, expected, "cut at {at}");
    }
}

#[test]
fn lines_end_in_any_of_three_ways() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["data: a", "", "event: endpoint", "data:/b", "", ""].join(end);
        // Whether an LF follows the last CR is not known, and does not matter.
        check(&text, "a | endpoint=/b");
    }
}

#[test]
fn data_lines_are_joined_and_one_blank_after_the_colon_is_dropped() {
    check("data: {\ndata:  \"a\"\ndata\ndata:}\n\n", "{\\n \\\"a\\\"\\n\\n}");
}

#[test]
fn comments_unknown_fields_and_events_without_data_say_nothing() {
    check(": keep-alive\n\nfoo: 1\nid: 7\ndata:\n\nevent: x\n\ndata: a\n\n", "a");
}

#[test]
fn byte_order_mark_is_no_part_of_the_first_field() {
    check("\u{feff}data: a\n\n", "a");
    check("data: \u{feff}a\n\n", "\\u{feff}a");
}

#[test]
fn unfinished_event_is_not_given() {
    check("data: a\n", "");
    check("data: a\n\ndata: b", "a");
}

#[test]
fn oversized_event_is_told_and_the_next_one_given() {
    let long = "x".repeat(BYTES_MAX + 1);
    check(&format!("data:{long}\n\ndata: a\n\n"), "too large: xxxxxxxxxx | a");
    let lines = "data:123456789\n".repeat(8);
    check(&format!("{lines}\ndata: a\n\n"), "too large: 123456789\\n | a");
    let fits = "x".repeat(BYTES_MAX);
    check(&format!("data: {fits}\n\n"), &fits);
}

#[test]
fn identifier_and_pause_outlast_their_event_and_the_stream() {
    let mut decoder = decode([&b"id: 7\nretry: 1500\ndata: a\n\ndata: cut of"[..]]).1;
    decoder.resume();
    decoder.push(b"data: b\n\n");
    assert_eq!(render(&decoder.next_event().unwrap()), "b");
    assert_eq!(decoder.last_id().unwrap(), "7");
    assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
    decoder.push(b"id: a\0b\nretry: soon\n\n");
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.last_id().unwrap(), "7");
    assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
    decoder.push(b"id\n\n");
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.last_id(), None);
}

#[test]
fn event_that_never_ends_is_told_of_when_it_is_over_the_bound() {
    let mut decoder = Decoder::new(16);
    decoder.push(b"data: 0123456789");
    assert_eq!(decoder.next_event(), None);
    decoder.push(b"0123456789");
    assert!(matches!(decoder.next_event(), Some(Event::TooLarge { .. })));
    decoder.push(b"0123456789");
    assert_eq!(decoder.next_event(), None, "once");
    decoder.push(b"\n\ndata: next\n\n");
    assert!(matches!(decoder.next_event(), Some(Event::Message { data, .. }) if data == "next"));
}
