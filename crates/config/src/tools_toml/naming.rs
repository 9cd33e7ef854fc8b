//! How items are shown: the style of their names, and how long the catalog may be.

use std::collections::BTreeMap;

use catalog::naming::{NameStyle, Prefix};
use catalog::snapshot::Rules;
use mcp::names::{UpstreamName, UriStyle};

use crate::Server;
use crate::dock::Named;
use crate::fault::Faults;
use crate::limits::{DESCRIPTION_CHARS_MAX, DESCRIPTION_CHARS_MIN};
use crate::reader::Section;

/// Reads what the top of a file, and its servers, say of it.
pub fn read(
    top: &mut Section<'_>,
    servers: &[Server],
    folders: &[Named],
    faults: &mut Faults<'_>,
) -> Rules {
    let uri_style = top.get("uri_style").and_then(|value| {
        let styles = [
            ("auto", None),
            ("underscore", Some(UriStyle::Underscore)),
            ("rfc", Some(UriStyle::Rfc)),
        ];
        value.choice(&styles, faults)
    });
    let name_style = top.get("name_style").and_then(|value| {
        let styles = [("auto", NameStyle::Auto), ("as-is", NameStyle::AsIs)];
        value.choice(&styles, faults)
    });
    let most = top.get("description_max");
    let most =
        most.and_then(|value| value.number(DESCRIPTION_CHARS_MIN, DESCRIPTION_CHARS_MAX, faults));
    Rules {
        uri_style: uri_style.flatten(),
        name_style: name_style.unwrap_or_default(),
        prefixes: prefixes(servers, folders),
        description_max: most.and_then(|most| usize::try_from(most).ok()),
        ..Rules::default()
    }
}

/// The servers whose names do not always have a prefix.
fn prefixes(servers: &[Server], folders: &[Named]) -> BTreeMap<UpstreamName, Prefix> {
    let servers = servers.iter().map(|server| (&server.settings.name, server.prefix));
    let folders = folders.iter().map(|folder| (&folder.name, folder.prefix));
    let others = servers.chain(folders).filter(|(_, prefix)| *prefix != Prefix::Always);
    others.map(|(name, prefix)| (name.clone(), prefix)).collect()
}
