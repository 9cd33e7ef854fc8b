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

/// The same text without control characters, which could drive a terminal.
pub fn tame(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{shorten, tame};

    #[test]
    fn strange_text_is_escaped_and_cut() {
        assert_eq!(shorten("a\u{1b}[8m"), "a\\u{1b}[8m");
        assert_eq!(shorten(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
        assert_eq!(tame("a\u{1b}[8m\u{9b}b"), "a [8m b");
    }
}
