//! The meta-tools of the surfaces `dynamic` and `static`.

use catalog::surface::Surface;
use catalog::surface::dynamic::{self, Answer, Failure, Told};
use catalog::surface::reply::{self, Definitions};
use catalog::toolset::Toolset;
use catalog::view::View;
use mcp::names::Namespace;
use upstream::supervisor::{Phase, Upstream};

use crate::Gateway;
use crate::client::Client;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::lazy::may_hold;

impl Gateway {
    /// Carries out a call of one of the meta-tools.
    pub(super) async fn control_dynamic(
        &self,
        asking: &Asking<'_>,
        name: &str,
        arguments: Option<&str>,
    ) -> Result<String, Error> {
        let view = asking.client.view();
        let told = self.told(&view);
        let answer = match name {
            dynamic::LIST_TOOLS => Ok(told.list_tools()),
            dynamic::LIST_TOOLSETS => Ok(told.list_toolsets()),
            dynamic::DESCRIBE => dynamic::named(arguments).and_then(|name| told.describe(&name)),
            dynamic::ENABLE => {
                let enabled = self.enable_toolset(asking, &view, arguments).await;
                return Ok(enabled.unwrap_or_else(dynamic::refusal));
            }
            dynamic::DISABLE => self.disable_toolset(asking, arguments),
            _ => return Err(Error::Method(name.to_owned())),
        };
        Ok(dynamic::tool_result(answer))
    }

    /// Which toolsets there are and which are on, where a client has toolsets: the members of a JSON object.
    /// TC-27
    pub fn toolset_status(&self, client: &Client) -> Option<String> {
        let view = client.view();
        let has_them = matches!(view.scope().surface, Surface::Dynamic | Surface::Static);
        let status = has_them.then(|| self.told(&view).status().to_string())?;
        status.strip_prefix('{')?.strip_suffix('}').map(str::to_owned)
    }

    async fn enable_toolset(
        &self,
        asking: &Asking<'_>,
        view: &View,
        arguments: Option<&str>,
    ) -> Result<String, Failure> {
        let name = dynamic::named(arguments)?;
        // What can't be enabled starts nothing.
        self.told(view).enable(&name)?;
        let place = view.catalog().toolsets().find(&name).map(|(place, _)| place);
        // However this ends, also if the client leaves: what was started for nothing may rest again.
        let lease = place.map(|place| self.lease(view, place));
        if let Some(lease) = &lease {
            lease.started().await;
        }
        self.try_change(asking, |view| {
            let new = view.selecting(self.told(view).enable(&name)?);
            let toolset = new.catalog().toolsets().find(&name);
            let troubles = toolset.map(|(_, toolset)| self.troubles(&new, toolset));
            let said = dynamic::enabled(&new, &name, &troubles.unwrap_or_default());
            let definitions = Definitions::of_new(view, &new);
            let reads = view.scope().profile.reads;
            let result = reply::result(&said.to_string(), definitions.as_ref(), reads);
            Ok((new, result))
        })
    }

    fn disable_toolset(&self, asking: &Asking<'_>, arguments: Option<&str>) -> Answer {
        let name = dynamic::named(arguments)?;
        let said = self.try_change(asking, |view| {
            let selection = self.told(view).disable(&name)?;
            Ok::<_, Failure>((view.selecting(selection), dynamic::disabled(&name)))
        })?;
        self.review_needs();
        Ok(said)
    }

    /// The toolsets that a client is told of.
    fn told<'v>(&self, view: &'v View) -> Told<'v> {
        Told::of(view, |toolset| !self.awaited(view, toolset).is_empty())
    }

    /// What a client should know of servers that a toolset may need and that are not there. TC-14
    fn troubles(&self, view: &View, toolset: &Toolset) -> Vec<String> {
        let trouble = |(_, upstream): &(Namespace, Upstream)| {
            let name = upstream.name();
            match upstream.status().phase {
                Phase::Waiting { reason } | Phase::Down { reason } | Phase::LeftOut { reason } => {
                    format!("server `{name}` is not there: it {}", reason.replace('\n', " "))
                }
                Phase::Resting
                | Phase::Installing
                | Phase::Starting
                | Phase::Late
                | Phase::Ready => {
                    format!("server `{name}` has not answered yet; what it has is listed later")
                }
            }
        };
        self.awaited(view, toolset).iter().map(trouble).collect()
    }

    /// The upstreams that are not there and may have something for a toolset.
    fn awaited(&self, view: &View, toolset: &Toolset) -> Vec<(Namespace, Upstream)> {
        let members = self.members();
        let is_awaited = |member: &&(Namespace, Upstream)| {
            let (namespace, upstream) = member;
            !upstream.is_known()
                && view.scope().holds(namespace)
                && self.is_shown(view, namespace, upstream)
                && may_hold(&members.list, toolset, member)
        };
        members.list.iter().filter(is_awaited).cloned().collect()
    }
}
