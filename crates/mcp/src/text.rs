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
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

/// So many characters of a text; all of it where it is shorter.
pub fn first_chars(text: &str, chars_max: usize) -> &str {
    // No character is shorter than a byte.
    if text.len() <= chars_max {
        return text;
    }
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

/// So many characters of a text at most, up to the end of a word if one ends there.
pub fn first_words(text: &str, chars_max: usize) -> &str {
    let cut = first_chars(text, chars_max);
    if cut.len() == text.len() || text[cut.len()..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace) {
        Some(end) => cut[..end].trim_end(),
        None => cut,
    }
}

/// Whether a character acts without being seen: controls, and marks that turn or hide text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{first_chars, first_words, hexadecimal, shorten, tame};

    #[test]
    fn first_characters_are_whole_ones() {
        assert_eq!(first_chars("héé", 2), "hé");
        assert_eq!(first_chars("héé", 3), "héé");
        assert_eq!(first_chars("", 0), "");
    }

    #[test]
    fn text_is_cut_at_the_end_of_a_word() {
        assert_eq!(first_words("list all issues", 11), "list all");
        assert_eq!(first_words("list all issues", 8), "list all");
        assert_eq!(first_words("list all issues", 15), "list all issues");
        assert_eq!(first_words("éééé", 3), "ééé");
        assert_eq!(first_words("a b", 0), "");
    }

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
