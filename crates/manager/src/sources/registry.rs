//! The registry of MCP servers: found by a search, told of as data. HARDENING A02
//!
//! Reads what the official registry answers now, and what it answered before its entries were wrapped.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use upstream::fetch::{Wanted, fetch};
use upstream::remote::Url;

use super::Settings;
use crate::error::Error;
use crate::limits::{REGISTRY_BYTES_MAX, REGISTRY_PAGES_MAX, REGISTRY_TIME_MAX};

/// Entries that are asked for at once.
const PAGE: usize = 50;

/// A server as the registry tells of it: its `server.json`.
#[derive(Clone, Debug)]
pub struct Entry(Value);

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    pub entries: Vec<Entry>,
    /// Where the search can be taken up again.
    pub next_cursor: Option<String>,
}

/// A way to get a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// `npm`, `pypi`, `oci`, …
    pub kind: String,
    pub identifier: String,
    pub version: String,
}

impl Entry {
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    pub fn description(&self) -> &str {
        self.0["description"].as_str().unwrap_or_default()
    }

    pub fn document(&self) -> &Value {
        &self.0
    }

    pub fn source_url(&self) -> &str {
        self.0["repository"]["url"].as_str().unwrap_or_default()
    }

    /// The packages of it, each with what it says of itself.
    pub fn packages(&self) -> Vec<(Package, &Value)> {
        let all = self.0["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Value, keys: [&str; 2]| {
            let found = keys.iter().find_map(|key| value[*key].as_str());
            found.unwrap_or_default().to_owned()
        };
        let package = |value: &Value| Package {
            kind: text(value, ["registryType", "registry_type"]),
            identifier: text(value, ["identifier", "name"]),
            version: text(value, ["version", "version"]),
        };
        all.iter().map(|value| (package(value), value)).collect()
    }

    /// The addresses at which it is served already.
    pub fn remotes(&self) -> &[Value] {
        self.0["remotes"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// What `search_registry` says of it. TD-140
    pub fn told(&self) -> Value {
        let packages = self.packages();
        let first = packages.first().map(|(package, _)| package);
        let remote = self.remotes().iter().find_map(|remote| remote["url"].as_str());
        json!({
            "name": self.name(),
            "description": self.description(),
            "package": first.map_or("", |package| package.identifier.as_str()),
            "package_type": first.map_or(if remote.is_some() { "remote" } else { "" }, |package| package.kind.as_str()),
            "version": self.0["version"].as_str().unwrap_or_default(),
            "remote_url": remote.unwrap_or_default(),
            "source_url": self.source_url(),
        })
    }
}

/// Searches the registry, page by page, for so many entries at most.
pub async fn search(
    settings: &Settings,
    query: &str,
    cursor: Option<&str>,
    most: usize,
) -> Result<Found, Error> {
    let mut found = Found { entries: Vec::new(), next_cursor: cursor.map(str::to_owned) };
    for _ in 0..REGISTRY_PAGES_MAX {
        let (entries, next) = page(settings, query, found.next_cursor.as_deref()).await?;
        let is_empty = entries.is_empty();
        found.entries.extend(entries);
        let is_new = next != found.next_cursor;
        found.next_cursor = next;
        if found.entries.len() >= most || found.next_cursor.is_none() || is_empty || !is_new {
            break;
        }
    }
    found.entries.truncate(most);
    Ok(found)
}

/// The entry that is named so, or has a package that is.
pub async fn find(settings: &Settings, name: &str) -> Result<Option<Entry>, Error> {
    // The registry searches in names only, and packages are mostly named after their last part.
    let last = name.rsplit('/').next().unwrap_or(name);
    for query in [name, last] {
        let found = search(settings, query, None, PAGE * REGISTRY_PAGES_MAX).await?;
        let offers =
            |entry: &&Entry| entry.packages().iter().any(|(package, _)| package.identifier == name);
        if let Some(entry) = found.entries.iter().find(|entry| entry.name() == name) {
            return Ok(Some(entry.clone()));
        }
        let offering: Vec<&Entry> = found.entries.iter().filter(offers).collect();
        let names: BTreeSet<&str> = offering.iter().map(|entry| entry.name()).collect();
        if names.len() > 1 {
            // Anybody may publish an entry about anybody's package.
            let names: Vec<String> = names.into_iter().take(10).map(mcp::text::shorten).collect();
            return Err(Error::Source(format!(
                "several servers of the registry offer `{}`: {}; pass the name of the one that you mean",
                mcp::text::shorten(name),
                names.join(", ")
            )));
        }
        if let Some(entry) = offering.first() {
            return Ok(Some((*entry).clone()));
        }
        if query == last {
            break;
        }
    }
    Ok(None)
}

async fn page(
    settings: &Settings,
    query: &str,
    cursor: Option<&str>,
) -> Result<(Vec<Entry>, Option<String>), Error> {
    let mut path = format!("v0/servers?search={}&version=latest&limit={PAGE}", encode(query));
    if let Some(cursor) = cursor {
        path += &format!("&cursor={}", encode(cursor));
    }
    let answer = json_at(&beneath(&settings.registry, &path)?).await?;
    let listed = answer["servers"].as_array();
    let listed = listed
        .ok_or_else(|| Error::Source("the registry answered without `servers`".to_owned()))?;
    let entries = listed.iter().map(|entry| match entry.get("server") {
        Some(server) => Entry(server.clone()),
        None => Entry(entry.clone()),
    });
    let entries: Vec<Entry> = entries.filter(|entry| !entry.name().is_empty()).collect();
    let about = &answer["metadata"];
    let next = about["nextCursor"].as_str().or_else(|| about["next_cursor"].as_str());
    Ok((entries, next.filter(|next| !next.is_empty()).map(str::to_owned)))
}

/// The JSON document at an address.
pub async fn json_at(url: &Url) -> Result<Value, Error> {
    let wanted = Wanted {
        accept: "application/json",
        bytes_max: REGISTRY_BYTES_MAX,
        time_max: REGISTRY_TIME_MAX,
    };
    let bytes = fetch(url, wanted).await.map_err(|error| Error::Source(error.to_string()))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::Source(format!("{url} answered no JSON: {error}")))
}

/// An address beneath a base, whether that ends in a slash or not.
pub fn beneath(base: &Url, path: &str) -> Result<Url, Error> {
    let base = base.uri().to_string();
    let text = format!("{}/{path}", base.trim_end_matches('/'));
    text.parse().map_err(|error| Error::Source(format!("`{}` {error}", mcp::text::shorten(&text))))
}

/// A text as part of an address.
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
}
