//! What a client chooses as it connects: in the address, in header fields, or by the path.

use std::borrow::Cow;

use super::head::{Field, Head};

/// Names of toolsets and of tools.
#[derive(Debug, Default)]
pub struct Choice<'h> {
    toolsets: Vec<Cow<'h, str>>,
    tools: Vec<Cow<'h, str>>,
}

impl<'h> Choice<'h> {
    /// What a request says: `?toolsets=`, `?tools=`, `X-MCP-Toolsets`, `X-MCP-Tools`, and its path.
    pub fn of(head: &Head<'h>, by_path: Option<&'h str>) -> Choice<'h> {
        let mut choice = Choice::default();
        choice.toolsets.extend(by_path.map(Cow::Borrowed));
        let pairs = head.uri.query().unwrap_or_default().split('&');
        for (name, value) in pairs.filter_map(|pair| pair.split_once('=')) {
            let Some(value) = decode(value) else { continue };
            match name {
                "toolsets" => choice.toolsets.extend(names(&value)),
                "tools" => choice.tools.extend(names(&value)),
                _ => {}
            }
        }
        choice.toolsets.extend(listed(head.toolsets));
        choice.tools.extend(listed(head.tools));
        choice
    }

    /// The id that a client gives itself: `?client=`, else `mcp-client-id`.
    pub fn client(head: &Head<'_>) -> Option<String> {
        let pairs = head.uri.query().unwrap_or_default().split('&');
        let mut said = pairs.filter_map(|pair| pair.split_once('='));
        let said = said.find(|(name, _)| *name == "client").and_then(|(_, value)| decode(value));
        said.or_else(|| head.client.once().map(str::to_owned))
    }

    /// What it says for servers of its own: by this parameter of its address, or by this header field. Whoever
    /// says it twice has said nothing.
    pub fn context(head: &Head<'_>, query: Option<&str>, header: Option<&str>) -> Option<String> {
        let pairs = head.uri.query().unwrap_or_default().split('&');
        let mut said = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| query.is_some_and(|query| decode(name).as_deref() == Some(query)));
        match (said.next(), said.next()) {
            (Some((_, value)), None) => decode(value),
            (None, _) => Field::find(head.fields, header?).once().map(str::to_owned),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.toolsets.is_empty() && self.tools.is_empty()
    }

    pub fn toolsets(&self) -> impl Iterator<Item = &str> {
        self.toolsets.iter().map(|name| &**name)
    }

    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|name| &**name)
    }
}

fn names(list: &str) -> Vec<Cow<'static, str>> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| Cow::Owned(name.to_owned())).collect()
}

fn listed(field: Field<'_>) -> impl Iterator<Item = Cow<'_, str>> {
    let names = field.once().unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(Cow::Borrowed)
}

/// A value of a query, decoded; `None` if it is not encoded well.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
