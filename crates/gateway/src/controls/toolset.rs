//! The control tools of the surface `toolset`: building, saving, equipping.

use std::sync::Arc;

use catalog::snapshot::Item;
use catalog::surface::reply::{self, Definitions};
use catalog::surface::toolset::{self, Wish};
use catalog::toolset::limits::check_notes;
use catalog::toolset::{Owner, Reference, Toolset, choice};
use catalog::view::View;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::library::{Document, VERSION};

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
            Wish::ListAvailable(wanted) => {
                toolset::available(&asking.client.view(), &wanted).map_err(Error::Control)?
            }
            Wish::ListSaved => self.list_saved(asking).await?,
            Wish::GetActive => toolset::active(&asking.client.view()),
            Wish::Build { name, tools, description, equips } => {
                self.build(asking, name, &tools, description, equips).await?
            }
            Wish::Equip { name } => self.equip(asking, &name).await?,
            Wish::Unequip => self.unequip(asking)?,
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
        let active = view.selection().equipped.as_ref().map(|toolset| toolset.key());
        let shown = document.shown_to(agent(asking)).filter(|known| toolset::is_told(known, &view));
        let about = |known: &Arc<Toolset>| toolset::info(known, &view, Some(known.key()) == active);
        let toolsets: Vec<_> = shown.map(about).collect();
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
        let hides_names = !view.ceiling().is_open();
        let told = choice::add_required(&mut tools, view.catalog(), counts, hides_names);
        let toolset = Toolset {
            name: name.clone().into(),
            owner: Owner::Agent(agent(asking).map(Into::into)),
            description,
            version: Some(VERSION.to_owned()),
            references: tools.into_iter().map(Reference::pin).collect(),
            ..Toolset::default()
        };
        let saved = toolset.clone();
        let document = self.save(move |document| document.add(saved.clone())).await?;
        if equips {
            self.equip(asking, &name).await?;
        }
        let view = asking.client.view();
        // As it was saved, with its date.
        let toolset = document.toolsets.get(&*toolset.key()).map_or(&toolset, |saved| &**saved);
        let count = toolset.references.len();
        let warnings = [told, toolset::resolve(toolset, &view).warnings].concat();
        Ok(json!({"success": true, "toolsetName": name, "autoEquipped": equips,
            "message": format!("saved `{name}` with {count} tools"),
            "toolset": toolset::info(toolset, &view, equips),
            "warnings": warnings}))
    }

    async fn equip(&self, asking: &Asking<'_>, name: &str) -> Result<Value, Error> {
        let document = self.saved().await?;
        let view = asking.client.view();
        let found = document.find(agent(asking), name);
        let Some(toolset) = found.filter(|known| toolset::is_told(known, &view)) else {
            let known = document.shown_to(agent(asking));
            let known = known.filter(|known| toolset::is_told(known, &view));
            let known: Vec<_> = known.map(|known| format!("`{}`", known.name)).collect();
            let hint = match known.as_slice() {
                [] => "none is saved; make one with `build-toolset`".to_owned(),
                known => format!("there are {}", known.join(", ")),
            };
            let name = mcp::text::shorten(name);
            return Err(Error::Control(format!("no toolset is named `{name}`; {hint}")));
        };
        let (toolset, mut told) = self.renew_pins(&view, toolset).await;
        let info = self.change(asking, |view| {
            let mut selection = view.selection().clone();
            selection.equipped = Some(Arc::clone(&toolset));
            let new = view.selecting(selection);
            let info = toolset::info(&toolset, &new, true);
            Ok((new, info))
        })?;
        let (shown, all) = (&info["availableTools"], &info["toolCount"]);
        let warnings = info["warnings"].as_array().into_iter().flatten();
        told.extend(warnings.filter_map(|warning| Some(warning.as_str()?.to_owned())));
        Ok(
            json!({"success": true, "message": format!("`{name}` is equipped: {shown} of {all} tools"),
            "toolset": info, "warnings": told}),
        )
    }

    /// A client's own toolset whose pins of hypertool are ours from now on, and what is to be told of that. Such a
    /// pin has never covered the description, so nothing is lost by taking the tool as it is now. What can't be saved
    /// stays as it was, with the warning that it has; and so does what is the operator's to approve.
    async fn renew_pins(&self, view: &View, toolset: &Arc<Toolset>) -> (Arc<Toolset>, Vec<String>) {
        let is_own = toolset.owner != Owner::Operator;
        let renewed = toolset::resolve(toolset, view).upgraded(toolset, view.catalog());
        let Some(renewed) = renewed.filter(|_| is_own) else {
            return (Arc::clone(toolset), Vec::new());
        };
        let old = toolset.references.clone();
        let saved = self.save(move |document| {
            // Somebody else may have changed it meanwhile.
            let key = renewed.key().into_boxed_str();
            let known = document.toolsets.get(&key);
            if known.is_none_or(|known| known.references != old) {
                return Err("it has changed meanwhile".to_owned());
            }
            document.toolsets.insert(key, Arc::new(renewed.clone()));
            Ok(())
        });
        let saved = saved.await.ok().and_then(|saved| saved.toolsets.get(&*toolset.key()).cloned());
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

    fn unequip(&self, asking: &Asking<'_>) -> Result<Value, Error> {
        let message = match self.drop_equipped(asking, |_| true)? {
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
        let (agent, view) = (agent(asking).map(str::to_owned), asking.client.view());
        let (gone, owner) = (name.clone(), agent.clone());
        self.save(move |document| {
            let agent = owner.as_deref();
            if let Some(own) = document.own(agent, &gone).map(|own| own.key()) {
                document.toolsets.remove(&*own);
                document.last_equipped = document.last_equipped.take().filter(|key| **key != *own);
                return Ok(());
            }
            let shown = document.find(agent, &gone).filter(|known| toolset::is_told(known, &view));
            let name = mcp::text::shorten(&gone);
            Err(match shown {
                Some(_) => {
                    format!("`{name}` is the operator's; you can equip it, but not delete it")
                }
                None => format!("no toolset is named `{name}`; see `list-saved-toolsets`"),
            })
        })
        .await?;
        let is_it = |known: &Toolset| known.owner.is(agent.as_deref()) && *known.name == *name;
        self.drop_equipped(asking, is_it)?;
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
        if !equipped.owner.is(agent(asking)) {
            let name = &equipped.name;
            return Err(Error::Control(format!(
                "`{name}` is the operator's, and its notes can't be changed; build a toolset of your own"
            )));
        }
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
                let (key, name) = (equipped.key().into_boxed_str(), &equipped.name);
                let Some(saved) = document.toolsets.get(&key) else {
                    return Err(format!("toolset `{name}` is no longer saved"));
                };
                let mut changed = Toolset::clone(saved);
                changed.annotate(&reference, &notes);
                document.toolsets.insert(key, Arc::new(changed));
                Ok(())
            })
            .await?;
        self.change(asking, |view| {
            let mut selection = view.selection().clone();
            let key = selection.equipped.as_ref().map(|toolset| toolset.key());
            if let Some(saved) = key.and_then(|key| document.toolsets.get(&*key)) {
                selection.equipped = Some(Arc::clone(saved));
            }
            Ok((view.selecting(selection), ()))
        })?;
        Ok(json!({"success": true, "message": format!("added {count} notes to `{shown}`")}))
    }

    /// Takes off what a client has equipped, if it is such; its name.
    fn drop_equipped(
        &self,
        asking: &Asking<'_>,
        is_such: impl Fn(&Toolset) -> bool,
    ) -> Result<Option<Box<str>>, Error> {
        self.change(asking, |view| {
            let mut selection = view.selection().clone();
            let former = selection.equipped.take_if(|toolset| is_such(toolset));
            Ok((view.selecting(selection), former.map(|toolset| toolset.name.clone())))
        })
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

/// The agent that a caller has proven to be: toolsets are its.
fn agent<'a>(asking: &Asking<'a>) -> Option<&'a str> {
    asking.client.caller.identity.agent.as_deref()
}
