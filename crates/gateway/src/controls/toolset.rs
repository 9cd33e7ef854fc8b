//! The control tools of the surface `toolset`: building, saving, equipping.

use std::sync::Arc;

use catalog::snapshot::Item;
use catalog::surface::reply::{self, Definitions};
use catalog::surface::toolset::{self, Wish};
use catalog::toolset::limits::check_notes;
use catalog::toolset::{Reference, Toolset, choice};
use catalog::view::View;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::change;
use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::library::Document;

impl Gateway {
    /// Carries out a call of one of the control tools.
    pub(super) async fn control_toolsets(
        &self,
        asking: &Asking<'_>,
        name: &str,
        arguments: Option<&str>,
    ) -> Result<String, Error> {
        let wish = Wish::parse(name, arguments).map_err(Error::Control)?;
        let before = asking.client.view();
        let result = match wish {
            Wish::ListAvailable => toolset::available(&asking.client.view()),
            Wish::ListSaved => self.list_saved(asking).await?,
            Wish::GetActive => toolset::active(&asking.client.view()),
            Wish::Build { name, tools, description, equips } => {
                self.build(asking, name, &tools, description, equips).await?
            }
            Wish::Equip { name } => self.equip(asking, &name).await?,
            Wish::Unequip => self.unequip(asking).await?,
            Wish::Delete { name, is_confirmed } => self.delete(asking, name, is_confirmed).await?,
            Wish::Annotate { tool, notes } => {
                check_notes(&notes).map_err(|flaw| Error::Control(flaw.to_string()))?;
                self.annotate(asking, &tool, notes).await?
            }
        };
        let view = asking.client.view();
        // Who takes a toolset off goes back to what it has listed before.
        let is_asked_for = matches!(name, "build-toolset" | "equip-toolset")
            && Arc::ptr_eq(before.catalog(), view.catalog());
        let definitions = is_asked_for.then(|| Definitions::of_new(&before, &view)).flatten();
        let reads = view.scope().profile.reads;
        Ok(reply::result(&result.to_string(), definitions.as_ref(), reads))
    }

    async fn list_saved(&self, asking: &Asking<'_>) -> Result<Value, Error> {
        let document = self.saved().await?;
        let view = asking.client.view();
        let active = view.selection().equipped.as_ref().map(|toolset| toolset.name.clone());
        let toolsets: Vec<_> = document
            .toolsets
            .values()
            .map(|toolset| toolset::info(toolset, &view, Some(&toolset.name) == active.as_ref()))
            .collect();
        Ok(json!({"success": true, "toolsets": toolsets}))
    }

    async fn build(
        &self,
        asking: &Asking<'_>,
        name: String,
        tools: &[toolset::Named],
        description: Option<String>,
        equips: bool,
    ) -> Result<Value, Error> {
        let view = asking.client.view();
        let mut tools = toolset::find(&view, tools).map_err(Error::Control)?;
        let counts = |item: &Item| view.ceiling().holds(item);
        let told = choice::add_required(&mut tools, view.catalog(), counts);
        let toolset = Arc::new(Toolset {
            name: name.clone().into(),
            description,
            references: tools.into_iter().map(Reference::pin).collect(),
            ..Toolset::default()
        });
        toolset.check().map_err(|flaw| Error::Control(flaw.to_string()))?;
        let saved = Arc::clone(&toolset);
        let document = self
            .save(move |document| {
                if document.toolsets.contains_key(&saved.name) {
                    let name = &saved.name;
                    return Err(format!(
                        "there is a toolset `{name}` already; choose another name"
                    ));
                }
                document.toolsets.insert(saved.name.clone(), Arc::clone(&saved));
                Ok(())
            })
            .await?;
        if equips {
            self.equip(asking, &name).await?;
        }
        let view = asking.client.view();
        // As it was saved, with its date.
        let toolset = document.toolsets.get(&toolset.name).unwrap_or(&toolset);
        let count = toolset.references.len();
        let warnings = [told, toolset::resolve(toolset, &view).warnings].concat();
        Ok(json!({"success": true, "toolsetName": name, "autoEquipped": equips,
            "message": format!("saved `{name}` with {count} tools"),
            "toolset": toolset::info(toolset, &view, equips),
            "warnings": warnings}))
    }

    async fn equip(&self, asking: &Asking<'_>, name: &str) -> Result<Value, Error> {
        let document = self.saved().await?;
        let Some(toolset) = document.toolsets.get(name) else {
            let known: Vec<_> = document.toolsets.keys().map(|name| format!("`{name}`")).collect();
            let hint = match known.as_slice() {
                [] => "none is saved; make one with `build-toolset`".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            let name = mcp::text::shorten(name);
            return Err(Error::Control(format!("no toolset is named `{name}`; {hint}")));
        };
        let (toolset, mut told) = self.renew_pins(&asking.client.view(), toolset).await;
        let info = change(asking, |view| {
            let mut selection = view.selection().clone();
            selection.equipped = Some(Arc::clone(&toolset));
            let new = view.selecting(selection);
            let info = toolset::info(&toolset, &new, true);
            Ok((new, info))
        })?;
        let equipped: Box<str> = name.into();
        self.save(move |document| {
            document.last_equipped = Some(equipped.clone());
            Ok(())
        })
        .await?;
        let (shown, all) = (&info["availableTools"], &info["toolCount"]);
        let warnings = info["warnings"].as_array().into_iter().flatten();
        told.extend(warnings.filter_map(|warning| Some(warning.as_str()?.to_owned())));
        Ok(
            json!({"success": true, "message": format!("`{name}` is equipped: {shown} of {all} tools"),
            "toolset": info, "warnings": told}),
        )
    }

    /// A toolset whose pins of hypertool are ours from now on, and what is to be told of that. Such a pin has
    /// never covered the description, so nothing is lost by taking the tool as it is now. What can't be saved
    /// stays as it was, with the warning that it has.
    async fn renew_pins(&self, view: &View, toolset: &Arc<Toolset>) -> (Arc<Toolset>, Vec<String>) {
        let resolution = toolset::resolve(toolset, view);
        let Some(renewed) = resolution.upgraded(toolset, view.catalog()) else {
            return (Arc::clone(toolset), Vec::new());
        };
        let old = toolset.references.clone();
        let saved = self.save(move |document| {
            // Somebody else may have changed it meanwhile.
            let known = document.toolsets.get(&renewed.name);
            if known.is_none_or(|known| known.references != old) {
                return Err("it has changed meanwhile".to_owned());
            }
            document.toolsets.insert(renewed.name.clone(), Arc::new(renewed.clone()));
            Ok(())
        });
        let saved = saved.await.ok().and_then(|saved| saved.toolsets.get(&toolset.name).cloned());
        let Some(saved) = saved else { return (Arc::clone(toolset), Vec::new()) };
        let is_renewed = |(old, new): &(&Reference, &Reference)| old != new;
        let pairs = toolset.references.iter().zip(&saved.references).filter(is_renewed);
        let told = pairs.map(|(_, new)| {
            let name = new.name.as_deref().unwrap_or_default();
            format!(
                "`{name}` was pinned by a hash of hypertool, which leaves out its description; all of it \
                 is pinned now, as it is"
            )
        });
        let told: Vec<_> = told.collect();
        for words in &told {
            tracing::warn!(toolset = &*toolset.name, "{words}");
        }
        (saved, told)
    }

    async fn unequip(&self, asking: &Asking<'_>) -> Result<Value, Error> {
        let former = drop_equipped(asking, |_| true)?;
        self.save(|document| {
            document.last_equipped = None;
            Ok(())
        })
        .await?;
        let message = match former {
            Some(name) => format!("`{name}` is no longer equipped; all tools are shown"),
            None => "no toolset was equipped; all tools are shown".to_owned(),
        };
        Ok(json!({"success": true, "message": message}))
    }

    async fn delete(
        &self,
        asking: &Asking<'_>,
        name: String,
        is_confirmed: bool,
    ) -> Result<Value, Error> {
        if !is_confirmed {
            let words =
                format!("`{}` was not deleted; pass `confirm: true`", mcp::text::shorten(&name));
            return Err(Error::Control(words));
        }
        let gone: Box<str> = name.clone().into();
        self.save(move |document| {
            if document.toolsets.remove(&gone).is_none() {
                let name = mcp::text::shorten(&gone);
                return Err(format!("no toolset is named `{name}`; see `list-saved-toolsets`"));
            }
            document.last_equipped = document.last_equipped.take().filter(|name| *name != gone);
            Ok(())
        })
        .await?;
        drop_equipped(asking, |toolset| *toolset.name == *name)?;
        Ok(json!({"success": true, "message": format!("`{name}` is deleted")}))
    }

    async fn annotate(
        &self,
        asking: &Asking<'_>,
        tool: &toolset::Named,
        notes: Vec<catalog::toolset::Note>,
    ) -> Result<Value, Error> {
        let view = asking.client.view();
        let Some(equipped) = view.selection().equipped.clone() else {
            let words =
                "no toolset is equipped, and notes belong to one; use `equip-toolset` first";
            return Err(Error::Control(words.to_owned()));
        };
        let items = toolset::find(&view, std::slice::from_ref(tool)).map_err(Error::Control)?;
        let item = items.into_iter().find(|item| view.is_visible(item));
        let Some(item) = item else {
            let words = "this tool is not in the equipped toolset; see `get-active-toolset`";
            return Err(Error::Control(words.to_owned()));
        };
        let (reference, shown) = (toolset::noted(item), item.name.to_string());
        let count = notes.len();
        let document = self
            .save(move |document| {
                let name = &equipped.name;
                let Some(saved) = document.toolsets.get(name) else {
                    return Err(format!("toolset `{name}` is no longer saved"));
                };
                let mut changed = Toolset::clone(saved);
                changed.annotate(&reference, &notes);
                document.toolsets.insert(name.clone(), Arc::new(changed));
                Ok(())
            })
            .await?;
        change(asking, |view| {
            let mut selection = view.selection().clone();
            let name = selection.equipped.as_ref().map(|toolset| toolset.name.clone());
            if let Some(saved) = name.and_then(|name| document.toolsets.get(&name)) {
                selection.equipped = Some(Arc::clone(saved));
            }
            Ok((view.selecting(selection), ()))
        })?;
        Ok(json!({"success": true, "message": format!("added {count} notes to `{shown}`")}))
    }

    async fn saved(&self) -> Result<Document, Error> {
        let library = Arc::clone(&self.0.library);
        let read = spawn_blocking(move || library.read()).await;
        read.unwrap_or_else(|error| Err(error.to_string())).map_err(Error::Control)
    }

    /// Saves a change; not on the way of others, since files are slow.
    async fn save(
        &self,
        mut change: impl FnMut(&mut Document) -> Result<(), String> + Send + 'static,
    ) -> Result<Document, Error> {
        let library = Arc::clone(&self.0.library);
        let saved = spawn_blocking(move || library.update(&mut change)).await;
        saved.unwrap_or_else(|error| Err(error.to_string())).map_err(Error::Control)
    }
}

/// Takes off what a client has equipped, if it is such; its name.
fn drop_equipped(
    asking: &Asking<'_>,
    is_such: impl Fn(&Toolset) -> bool,
) -> Result<Option<Box<str>>, Error> {
    change(asking, |view| {
        let mut selection = view.selection().clone();
        let former = selection.equipped.take_if(|toolset| is_such(toolset));
        Ok((view.selecting(selection), former.map(|toolset| toolset.name.clone())))
    })
}
