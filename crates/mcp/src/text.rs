//! Text of strangers, made fit to be shown.

/// How much of a stranger's text an error shows.
const SHOWN_CHARS_MAX: usize = 80;

/// What a peer sent, for a message: escaped, and cut at 80 characters.
pub fn shorten(text: &str) -> String {
    let mut rest = text.chars();
    let escaped: String =
        rest.by_ref().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if rest.next().is_some() { format!("{escaped}…") } else { escaped }
}

/// The same text without what could drive a terminal or deceive its reader.
pub fn tame(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// Bytes in hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Whether a character acts without being seen: controls, and marks that turn or hide text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{hexadecimal, shorten, tame};

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(hexadecimal(&[0, 9, 0xaf, 0xff]), "0009afff");
    }

    #[test]
    fn strange_text_is_escaped_and_cut() {
        assert_eq!(shorten("a\u{1b}[8m"), "a\\u{1b}[8m");
        assert_eq!(shorten(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(tame("a\u{1b}[8m\u{9b}b\u{202e}c"), "a [8m b c");
    }
}
