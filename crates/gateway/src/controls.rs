//! Calls of control tools: what a client does to its own selection.

mod dynamic;
mod toolset;

use catalog::surface::{Surface, activate, reply};
use catalog::view::View;
use mcp::params::Params;
use mcp::rpc::{Outcome, Raw};
use mcp::translate;
use mcp::verdict;
use mcp::version::Era;

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;

impl Gateway {
    /// Carries out a call of a control tool.
    pub(crate) async fn control(
        &self,
        asking: &Asking<'_>,
        view: &View,
        params: &Params,
    ) -> Result<Outcome, Error> {
        let arguments = params.arguments().filter(|arguments| *arguments != "null");
        let habits = &asking.client.habits;
        let times_told = habits.times_told();
        let result = match view.scope().surface {
            Surface::Toolset => self.control_toolsets(asking, params.name(), arguments).await?,
            Surface::Dynamic | Surface::Static => {
                self.control_dynamic(asking, params.name(), arguments).await?
            }
            _ => self.activate_items(asking, arguments)?,
        };
        if habits.times_told() != times_told {
            // What is on now is of use once the client has listed it: many take up changes after the reply only.
            Box::pin(self.relisted(asking.client)).await;
        }
        let result = Raw::trusted(result);
        Ok(Outcome::Result(match asking.era {
            Era::Legacy => result,
            Era::Modern => translate::complete(&result, false),
        }))
    }

    /// Carries out a call of `toolman_activate`.
    fn activate_items(
        &self,
        asking: &Asking<'_>,
        arguments: Option<&str>,
    ) -> Result<String, Error> {
        let (activation, reads) = self.change(asking, |view| {
            let activation = activate::apply(view, arguments.map(str::as_bytes))?;
            let reads = view.scope().profile.reads;
            Ok((view.selecting(activation.selection.clone()), (activation, reads)))
        })?;
        let confirmation = verdict::object(Ok(&activation.confirmation));
        Ok(reply::result(&confirmation, activation.definitions.as_ref(), reads))
    }

    /// Gives a client another view, made of the one it has; the error is for the model.
    fn change<T>(
        &self,
        asking: &Asking<'_>,
        make: impl FnOnce(&View) -> Result<(View, T), String>,
    ) -> Result<T, Error> {
        self.try_change(asking, make).map_err(Error::Control)
    }
}
