//! How input of any cut becomes lines.

use bytes::Bytes;

use super::{Line, Lines, id_of_oversized, one_line};

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
fn id_of_an_oversized_answer_is_found_at_either_end() {
    let find = |head: &str, tail: &str| id_of_oversized(head.as_bytes(), tail.as_bytes());
    assert_eq!(find(r#"{"jsonrpc":"2.0","id":7,"result":{"id":3"#, "xx"), Some(7));
    assert_eq!(find(r#"{"result":{"id":3"#, r#""],"jsonrpc":"2.0","id": 7}"#), Some(7));
    assert_eq!(find(r#"{"result":"#, "nothing"), None);
    assert_eq!(find(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"#, "}"), None);
}

#[test]
fn newlines_between_tokens_become_blanks() {
    assert_eq!(
        one_line(Bytes::from_static(b"{\r\n\"a\":\n1}")),
        Bytes::from_static(b"{  \"a\": 1}")
    );
}
