//! An estimate of what a text costs a model in tokens.
//!
//! No tokenizer is the right one for all models; this counts word and punctuation pieces.

/// About how many tokens `text` costs. An estimate, to be labelled as such.
pub fn estimate(text: &[u8]) -> usize {
    let mut tokens = 0;
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let same = |b: &&u8| class(**b) == class(first);
        let run = rest.iter().take_while(same).count();
        tokens += match class(first) {
            Class::Blank => run / 16,
            Class::Word => run.div_ceil(6),
            Class::Sign => run.div_ceil(2),
        };
        rest = &rest[run..];
    }
    tokens
}

#[derive(PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Sign,
}

fn class(byte: u8) -> Class {
    match byte {
        b if b.is_ascii_whitespace() => Class::Blank,
        b if b.is_ascii_alphanumeric() || b >= 0x80 => Class::Word,
        _ => Class::Sign,
    }
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn words_and_signs_are_counted_in_pieces() {
        assert_eq!(estimate(b""), 0);
        assert_eq!(estimate(b"list all open projects"), 5);
        assert_eq!(estimate(br#"{"type":"object"}"#), 6);
    }
}
