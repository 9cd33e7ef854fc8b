//! Matching a URI against the template (RFC 6570) that it may have been expanded from.
//!
//! Only whether it fits: the values are the upstream's matter.

/// A parsed template.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Literal(Box<[u8]>),
    /// `{x}` stays within a path segment; the operators reach further.
    Expression {
        crosses_segments: bool,
        may_be_empty: bool,
    },
}

impl UriTemplate {
    /// Reads a template. An unclosed `{` is taken literally.
    pub fn parse(text: &str) -> UriTemplate {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((expression, remainder)) = after.split_once('}') else {
                break;
            };
            push_literal(&mut parts, before);
            let operator = expression.chars().next().unwrap_or(' ');
            parts.push(Part::Expression {
                crosses_segments: "+#/?&;".contains(operator) || expression.ends_with('*'),
                may_be_empty: "+#/?&;.".contains(operator),
            });
            rest = remainder;
        }
        push_literal(&mut parts, rest);
        UriTemplate { parts }
    }

    /// How many bytes of the template are fixed: of two that fit, the one with more is meant.
    pub fn literal_len(&self) -> usize {
        let len = |part: &Part| match part {
            Part::Literal(text) => text.len(),
            Part::Expression { .. } => 0,
        };
        self.parts.iter().map(len).sum()
    }

    /// Whether `uri` can be an expansion. Time is bounded by template × URI.
    pub fn fits(&self, uri: &str) -> bool {
        let uri = uri.as_bytes();
        // Which places of the URI can be reached after the parts so far.
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            reached = match part {
                Part::Literal(text) => after_literal(&reached, uri, text),
                Part::Expression { crosses_segments, may_be_empty } => {
                    after_expression(&reached, uri, *crosses_segments, *may_be_empty)
                }
            };
        }
        reached[uri.len()]
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Literal(text.as_bytes().into()));
    }
}

fn after_literal(reached: &[bool], uri: &[u8], text: &[u8]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (at, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if uri[at..].starts_with(text) {
            next[at + text.len()] = true;
        }
    }
    next
}

fn after_expression(reached: &[bool], uri: &[u8], crosses: bool, empty: bool) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    let mut inside = false;
    for at in 0..reached.len() {
        next[at] = inside || (empty && reached[at]);
        let goes_on = uri.get(at).is_some_and(|b| crosses || *b != b'/');
        inside = (inside || reached[at]) && goes_on;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::UriTemplate;

    #[track_caller]
    fn check(template: &str, uri: &str, fits: bool) {
        assert_eq!(UriTemplate::parse(template).fits(uri), fits, "{template} {uri}");
    }

    #[test]
    fn simple_expression_stays_within_a_segment() {
        check("a://{id}", "a://1", true);
        check("a://{id}/x", "a://1/x", true);
        check("a://{id}", "a://1/x", false);
        check("a://{id}", "a://", false);
        check("a://{id}/{no}", "a://1/2", true);
    }

    #[test]
    fn operators_reach_further() {
        check("file://{+path}", "file:///etc/hosts", true);
        check("a://x{?q,r}", "a://x?q=1&r=2", true);
        check("a://x{?q}", "a://x", true);
        check("a://{path*}", "a://x/y", true);
    }

    #[test]
    fn literals_must_be_there() {
        check("a://b", "a://b", true);
        check("a://b", "a://bc", false);
        check("a://{", "a://{", true);
        check("", "", true);
    }

    #[test]
    fn hostile_pair_takes_bounded_time() {
        check(&"{+x}a".repeat(64), &"a".repeat(8_192), true);
        check(&"{+x}b".repeat(64), &"a".repeat(8_192), false);
    }
}
