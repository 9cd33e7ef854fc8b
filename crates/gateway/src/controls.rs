//! Calls of control tools: what a client does to its own selection.

mod dynamic;
mod toolset;

use std::sync::Arc;

use catalog::surface::{Surface, activate};
use catalog::view::View;
use mcp::params::Params;
use mcp::rpc::{Outcome, Raw};
use mcp::translate;
use mcp::verdict;
use mcp::version::Era;

use crate::Gateway;
use crate::client::Client;
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
        let arguments = params.arguments();
        let result = match view.scope().surface {
            Surface::Toolset => self.control_toolsets(asking, params.name(), arguments).await?,
            Surface::Dynamic | Surface::Static => {
                self.control_dynamic(asking, params.name(), arguments).await?
            }
            _ => self.activate_items(asking, arguments)?,
        };
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
        let activation = self.change(asking.client, |view| {
            let activation = activate::apply(view, arguments.map(str::as_bytes))?;
            Ok((view.selecting(activation.selection.clone()), activation))
        })?;
        let result = Ok(activation.confirmation.as_str());
        Ok(verdict::tool_result(result, activation.definitions.as_deref()))
    }

    /// Gives a client another view, made of the one it has; the error is for the model.
    fn change<T>(
        &self,
        client: &Arc<Client>,
        make: impl FnOnce(&View) -> Result<(View, T), String>,
    ) -> Result<T, Error> {
        self.try_change(client, make).map_err(Error::Control)
    }
}
