//! The canonical form of JSON, RFC 8785: one text for all texts that say the same.

use std::cmp::Ordering;

use super::scan::{Scanner, Stop};
use super::{DEPTH_MAX, Fault, quote, string, why_not};

/// The canonical form of the value in `text`.
///
/// There is none where two readers could disagree: for a member that is there twice, a number that
/// is none in ECMAScript, half of a surrogate pair.
pub fn canonical(text: &str) -> Result<String, Fault> {
    let mut writing = Writing { text, scanner: Scanner::new(text.as_bytes()), depth: 0 };
    let mut out = String::with_capacity(text.len());
    writing.value(&mut out)?;
    writing.scanner.finish().map_err(|stop| writing.fault(stop))?;
    Ok(out)
}

struct Writing<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    /// How many objects and arrays are open: bounded, since each is a level of the stack.
    depth: usize,
}

impl Writing<'_> {
    fn value(&mut self, out: &mut String) -> Result<(), Fault> {
        match self.scanner.peek() {
            Some(b'{') => self.nested(Self::object, out),
            Some(b'[') => self.nested(Self::array, out),
            Some(b'"') => {
                out.push_str(&quote(&self.string()?));
                Ok(())
            }
            _ => {
                let start = self.scanner.value().map_err(|stop| self.fault(stop))?;
                match &self.text[start..self.scanner.at()] {
                    word @ ("true" | "false" | "null") => out.push_str(word),
                    digits => out.push_str(&number(digits)?),
                }
                Ok(())
            }
        }
    }

    fn nested(
        &mut self,
        write: fn(&mut Self, &mut String) -> Result<(), Fault>,
        out: &mut String,
    ) -> Result<(), Fault> {
        if self.depth == DEPTH_MAX {
            return Err(Fault::TooDeep);
        }
        self.depth += 1;
        write(self, out)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, out: &mut String) -> Result<(), Fault> {
        let mut members: Vec<(String, String)> = Vec::new();
        self.expect(b'{')?;
        let mut has_more = !self.scanner.take(b'}');
        while has_more {
            let name = self.string()?;
            self.expect(b':')?;
            let mut value = String::new();
            self.value(&mut value)?;
            members.push((name, value));
            has_more = self.goes_on(b'}')?;
        }
        members.sort_by(|a, b| by_utf16(&a.0, &b.0));
        if let Some(twice) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Fault::Syntax(format!("member {} is there twice", quote(&twice[0].0))));
        }
        out.push('{');
        for (index, (name, value)) in members.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            out.extend([comma, &quote(name), ":", value]);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, out: &mut String) -> Result<(), Fault> {
        self.expect(b'[')?;
        out.push('[');
        let mut has_more = !self.scanner.take(b']');
        while has_more {
            self.value(out)?;
            has_more = self.goes_on(b']')?;
            if has_more {
                out.push(',');
            }
        }
        out.push(']');
        Ok(())
    }

    fn string(&mut self) -> Result<String, Fault> {
        let written = self.scanner.string().map_err(|stop| self.fault(stop))?;
        let text = &self.text[written.start - 1..=written.end];
        let unreadable = || Fault::Syntax(format!("the string {text} has no meaning"));
        string(text).map(String::from).ok_or_else(unreadable)
    }

    /// Takes a comma, else the bracket that must close here; whether there is more.
    fn goes_on(&mut self, bracket: u8) -> Result<bool, Fault> {
        if self.scanner.take(b',') {
            return Ok(true);
        }
        self.expect(bracket)?;
        Ok(false)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        self.scanner.expect(byte).map_err(|stop| self.fault(stop))
    }

    fn fault(&self, stop: Stop) -> Fault {
        why_not(self.text.as_bytes(), stop)
    }
}

fn by_utf16(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// A number as ECMAScript writes it.
fn number(text: &str) -> Result<String, Fault> {
    let value: f64 =
        text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(|| {
            Fault::Syntax(format!("the number {} is too large", crate::text::shorten(text)))
        })?;
    if value == 0.0 {
        return Ok("0".to_owned());
    }
    let scientific = shortest(value.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = digits.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if value < 0.0 { "-" } else { "" };
    let point = usize::try_from(exponent + 1).unwrap_or(0);
    Ok(match exponent {
        0..=20 if digits.len() <= point => format!("{sign}{digits:0<point$}"),
        0..=20 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
        -6..=-1 => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{digits}")
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{point}{rest}e{exponent:+}")
        }
    })
}

/// The fewest digits that mean a number; of as many the nearest, and of two as near the even one.
fn shortest(value: f64) -> String {
    let shortest = format!("{value:e}");
    let fraction = shortest.find('e').unwrap_or(0).saturating_sub(2);
    // The standard library takes the larger of two, unless the number of digits is given.
    let even = format!("{value:.fraction$e}");
    if even.parse() == Ok(value) { even } else { shortest }
}

#[cfg(test)]
mod tests;
