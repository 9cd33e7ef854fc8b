//! Lists, as the view has rendered them; a list of tools also says which folders are not in it, and why.

use bytes::Bytes;
use catalog::view::View;
use mcp::items::Kind;
use mcp::json;
use mcp::rpc::{Outcome, Raw};
use mcp::version::Era;

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

/// The member of `_meta` that has the folders which are not in a list, each with the reason.
const UNSERVED: &str = "toolman/unserved";

impl Gateway {
    /// A list; there is one page only.
    pub(crate) fn list(
        &self,
        asking: &Asking<'_>,
        view: &View,
        kind: Kind,
    ) -> Result<Outcome, Error> {
        let method = kind.list_method();
        if asking.era == Era::Modern && !self.offers(view, kind) {
            return Err(Error::Method(method.to_owned()));
        }
        let cursor = asking.request.params.as_ref().map(|params| params.members(["cursor"]));
        match cursor.transpose().map_err(|fault| Error::Params { method, fault })? {
            None | Some([None | Some("null")]) => {
                if kind == Kind::Tool {
                    self.note_listing(asking.client);
                }
                let list = view.list_in(kind, asking.era);
                Ok(Outcome::Result(Raw::trusted(self.with_unserved(view, kind, list))))
            }
            Some([Some(_)]) => Err(Error::Cursor),
        }
    }

    /// A list of tools, with the folders that are missing from it.
    fn with_unserved(&self, view: &View, kind: Kind, list: &Bytes) -> Bytes {
        if kind != Kind::Tool || !self.0.members.load().has_unserved {
            return list.clone();
        }
        let members = self.members();
        let unserved: Vec<_> = self
            .unserved_in(&members, view)
            .map(|(namespace, reason)| {
                format!("{}:{}", json::quote(namespace.as_str()), json::quote(&reason))
            })
            .collect();
        if unserved.is_empty() {
            return list.clone();
        }
        let meta = format!(r#""_meta":{{"{UNSERVED}":{{{}}}}},"#, unserved.join(","));
        json::splice(list, &[(1..1, meta.as_bytes())]).into()
    }
}
