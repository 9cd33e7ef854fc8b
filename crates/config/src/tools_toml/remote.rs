//! The keys of a server that is reached by its `url`.

use upstream::launch::Launch;
use upstream::remote::{Headers, Remote, Transport, Url};

use super::texts::{Means, expanded, templated};
use crate::Environment;
use crate::fault::Faults;
use crate::reader::{Section, Value};

/// The keys of a remote server, taken out of its section but not yet read.
pub struct Keys<'t> {
    pub url: Option<Value<'t>>,
    transport: Option<Value<'t>>,
    headers: Option<Value<'t>>,
}

impl<'t> Keys<'t> {
    pub fn take(section: &mut Section<'t>) -> Keys<'t> {
        Keys {
            url: section.get("url"),
            transport: {
                let named = section.get("transport");
                named.or_else(|| section.get("type"))
            },
            headers: section.get("headers"),
        }
    }

    /// Reports the keys that mean nothing to a server with a `command`.
    pub fn refuse(&self, faults: &mut Faults<'_>) {
        let is_stray = |value: &&Value<'_>| value.node().as_str() != Some("stdio");
        let transport = self.transport.as_ref().filter(is_stray);
        for value in [transport, self.headers.as_ref()].into_iter().flatten() {
            value.report("is for servers with a `url`; remove it", faults);
        }
    }

    pub fn read(
        &self,
        url: &Value<'_>,
        means: Means<'_>,
        faults: &mut Faults<'_>,
    ) -> Option<Launch> {
        let address = address(url, means.surroundings.environment, faults);
        let transport = self.transport.as_ref().and_then(|value| {
            let words = [
                ("auto", Transport::Auto),
                ("streamable-http", Transport::StreamableHttp),
                ("sse", Transport::Sse),
                ("http", Transport::StreamableHttp),
                ("streamable_http", Transport::StreamableHttp),
            ];
            value.choice(&words, faults)
        });
        let headers = self.headers.as_ref().map(|value| headers(value, means, faults));
        Some(Launch::Url(Remote {
            url: address?,
            transport: transport.unwrap_or_default(),
            headers: headers.unwrap_or_default(),
        }))
    }
}

/// The address. It is not shown: it may hold a key.
fn address(
    value: &Value<'_>,
    environment: Environment<'_>,
    faults: &mut Faults<'_>,
) -> Option<Url> {
    let text = expanded(value, value.string(faults)?, environment, faults)?;
    match text.parse() {
        Ok(url) => Some(url),
        Err(error) => {
            value.report(&error.to_string(), faults);
            None
        }
    }
}

/// The header fields. Their values are never shown: they may be secret.
fn headers(value: &Value<'_>, means: Means<'_>, faults: &mut Faults<'_>) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in value.entries(faults).unwrap_or_default() {
        let text = value.string(faults);
        let text = text.and_then(|text| templated(&value, text, means, faults));
        if let Some(text) = text
            && let Err(error) = headers.add_template(name, text)
        {
            value.report(&error.to_string(), faults);
        }
    }
    headers
}
