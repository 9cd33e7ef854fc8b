//! Servers that are reached over HTTP: where they are and how they are spoken to.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use secrets::names::Name;
use secrets::store::Contents;

use crate::context::Context;
use crate::template::Template;

/// A server at a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    pub url: Url,
    pub transport: Transport,
    pub headers: Headers,
}

impl Remote {
    /// The server as it is asked for whom a context tells of.
    pub fn fill(&self, context: &Context) -> Result<Cow<'_, Remote>, HeaderError> {
        if self.headers.is_plain() {
            return Ok(Cow::Borrowed(self));
        }
        let headers = self.headers.fill(context)?;
        Ok(Cow::Owned(Remote { headers, ..self.clone() }))
    }
}

/// How messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Found out by asking.
    #[default]
    Auto,
    StreamableHttp,
    /// The transport of 2024-11-05: one stream in, POSTs out.
    Sse,
}

/// The address of a server: `http` or `https`, without credentials in it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url(Uri);

/// Why a text is no address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("is no URL; write one such as `https://example.com/mcp`")]
    Malformed,
    #[error("must begin with `http://` or `https://`")]
    Scheme,
    #[error("holds a user or password; put credentials into `headers`")]
    Credentials,
    #[error("names no port from 1 to 65535")]
    Port,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        let text = text.split('#').next().unwrap_or_default();
        let uri: Uri = text.parse().map_err(|_| UrlError::Malformed)?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(_) => return Err(UrlError::Scheme),
            None => return Err(UrlError::Malformed),
        }
        let authority = uri.authority().ok_or(UrlError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        if authority.host().is_empty() {
            return Err(UrlError::Malformed);
        }
        // A port that can't be would be taken for none, and so for another server.
        let port = &authority.as_str()[authority.host().len()..];
        let is_port = |port: &str| port.parse().is_ok_and(|port: u16| port > 0);
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return Err(UrlError::Port);
        }
        Ok(Url(uri))
    }
}

impl Url {
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    pub fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Whether what is sent can be read on its way by others.
    pub fn is_exposed(&self) -> bool {
        !self.is_https() && !is_loopback(self.0.host().unwrap_or_default())
    }

    /// The address that `reference` means on a page from here; `None` if it is on another origin.
    pub fn join(&self, reference: &str) -> Option<Url> {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self.0.authority().map_or("", Authority::as_str);
        let text = if has_scheme(reference) {
            reference.to_owned()
        } else if reference.starts_with("//") {
            format!("{scheme}:{reference}")
        } else {
            let path = self.0.path();
            let end = reference.find(['?', '#']).unwrap_or(reference.len());
            let (to, rest) = reference.split_at(end);
            let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
            let path = match to {
                "" => path.to_owned(),
                _ if to.starts_with('/') => without_dots(to),
                _ => without_dots(&format!("{folder}{to}")),
            };
            format!("{scheme}://{authority}{path}{rest}")
        };
        let joined: Url = text.parse().ok()?;
        let same =
            joined.0.scheme() == self.0.scheme() && joined.0.authority() == self.0.authority();
        same.then_some(joined)
    }
}

/// Whether a reference begins with a scheme: a colon further on may be part of a query.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find(['/', '?', '#']).unwrap_or(reference.len());
    reference[..end].contains(':')
}

/// A path with `.` and `..` carried out.
fn without_dots(path: &str) -> String {
    let mut kept = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if segments.peek().is_none() {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Shown without what follows the path, which may hold a key.
impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(
            formatter,
            "{}://{authority}{}",
            self.0.scheme_str().unwrap_or_default(),
            self.0.path()
        )
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What sort of place a host is, for a message.
pub(crate) fn place(host: &str) -> &'static str {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if is_loopback(host) {
        return "a loopback address";
    }
    match bare.parse() {
        Ok(IpAddr::V4(ip)) if ip.is_private() || ip.is_link_local() => "a private address",
        Ok(IpAddr::V6(ip)) if ip.is_unique_local() || ip.is_unicast_link_local() => {
            "a private address"
        }
        Ok(_) => "a public address",
        Err(_) => "the host",
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Header fields that are sent with every request. Their values are secret and never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    map: HeaderMap,
    /// Those that name secrets, which are not looked up yet, or that are for one client each.
    declared: Vec<(HeaderName, Template)>,
}

impl Hash for Headers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut fields: Vec<_> =
            self.map.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        fields.sort_unstable();
        (fields, &self.declared).hash(state);
    }
}

/// Why a header field can't be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("is no name of a header; use letters, digits and `-`")]
    Name,
    #[error("is a header that the protocol itself sets; remove it")]
    Reserved,
    #[error("holds what no header can; use printable characters only")]
    Value,
}

impl Headers {
    pub fn add(&mut self, name: &str, value: &str) -> Result<(), HeaderError> {
        self.put(free(name)?, value)
    }

    /// The same with a value that may name secrets.
    pub fn add_template(&mut self, name: &str, value: Template) -> Result<(), HeaderError> {
        if let Some(value) = value.plain() {
            return self.add(name, value);
        }
        self.declared.push((free(name)?, value));
        Ok(())
    }

    fn put(&mut self, name: HeaderName, value: &str) -> Result<(), HeaderError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| HeaderError::Value)?;
        value.set_sensitive(true);
        self.map.insert(name, value);
        Ok(())
    }

    /// Whether they are the same for every client.
    pub fn is_plain(&self) -> bool {
        !self.declared.iter().any(|(_, value)| value.is_of_clients())
    }

    /// The fields for whom a context tells of; the error is that a value can't be sent.
    pub fn fill(&self, context: &Context) -> Result<Headers, HeaderError> {
        let mut filled = Headers { map: self.map.clone(), declared: Vec::new() };
        for (name, value) in &self.declared {
            filled.put(name.clone(), &value.fill(context))?;
        }
        Ok(filled)
    }

    /// The same with the values of the secrets put in.
    pub(crate) fn filled(&self, contents: &Contents) -> Result<Headers, String> {
        let mut filled = Headers { map: self.map.clone(), declared: Vec::new() };
        for (name, value) in &self.declared {
            let value = value.filled(contents).map_err(|error| error.to_string())?;
            let Some(text) = value.plain() else {
                filled.declared.push((name.clone(), value));
                continue;
            };
            let put = filled.put(name.clone(), text);
            put.map_err(|error| format!("with its secret, `{name}` {error}"))?;
        }
        Ok(filled)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Name> {
        self.declared.iter().flat_map(|(_, value)| value.secrets())
    }

    /// The names in use.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let declared = self.declared.iter().map(|(name, _)| name);
        self.map.keys().chain(declared).map(HeaderName::as_str)
    }

    pub(crate) fn map(&self) -> &HeaderMap {
        &self.map
    }
}

/// The name of a header that is free for whoever writes the configuration.
fn free(name: &str) -> Result<HeaderName, HeaderError> {
    let name: HeaderName = name.parse().map_err(|_| HeaderError::Name)?;
    let reserved = [
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "last-event-id",
        "transfer-encoding",
        "upgrade",
    ];
    if reserved.contains(&name.as_str()) || name.as_str().starts_with("mcp-") {
        return Err(HeaderError::Reserved);
    }
    Ok(name)
}

impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{HeaderError, Headers, Url, UrlError};

    #[track_caller]
    fn check(text: &str, expected: Result<&str, UrlError>) {
        let url = text.parse::<Url>().map(|url| url.to_string());
        assert_eq!(url, expected.map(str::to_owned));
    }

    #[test]
    fn address_is_shown_without_its_query() {
        check("http://localhost:8080/mcp", Ok("http://localhost:8080/mcp"));
        check("https://example.com/mcp?key=secret#top", Ok("https://example.com/mcp"));
    }

    #[test]
    fn other_schemes_and_credentials_are_refused() {
        check("ftp://example.com/", Err(UrlError::Scheme));
        check("file:///etc/passwd", Err(UrlError::Malformed));
        check("https://me:pass@example.com/", Err(UrlError::Credentials));
        for port in [":99999", ":0", ":"] {
            check(&format!("http://127.0.0.1{port}/mcp"), Err(UrlError::Port));
        }
        check("http://[::1]:8000/mcp", Ok("http://[::1]:8000/mcp"));
        for text in ["", "/mcp", "example.com", "http://", "http:///mcp", "http://a b/"] {
            check(text, Err(UrlError::Malformed));
        }
    }

    #[test]
    fn endpoint_must_be_on_the_same_origin() {
        let url: Url = "http://localhost:1/a/sse".parse().unwrap();
        let join = |reference| url.join(reference).map(|url| url.uri().to_string());
        let at = |path: &str| Some(format!("http://localhost:1{path}"));
        assert_eq!(join("/message?id=1"), at("/message?id=1"));
        assert_eq!(join("message?id=1"), at("/a/message?id=1"));
        assert_eq!(join("?id=1"), at("/a/sse?id=1"));
        assert_eq!(join("http://localhost:1/x"), at("/x"));
        assert_eq!(join("//localhost:1/x"), at("/x"));
        assert_eq!(join("/message?back=http://evil/"), at("/message?back=http://evil/"));
        assert_eq!(join("message?back=http://evil/"), at("/a/message?back=http://evil/"));
        assert_eq!(join("../message/?id=.."), at("/message/?id=.."));
        assert_eq!(join("./b/../../../c/."), at("/c/"));
        assert_eq!(join(""), at("/a/sse"));
        for other in [
            "http://localhost:2/x",
            "https://localhost:1/x",
            "//evil/x",
            "http://u@localhost:1/x",
            "mailto:x",
            "http:x",
        ] {
            assert_eq!(join(other), None, "{other}");
        }
    }

    #[test]
    fn header_values_are_never_shown() {
        let mut headers = Headers::default();
        headers.add("Authorization", "Bearer secret").unwrap();
        assert_eq!(format!("{headers:?}"), r#"["authorization"]"#);
        assert_eq!(headers.add("a b", "x"), Err(HeaderError::Name));
        assert_eq!(headers.add("Mcp-Session-Id", "x"), Err(HeaderError::Reserved));
        assert_eq!(headers.add("HOST", "x"), Err(HeaderError::Reserved));
        assert_eq!(headers.add("X-Key", "a\nb"), Err(HeaderError::Value));
    }
}
