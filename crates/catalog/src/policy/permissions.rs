//! Permissions: which toolsets a client is granted, by what it shows or by who it is. TC-08

use crate::patterns::Patterns;
use crate::toolset::{ToolsetPlace, Toolsets};

/// Where the granted toolsets are named.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// In a header of the client, if that is to be believed.
    pub from_header: bool,
    /// By client: names and patterns, each with its toolsets.
    pub clients: Vec<(Box<str>, Patterns, Vec<Box<str>>)>,
    /// For clients that nothing else is about.
    pub default: Vec<Box<str>>,
    /// Whether a client may leave out its id.
    pub derives_client: bool,
}

impl Permissions {
    /// The toolsets of a client that shows `header`. Names that no toolset has are left out.
    pub fn granted(
        &self,
        toolsets: &Toolsets,
        client: Option<&str>,
        header: Option<&str>,
    ) -> Vec<ToolsetPlace> {
        if self.from_header {
            return toolsets.places(header.unwrap_or_default().split(','));
        }
        let exact = |client: &str| self.clients.iter().find(|(name, ..)| &**name == client);
        let like =
            |client: &str| self.clients.iter().find(|(_, names, _)| names.matches_name(client));
        let own = client.and_then(|client| exact(client).or_else(|| like(client)));
        let names = own.map_or(&self.default, |(.., names)| names);
        toolsets.places(names.iter().map(|name| &**name))
    }
}

#[cfg(test)]
mod tests {
    use super::Permissions;
    use crate::patterns::Patterns;
    use crate::toolset::{Toolset, Toolsets};

    fn toolsets() -> Toolsets {
        let toolset = |name: &str| Toolset { name: name.into(), ..Toolset::default() };
        Toolsets::new(["read", "write", "admin"].map(toolset).into())
    }

    fn granted(permissions: &Permissions, client: Option<&str>, header: Option<&str>) -> Vec<u16> {
        let places = permissions.granted(&toolsets(), client, header);
        places.iter().map(|place| place.0).collect()
    }

    #[test]
    fn header_names_toolsets_and_unknown_ones_are_left_out() {
        // TC-08, TC-13, TC-34
        let permissions = Permissions { from_header: true, ..Permissions::default() };
        assert_eq!(granted(&permissions, None, Some("write, read,write ,none,")), [0, 1]);
        assert!(granted(&permissions, None, Some("none;drop")).is_empty());
        assert!(granted(&permissions, Some("ci"), None).is_empty());
    }

    #[test]
    fn config_grants_by_exact_id_then_by_pattern_then_by_default() {
        // TC-08
        let entry = |name: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).into()).collect();
            (name.into(), Patterns::parse(&[name]).unwrap(), names)
        };
        let permissions = Permissions {
            clients: vec![entry("ci-*", &["read"]), entry("ci-7", &["admin", "gone"])],
            default: vec!["write".into()],
            ..Permissions::default()
        };
        assert_eq!(granted(&permissions, Some("ci-7"), Some("read")), [2]);
        assert_eq!(granted(&permissions, Some("ci-8"), None), [0]);
        assert_eq!(granted(&permissions, Some("dev"), None), [1]);
        assert_eq!(granted(&permissions, None, None), [1]);
    }
}
