//! `.env` files: a line a variable. What is wrong with one is told by its line, never by its text.

use std::io::Read as _;
use std::path::Path;

use secrets::limits::VALUE_BYTES_MAX;
use secrets::names::Key;
use secrets::value::SecretValue;
use zeroize::Zeroizing;

use crate::cli::Misuse;

/// Bytes of a file.
const FILE_BYTES_MAX: usize = 16 * VALUE_BYTES_MAX;

/// All variables of a file, or everything that is wrong with it.
pub fn read(file: &Path) -> Result<Vec<(Key, SecretValue)>, Misuse> {
    let shown = file.display();
    let wrong = |error: std::io::Error| Misuse(format!("can't read `{shown}`: {error}"));
    let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
    let opened = std::fs::File::open(file).map_err(wrong)?;
    opened.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Misuse(format!("`{shown}` has over 1 MiB; nothing was set")));
    }
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Misuse(format!("`{shown}` is not UTF-8; nothing was set")))?;
    parse(text).map_err(|problems| {
        let lines: Vec<_> =
            problems.iter().map(|(line, problem)| format!("{shown}:{line}: {problem}")).collect();
        Misuse(format!("nothing was set\n{}", lines.join("\n")))
    })
}

type Problems = Vec<(usize, String)>;

fn parse(text: &str) -> Result<Vec<(Key, SecretValue)>, Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let number = text[..text.len() - rest.len()].matches('\n').count() + 1;
        let line = rest.lines().next().unwrap_or_default();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            rest = next_line(rest);
            continue;
        }
        let content = content.strip_prefix("export ").map_or(content, str::trim_start);
        let Some((key, _)) = content.split_once('=') else {
            problems.push((number, "has no `=`; write `KEY=value`".to_owned()));
            rest = next_line(rest);
            continue;
        };
        let key = key.trim_end();
        // The value may go on over several lines, so it is looked for in all that is left.
        let value = rest.split_once('=').map_or("", |(_, value)| value);
        let value = value.trim_start_matches([' ', '\t']);
        let (value, after) = match unquoted(value) {
            Ok(parts) => parts,
            Err(problem) => {
                problems.push((number, problem.to_owned()));
                break;
            }
        };
        rest = next_line(after);
        match (key.parse::<Key>(), SecretValue::new(value)) {
            (Ok(key), Ok(value)) => found.push((key, value)),
            (Err(error), _) => problems.push((number, format!("the name {error}"))),
            (_, Err(error)) => problems.push((number, error.to_string())),
        }
    }
    if found.is_empty() && problems.is_empty() {
        problems.push((1, "there is nothing in it; write `KEY=value`".to_owned()));
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// A value without its quotes, and what follows it.
fn unquoted(text: &str) -> Result<(Zeroizing<String>, &str), &'static str> {
    let unclosed = "has a quote that is not closed";
    if let Some(inside) = text.strip_prefix('\'') {
        let (value, after) = inside.split_once('\'').ok_or(unclosed)?;
        return end(value.to_owned().into(), after);
    }
    let Some(inside) = text.strip_prefix('"') else {
        let line = text.lines().next().unwrap_or_default();
        let end = line.find(" #").unwrap_or(line.len());
        return Ok((line[..end].trim_end().to_owned().into(), &text[line.len()..]));
    };
    let mut value = Zeroizing::new(String::with_capacity(inside.len().min(VALUE_BYTES_MAX)));
    let mut characters = inside.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return end(value, &inside[place + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, 't')) => value.push('\t'),
                Some((_, other)) => value.push(other),
                None => return Err(unclosed),
            },
            other => value.push(other),
        }
    }
    Err(unclosed)
}

/// After a quote there may be a remark only.
fn end(value: Zeroizing<String>, after: &str) -> Result<(Zeroizing<String>, &str), &'static str> {
    let rest = after.lines().next().unwrap_or_default().trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err("goes on after its closing quote");
    }
    Ok((value, after))
}

fn next_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = match parse(text) {
            Ok(found) => {
                found.iter().map(|(key, value)| format!("{key}={}", value.expose())).collect()
            }
            Err(problems) => {
                problems.iter().map(|(line, problem)| format!("{line}: {problem}")).collect()
            }
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn lines_quotes_and_remarks_are_understood() {
        let text = "# tokens\n\nexport A=plain value # remark\nB = 'it''\nC=\"two\\nlines \\\"x\\\"\"\n\
            D=\"really\ntwo\" # lines\nE=a=b#c\r\nF='x'";
        check(
            &text.replace("'it''", "'it is'"),
            &["A=plain value", "B=it is", "C=two\nlines \"x\"", "D=really\ntwo", "E=a=b#c", "F=x"],
        );
    }

    #[test]
    fn every_problem_is_told_by_its_line_and_without_a_value() {
        check(
            "token=hush\nA hush\nPATH=hush\nB=\nC=x",
            &[
                "1: the name is no name of a secret; use capital letters, digits and `_`, a letter first",
                "2: has no `=`; write `KEY=value`",
                "3: the name decides how programs are started, so it can't be a secret; use another name",
                "4: the value is empty; nothing was set",
            ],
        );
        check("A=x\nB=\"hush\n", &["2: has a quote that is not closed"]);
        check("A='x' hush\n", &["1: goes on after its closing quote"]);
        check("# nothing\n", &["1: there is nothing in it; write `KEY=value`"]);
    }
}
