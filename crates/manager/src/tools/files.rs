//! Files of tools: reading, writing and deleting them. TD-124 … TD-127, TD-137

use std::sync::Arc;

use config::dock::Approval;
use gateway::own_tools::Tool;
use serde_json::{Value, json};
use upstream::python::scan::Source;

use super::{Described, Effect, list, object, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::history::{Author, History};
use crate::inspection;
use crate::limits::FILE_BYTES_MAX;
use crate::names::FileName;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    let write = Writing {
        name: "write_tool",
        title: "Write a file of tools",
        first: "Write a Python file of tools into a namespace; a file of that name is replaced.",
    };
    let generate = Writing {
        name: "generate_tool",
        title: "Write a translated file of tools",
        first: "The same as `write_tool`, under the name used when tools of another language are translated to Python.",
    };
    vec![
        list_tools(desk),
        get_tool_source(desk),
        write.tool(desk),
        generate.tool(desk),
        delete_tool(desk),
    ]
}

fn namespace_argument() -> Value {
    json!({"type": "string", "description": "The namespace, such as \"github\"; see list_namespaces"})
}

fn filename_argument() -> Value {
    json!({"type": "string", "description": "The Python file, such as \"issues.py\""})
}

fn list_tools(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_tools",
        title: "List the tools of a namespace",
        description: "List the tools that the files of one namespace define. Use it to see what there is before you \
            change it.\n\nReturns a list; for each tool its name, its description (from the docstring) and the \
            filename it is defined in. It shows the files as they are now: the core serves them after `reload_core`.\
            \n\nNext: `get_tool_source` to read a file.",
        effect: Effect::Reads,
        input: json!({"namespace": namespace_argument()}),
        required: &["namespace"],
        output: list(&object(
            &json!({
                "name": {"type": "string"}, "description": {"type": "string"}, "filename": {"type": "string"},
            }),
            &["name", "description", "filename"],
        )),
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        if folder.sources.is_empty() {
            return Ok(json!([]));
        }
        let interpreter = desk.interpreter(folder.manifest.python.as_deref()).await?;
        let found = desk.read_sources(&interpreter, &folder.sources).await?;
        let rows = folder.sources.iter().zip(&found).flat_map(|(source, findings)| {
            inspection::tools(findings).into_iter().map(move |tool| {
                json!({"name": tool.name, "description": tool.description, "filename": source.file})
            })
        });
        Ok(rows.collect())
    })
}

fn get_tool_source(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "get_tool_source",
        title: "Read a file of tools",
        description: "Read the full Python source of a file of tools. Use it before you change a tool: `write_tool` \
            replaces the whole file.\n\nReturns filename, source, written_by (\"model\" or \"person\") and pending \
            (true if what you see waits for a person's approval and is not served yet).",
        effect: Effect::Reads,
        input: json!({"namespace": namespace_argument(), "filename": filename_argument()}),
        required: &["namespace", "filename"],
        output: object(
            &json!({
                "filename": {"type": "string"}, "source": {"type": "string"},
                "written_by": {"enum": ["model", "person"]}, "pending": {"type": "boolean"},
            }),
            &["filename", "source"],
        ),
    }
    .does(desk, |desk, arguments| async move {
        let namespace = desk.namespace(text(&arguments, "namespace"))?;
        let file = FileName::parse(text(&arguments, "filename"))?;
        let (name, namespace, shelf) = (file.as_str(), namespace.as_str(), desk.shelf());
        if let Some(source) = shelf.waiting(namespace, name)? {
            let by = Author::Model.as_str();
            return Ok(json!({"filename": name, "source": source, "written_by": by, "pending": true}));
        }
        let Some(source) = shelf.served(namespace, name)? else {
            return Err(Error::NoFile { namespace: namespace.into(), name: name.into() });
        };
        let by = History::of(&desk.data, namespace, name).author(&source)?.as_str();
        Ok(json!({"filename": name, "source": source, "written_by": by, "pending": false}))
    })
}

/// One of the two names of writing.
struct Writing {
    name: &'static str,
    title: &'static str,
    first: &'static str,
}

const HOW_TO_WRITE: &str = r#"

The code is checked first, and NOT written if
1. it is no valid Python,
2. no function has the decorator @tool,
3. a parameter of a tool has no type hint,
4. a tool has no docstring.

Follow this pattern exactly (more in `get_tool_template`):

    from fastmcp.tools import tool

    @tool
    async def my_tool(param: str, count: int = 10) -> dict:
        """Clear description of what this tool does.

        Args:
            param: What this parameter is for.
            count: What this parameter controls. Defaults to 10.
        """
        return {"result": "value"}

Secrets: never write a value into the code. Read it with os.environ["NAME"], name it with `declare_secret`, and see `prepare_secret`.

Returns {"written": true, "filename", "tools_found"} or {"written": false, "error", "details"}; details gives file:line:column of every problem: correct the code and call again. If "pending" is true, a person must approve the file first: tell the user the command in "next".

Next: call `reload_core`, then `test_tool`."#;

impl Writing {
    fn tool(self, desk: &Arc<Desk>) -> Tool {
        let description = format!("{}{HOW_TO_WRITE}", self.first);
        Described {
            name: self.name,
            title: self.title,
            description: &description,
            effect: Effect::Writes,
            input: json!({
                "namespace": namespace_argument(),
                "filename": {"type": "string", "description": "File to write, ending in .py, such as \"issues.py\""},
                "code": {"type": "string", "description": "The complete Python source of the file"},
            }),
            required: &["namespace", "filename", "code"],
            output: object(
                &json!({
                    "written": {"type": "boolean"}, "filename": {"type": "string"},
                    "tools_found": {"type": "array", "items": {"type": "string"}},
                    "pending": {"type": "boolean"}, "next": {"type": "string"},
                    "error": {"type": "string"}, "details": {"type": "string"},
                }),
                &["written"],
            ),
        }
        .does(desk, |desk, arguments| async move { write(&desk, &arguments).await })
    }
}

async fn write(desk: &Desk, arguments: &Value) -> Result<Value, Error> {
    let refused = |error: &str, details: &str| {
        Ok(json!({"written": false, "error": error, "details": details}))
    };
    let folder = desk.folder(text(arguments, "namespace"))?;
    let file = match FileName::parse(text(arguments, "filename")) {
        Ok(file) => file,
        Err(error) => return refused("Invalid filename", &error.to_string()),
    };
    let code = text(arguments, "code");
    if code.len() > FILE_BYTES_MAX {
        return refused("Too large", "a file of tools has at most 1 MiB; split it");
    }
    let interpreter = desk.interpreter(folder.manifest.python.as_deref()).await?;
    let source = Source { file: file.as_str().to_owned(), text: code.to_owned() };
    let names = match inspection::inspect(desk, &interpreter, source).await? {
        Ok(names) => names,
        Err(refusal) => return refused(refusal.error, &refusal.details),
    };
    let mut answer = json!({"written": true, "filename": file.as_str(), "tools_found": names});
    let next = submit(desk, folder.name.as_str(), file.as_str(), code)?;
    answer["pending"] = next.is_some().into();
    answer["next"] = next.unwrap_or_else(|| "call reload_core, then test_tool".to_owned()).into();
    Ok(answer)
}

/// Puts a text in place, or lays it aside for a person, as it was decided; then, what to tell the user.
fn submit(desk: &Desk, namespace: &str, file: &str, text: &str) -> Result<Option<String>, Error> {
    desk.shelf().edit(namespace, file, desk.approval, |_| Ok(Some(text.to_owned())))?;
    Ok(advice(desk, namespace, file))
}

/// What to tell the user of a text that was put in place or laid aside.
pub fn advice(desk: &Desk, namespace: &str, file: &str) -> Option<String> {
    if desk.approval == Approval::Auto {
        return None;
    }
    let data = super::quoted(&desk.data.path().display().to_string());
    Some(format!(
        "it is not served yet: a person must look at it; tell the user to run: toolman approve \
         {namespace}/{file} --data-dir {data}, and call reload_core afterwards"
    ))
}

fn delete_tool(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "delete_tool",
        title: "Delete a file of tools",
        description: "Delete a Python file from a namespace, with all tools defined in it. Ask the user before you call \
            this.\n\nReturns deleted (true) and filename. Call `reload_core` next; until then the tools are served.",
        effect: Effect::Destroys,
        input: json!({"namespace": namespace_argument(), "filename": filename_argument()}),
        required: &["namespace", "filename"],
        output: object(
            &json!({"deleted": {"type": "boolean"}, "filename": {"type": "string"}, "next": {"type": "string"}}),
            &["deleted", "filename"],
        ),
    }
    .does(desk, |desk, arguments| async move {
        let namespace = desk.namespace(text(&arguments, "namespace"))?;
        let file = FileName::parse(text(&arguments, "filename"))?;
        let (namespace, name) = (namespace.as_str(), file.as_str());
        if !desk.shelf().remove(namespace, name, Author::Model)? {
            return Err(Error::NoFile { namespace: namespace.into(), name: name.into() });
        }
        Ok(json!({
            "deleted": true, "filename": name, "next": "call reload_core so that the core no longer serves it",
        }))
    })
}
