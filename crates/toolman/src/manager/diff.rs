//! What is new in a text, line by line, for a person who must see all of it.

use std::fmt::Write as _;

use mcp::text::is_hidden;

/// Lines around a change that are shown.
const AROUND: usize = 3;
/// Texts that differ in more than this many pairs of lines are shown whole.
const PAIRS_MAX: usize = 4_000_000;

/// One line of a comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Both(&'t str),
    Gone(&'t str),
    New(&'t str),
}

/// The differences as `diff -u` writes them, without a header. What can't be seen is written as its number.
pub fn diff(old: &str, new: &str) -> String {
    let lines = compare(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let is_change = |line: &Line<'_>| !matches!(line, Line::Both(_));
    let mut text = String::new();
    let mut is_cut = false;
    for (index, line) in lines.iter().enumerate() {
        let near = &lines[index.saturating_sub(AROUND)..lines.len().min(index + AROUND + 1)];
        if !near.iter().any(is_change) {
            is_cut = true;
            continue;
        }
        if std::mem::take(&mut is_cut) {
            text += "  …\n";
        }
        let (mark, line) = match line {
            Line::Both(line) => (' ', line),
            Line::Gone(line) => ('-', line),
            Line::New(line) => ('+', line),
        };
        _ = writeln!(text, "{mark} {}", visible(line));
    }
    if text.is_empty() && old != new {
        text += "  only the ends of lines differ\n";
    }
    text
}

/// A line in which nothing hides.
fn visible(line: &str) -> String {
    let shown = |c: char| {
        if is_hidden(c) && c != '\t' { c.escape_unicode().to_string() } else { c.to_string() }
    };
    line.chars().map(shown).collect()
}

fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, old_tail) = old_rest.split_at(old_rest.len() - tail);
    let (new_middle, _) = new_rest.split_at(new_rest.len() - tail);
    let mut lines: Vec<_> = old[..same].iter().map(|line| Line::Both(line)).collect();
    if old_middle.len().saturating_mul(new_middle.len()) > PAIRS_MAX {
        lines.extend(old_middle.iter().map(|line| Line::Gone(line)));
        lines.extend(new_middle.iter().map(|line| Line::New(line)));
    } else {
        align(old_middle, new_middle, &mut lines);
    }
    lines.extend(old_tail.iter().map(|line| Line::Both(line)));
    lines
}

/// By the longest common subsequence.
fn align<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<Line<'t>>) {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i * width + j] = if line == other {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let is_same = i < old.len() && j < new.len() && old[i] == new[j];
        let prefers_old = j == new.len()
            || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1];
        if is_same {
            lines.push(Line::Both(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if prefers_old {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        assert_eq!(diff(old, old), "");
        let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
        assert_eq!(diff(old, new), "  …\n  b\n  c\n  d\n- e\n+ E\n  f\n  g\n  h\n");
        assert_eq!(diff("", "x\ny\n"), "+ x\n+ y\n");
        assert_eq!(diff("x\n", ""), "- x\n");
        for (old, new) in [("x\r\ny\n", "x\ny\n"), ("x\n", "x"), ("x", "x\n")] {
            assert_eq!(diff(old, new), "  only the ends of lines differ\n");
        }
    }

    #[test]
    fn nothing_hides_from_whoever_approves() {
        assert_eq!(diff("", "a\u{202e}b\u{1b}[2Jc"), "+ a\\u{202e}b\\u{1b}[2Jc\n");
    }
}
