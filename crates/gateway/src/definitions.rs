//! The definitions of what a client can call, one by one.
//!
//! For doors that describe single tools. A door that lists them all serves the list as it is.

use catalog::error::Error as Refusal;
use catalog::view::View;
use mcp::items::Kind;
use mcp::json;
use mcp::rpc::Raw;

use crate::Gateway;
use crate::client::Client;
use crate::error::Error;

/// A tool under the name that the client sees.
#[derive(Clone, Debug)]
pub struct Tool {
    pub name: String,
    pub definition: Raw,
}

impl Client {
    /// The tools that can be called now, in listing order: all that are listed, without stubs.
    pub fn tools(&self) -> Vec<Tool> {
        tools_in(&self.view())
    }

    /// The definition of the tool that `asked` means, if it can be called now.
    pub fn tool(&self, asked: &str) -> Result<Raw, Error> {
        let view = self.view();
        if let Some(tool) = tools_in(&view).into_iter().find(|tool| tool.name == asked) {
            return Ok(tool.definition);
        }
        let target = view.resolve(Kind::Tool, asked)?;
        Ok(Raw::trusted(target.item.definition.clone()))
    }
}

impl Gateway {
    /// The definition of a tool that a client can call now; waits for the folder that it may stand in to be read.
    pub async fn definition(&self, client: &Client, asked: &str) -> Result<Raw, Error> {
        self.read_for(client).await?;
        client.tool(asked).map_err(|error| match error {
            Error::Catalog(refusal) => self.why_unknown(&client.view(), refusal),
            other => other,
        })
    }
}

fn tools_in(view: &View) -> Vec<Tool> {
    let list = Raw::trusted(view.list(Kind::Tool).clone());
    let Ok([Some(tools)]) = list.members([Kind::Tool.list_member()]) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for definition in json::elements(tools).unwrap_or_default() {
        let named = json::members(definition.as_bytes(), [Kind::Tool.key()]);
        let Ok([Some(name)]) = named else { continue };
        let Some(name) = json::string(name) else { continue };
        // Control tools are no items, so that a spelling of an item may look like theirs.
        let is_stub = matches!(
            view.resolve(Kind::Tool, &name),
            Err(Refusal::Inactive { name: inactive, .. }) if inactive.as_str() == name
        );
        if !is_stub {
            found.push(Tool { name: name.into_owned(), definition: list.part(definition) });
        }
    }
    found
}
