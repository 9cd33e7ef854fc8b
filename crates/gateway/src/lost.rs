//! Tools that a worker could not load: nobody can list them, but who calls one, and could see it, is told why.

use catalog::error::Error as Refusal;
use catalog::view::View;
use mcp::items::Kind;
use upstream::error::Error as Problem;

use crate::Gateway;
use crate::absent::offer;
use crate::error::Error;

impl Gateway {
    /// What a call of a lost tool fails with. Who may know of it is decided as if it were there.
    pub(crate) fn find_lost(&self, view: &View, refusal: &Refusal) -> Option<Error> {
        let Refusal::Unknown { kind: Kind::Tool, asked, .. } = refusal else { return None };
        let members = self.members();
        let lost =
            members.iter().map(|(namespace, upstream)| (namespace, upstream, upstream.lost()));
        let lost: Vec<_> = lost.filter(|(.., lost)| !lost.is_empty()).collect();
        let offers: Vec<_> = lost
            .iter()
            .map(|(namespace, upstream, lost)| offer(namespace, upstream, &lost.tools))
            .collect();
        let item = self.find_among(view, &offers, Kind::Tool, asked)?;
        let upstream = &item.origin.upstream;
        let (.., lost) = lost.iter().find(|(_, other, _)| other.name() == upstream)?;
        let failure = lost.failure(&item.origin.name)?.clone();
        Some(Error::Upstream(Problem::Tool { upstream: upstream.clone(), failure }).of(&item))
    }
}
