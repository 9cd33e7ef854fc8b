//! How input of any cut becomes lines.

use bytes::Bytes;

use super::{Direction, Line, Lines, guess_id, one_line};

fn read(chunks: &[&str], line_max: usize) -> Vec<String> {
    let mut lines = Lines::new(line_max);
    let mut out = Vec::new();
    let mut show = |line| match line {
        Line::Frame(frame) => out.push(String::from_utf8(frame.to_vec()).unwrap()),
        Line::TooLong { head, tail } => out.push(format!("<{} {}>", head.len(), tail.len())),
    };
    for chunk in chunks {
        lines.buffer().extend_from_slice(chunk.as_bytes());
        while let Some(line) = lines.next_line() {
            show(line);
        }
    }
    while let Some(line) = lines.last_line() {
        show(line);
    }
    out
}

#[test]
fn lines_may_be_split_glued_and_blank() {
    assert_eq!(read(&["a", "b\nc\n\r\n \nd", "", "e"], 10), ["ab", "c", "de"]);
}

#[test]
fn oversized_line_is_dropped_and_the_next_one_read() {
    let long = "x".repeat(20_000);
    assert_eq!(read(&[&long[..9_000], &long[9_000..], "\nok\n"], 5_000), ["<4096 4096>", "ok"]);
    assert_eq!(read(&[&format!("{}\nok\n", &long[..6_000])], 5_000), ["<4096 4096>", "ok"]);
}

#[test]
fn oversized_line_does_not_keep_its_memory() {
    let mut lines = Lines::new(10_000);
    for _ in 0..100 {
        lines.buffer().extend_from_slice(&[b'x'; 10_000]);
        assert_eq!(lines.next_line(), None);
        assert!(lines.buffer.capacity() < 40_000);
    }
}

#[test]
fn id_of_a_broken_message_is_guessed_from_either_end() {
    let guess = |head: &str, tail: &str, direction| {
        let id = guess_id(head.as_bytes(), tail.as_bytes(), direction)?;
        Some(String::from_utf8(id.as_bytes().to_vec()).unwrap())
    };
    let answer = |head, tail| guess(head, tail, Direction::Answer);
    assert_eq!(answer(r#"{"jsonrpc":"2.0","id":7,"result":{"id":3"#, "xx").as_deref(), Some("7"));
    assert_eq!(
        answer(r#"{"result":{"id":3"#, r#""],"jsonrpc":"2.0","id": "a-7"}"#).as_deref(),
        Some("\"a-7\"")
    );
    assert_eq!(answer(r#"{"result":"#, "nothing"), None);
    assert_eq!(answer(r#"seen "id": 7"#, r#"seen "id": 7"#), None);
    let request = r#"{"jsonrpc":"2.0","id" : 7,"method":"x","params":{"id":3"#;
    assert_eq!(answer(request, "}"), None);
    assert_eq!(guess(request, "}", Direction::Request).as_deref(), Some("7"));
    assert_eq!(guess(r#"{"id":"a\"b","method":"x"}"#, "", Direction::Request), None);
}

#[test]
fn newlines_between_tokens_become_blanks() {
    assert_eq!(
        one_line(Bytes::from_static(b"{\r\n\"a\":\n1}")),
        Bytes::from_static(b"{  \"a\": 1}")
    );
}
