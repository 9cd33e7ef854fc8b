//! Tools that a worker could not load: nobody can list them, but who calls one, and could see it, is told why.

use std::sync::Arc;

use catalog::ceiling::Ceiling;
use catalog::error::Error as Refusal;
use catalog::snapshot::Offer;
use catalog::view::View;
use mcp::items::Kind;
use upstream::error::Error as Problem;

use crate::Gateway;
use crate::error::Error;
use crate::refresh::now;

impl Gateway {
    /// Why a tool can't be called that a view does not have: it may be one that its worker has lost, or of a folder that is not served.
    pub(crate) fn why_unknown(&self, view: &View, asked: &str, refusal: Refusal) -> Error {
        let is_unknown = matches!(refusal, Refusal::Unknown { .. });
        let find = || self.find_lost(view, asked).or_else(|| self.refused_folder_of(view, asked));
        let found = if is_unknown { find() } else { None };
        found.unwrap_or_else(|| refusal.into())
    }

    /// What a call of a lost tool fails with. Who may know of it is decided as if it were there.
    fn find_lost(&self, view: &View, asked: &str) -> Option<Error> {
        let members = self.members();
        let mut lost = Vec::new();
        for (namespace, upstream) in members.iter() {
            let tools = upstream.lost();
            if !tools.is_empty() {
                lost.push((namespace, upstream.name(), tools));
            }
        }
        if lost.is_empty() {
            return None;
        }
        let offer = lost.iter().map(|(namespace, upstream, lost)| Offer {
            upstream,
            namespace,
            own_namespace: namespace,
            inventory: &lost.tools,
            purpose: None,
            toolset: None,
        });
        let scope = view.scope();
        let catalog = scope.assemble(&offer.collect::<Vec<_>>(), &self.0.rules, None);
        let ceiling = Ceiling::of(&catalog, &catalog, &self.0.policies, scope, now());
        let selection = view.selection().clone();
        let view = View::new(Arc::new(catalog), Arc::new(ceiling), selection, Arc::clone(scope));
        let target = view.resolve(Kind::Tool, asked).ok()?;
        let upstream = &target.item.origin.upstream;
        let (.., lost) = lost.iter().find(|(_, name, _)| *name == upstream)?;
        let failure = lost.failure(target.upstream_name)?.clone();
        let problem = Problem::Tool { upstream: upstream.clone(), failure };
        Some(Error::Upstream(problem).of(target.item))
    }
}
