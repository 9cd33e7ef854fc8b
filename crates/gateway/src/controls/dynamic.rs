//! The meta-tools of the surfaces `dynamic` and `static`.

use catalog::surface::dynamic::{self, Answer, Failure, Told};
use catalog::toolset::Toolset;
use catalog::view::View;
use mcp::names::{Namespace, UpstreamName};
use upstream::supervisor::Phase;

use super::try_change;
use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

impl Gateway {
    /// Carries out a call of one of the meta-tools.
    #[expect(clippy::unused_async, reason = "an upstream may have to be started first")]
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
            dynamic::ENABLE => self.enable_toolset(asking, arguments),
            dynamic::DISABLE => self.disable_toolset(asking, arguments),
            _ => return Err(Error::Method(name.to_owned())),
        };
        Ok(dynamic::tool_result(answer))
    }

    fn enable_toolset(&self, asking: &Asking<'_>, arguments: Option<&str>) -> Answer {
        let name = dynamic::named(arguments)?;
        try_change(asking.client, |view| {
            let new = view.selecting(self.told(view).enable(&name)?);
            let said = dynamic::enabled(&new, &name, &[]);
            Ok((new, said))
        })
    }

    fn disable_toolset(&self, asking: &Asking<'_>, arguments: Option<&str>) -> Answer {
        let name = dynamic::named(arguments)?;
        try_change(asking.client, |view| {
            let selection = self.told(view).disable(&name)?;
            Ok::<_, Failure>((view.selecting(selection), dynamic::disabled(&name)))
        })
    }

    /// The toolsets that a client is told of.
    pub(crate) fn told<'v>(&self, view: &'v View) -> Told<'v> {
        Told::of(view, |toolset| {
            self.upstreams().any(|(namespace, upstream)| {
                !matches!(upstream.status().phase, Phase::Ready)
                    && view.scope().holds(namespace)
                    && self.is_shown(view, namespace, upstream)
                    && self.may_hold(toolset, namespace, upstream.name())
            })
        })
    }

    /// Whether something of an upstream may be in a toolset, as far as that is known without asking it.
    fn may_hold(&self, toolset: &Toolset, namespace: &Namespace, name: &UpstreamName) -> bool {
        let others = self.upstreams().filter(|(_, other)| other.name() != name);
        let others: Vec<_> = others
            .flat_map(|(namespace, other)| [namespace.as_str(), other.name().as_str()])
            .collect();
        toolset.patterns.may_concern(&[namespace.as_str(), name.as_str()], &others)
    }
}
