//! Calls of control tools: what a client does to its own selection.

mod dynamic;
mod toolset;

use std::sync::Arc;

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
use crate::refresh::changed_lists;

impl Gateway {
    /// Carries out a call of a control tool.
    pub(crate) async fn control(
        &self,
        asking: &Asking<'_>,
        view: &View,
        params: &Params,
    ) -> Result<Outcome, Error> {
        let arguments = params.arguments();
        let habits = &asking.client.habits;
        let times_told = habits.times_told();
        let result = match view.scope().surface {
            Surface::Toolset => self.control_toolsets(asking, params.name(), arguments).await?,
            Surface::Dynamic | Surface::Static => {
                self.control_dynamic(asking, params.name(), arguments).await?
            }
            _ => activate_items(asking, arguments)?,
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
}

/// Gives a client another view, made of the one it has, and tells it which lists differ.
fn change<T>(
    asking: &Asking<'_>,
    make: impl FnOnce(&View) -> Result<(View, T), String>,
) -> Result<T, Error> {
    try_change(asking, make).map_err(Error::Control)
}

/// The same, where what is wrong is told in another manner.
fn try_change<T, E>(
    asking: &Asking<'_>,
    make: impl FnOnce(&View) -> Result<(View, T), E>,
) -> Result<T, E> {
    let (made, kinds) = asking.client.change_view(|view| {
        let (new, made) = make(view)?;
        let kinds = changed_lists(view, &new);
        *view = Arc::new(new);
        Ok((made, kinds))
    })?;
    asking.client.announce(&kinds, Some(asking.outlet.outbox()));
    Ok(made)
}

/// Carries out a call of `toolman_activate`.
fn activate_items(asking: &Asking<'_>, arguments: Option<&str>) -> Result<String, Error> {
    let (activation, reads) = change(asking, |view| {
        let activation = activate::apply(view, arguments.map(str::as_bytes))?;
        let reads = view.scope().profile.reads;
        Ok((view.selecting(activation.selection.clone()), (activation, reads)))
    })?;
    let confirmation = verdict::object(Ok(&activation.confirmation));
    Ok(reply::result(&confirmation, activation.definitions.as_ref(), reads))
}
