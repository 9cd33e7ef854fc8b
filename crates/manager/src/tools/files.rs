//! Files of tools: reading, writing and deleting them. TD-124 … TD-127, TD-137

use std::sync::Arc;

use config::dock::Approval;
use gateway::own_tools::Tool;
use serde_json::{Value, json};
use upstream::python::scan::Source;

use super::{Described, Effect, LIST, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::history::{Author, History};
use crate::inspection;
use crate::limits::FILE_BYTES_MAX;
use crate::names::FileName;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    let write =
        Writing { name: "write_tool", title: "Write a file of tools", description: HOW_TO_WRITE };
    let generate = Writing {
        name: "generate_tool",
        title: "Write a translated file of tools",
        description: "The same as write_tool (see there), under the name used when tools of another language are translated.",
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
    json!({"type": "string"})
}

fn filename_argument() -> Value {
    json!({"type": "string", "description": "Such as \"issues.py\""})
}

fn list_tools(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_tools",
        title: "List the tools of a namespace",
        description: "List the tools that the files of a namespace define: name, description, filename, and \
            \"pending\": true for those in files that wait for a person's approval and are not served. The core \
            serves the others after reload_core. Next: get_tool_source.",
        effect: Effect::Reads,
        input: json!({"namespace": namespace_argument()}),
        required: &["namespace"],
        output: LIST,
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        let waiting = inspection::waiting(&desk, folder.name.as_str())?;
        if folder.sources.is_empty() && waiting.is_empty() {
            return Ok(json!([]));
        }
        let interpreter = desk.interpreter(folder.manifest.python.as_deref()).await?;
        let mut rows = Vec::new();
        for (sources, is_pending) in [(&folder.sources, false), (&waiting, true)] {
            let found = desk.read_sources(&interpreter, sources).await?;
            for (source, findings) in sources.iter().zip(&found) {
                rows.extend(inspection::tools(findings).into_iter().map(|tool| {
                    let mut row = json!({
                        "name": tool.name, "description": tool.description, "filename": source.file,
                    });
                    if is_pending {
                        row["pending"] = true.into();
                    }
                    row
                }));
            }
        }
        Ok(Value::Array(rows))
    })
}

fn get_tool_source(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "get_tool_source",
        title: "Read a file of tools",
        description: "Read a file of tools, before you change it: write_tool replaces the whole file. Returns \
            filename, source, written_by (\"model\" or \"person\") and pending (it waits for approval, and is \
            not served).",
        effect: Effect::Reads,
        input: json!({"namespace": namespace_argument(), "filename": filename_argument()}),
        required: &["namespace", "filename"],
        output: ("filename", "string"),
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
    description: &'static str,
}

const HOW_TO_WRITE: &str = r#"Write a Python file of tools into a namespace; a file of that name is replaced. NOT written if it is no valid Python, no function has @tool, a parameter of a tool has no type hint or a tool has no docstring. Follow this pattern (more in get_tool_template):

from fastmcp.tools import tool

@tool
async def my_tool(param: str, count: int = 10) -> dict:
    """What this tool does.

    Args:
        param: What it is for.
        count: What it controls.
    """
    return {"result": "value"}

Never write the value of a secret: read os.environ["NAME"], and call declare_secret and prepare_secret.

Returns written, filename, tools_found and warnings, or error and details (file:line:column of each problem): then correct the code and call again. If "pending" is true, tell the user the command in "next". Next: reload_core, test_tool."#;

impl Writing {
    fn tool(self, desk: &Arc<Desk>) -> Tool {
        Described {
            name: self.name,
            title: self.title,
            description: self.description,
            effect: Effect::Writes,
            input: json!({
                "namespace": namespace_argument(),
                "filename": {"type": "string", "description": "Such as \"issues.py\""},
                "code": {"type": "string", "description": "The whole file"},
            }),
            required: &["namespace", "filename", "code"],
            output: ("written", "boolean"),
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
    let found = match inspection::inspect(desk, &interpreter, source).await? {
        Ok(found) => found,
        Err(refusal) => return refused(refusal.error, &refusal.details),
    };
    let names: Vec<_> = inspection::tools(&found).into_iter().map(|tool| tool.name).collect();
    let warnings =
        inspection::remarks(desk, &interpreter, &folder, (file.as_str(), &found)).await?;
    let mut answer = json!({"written": true, "filename": file.as_str(), "tools_found": names});
    let next = submit(desk, folder.name.as_str(), file.as_str(), code)?;
    answer["pending"] = next.is_some().into();
    answer["next"] = next.unwrap_or_else(|| "call reload_core, then test_tool".to_owned()).into();
    if !warnings.is_empty() {
        answer["warnings"] = warnings.into();
    }
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
    Some(format!(
        "it is not served yet: a person must look at it; tell the user to run: {}, and call reload_core afterwards",
        desk.command(&format!("approve {namespace}/{file}"))
    ))
}

fn delete_tool(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "delete_tool",
        title: "Delete a file of tools",
        description: "Delete a Python file, with all tools in it. Ask the user first. Served until reload_core. \
            Returns deleted and filename.",
        effect: Effect::Destroys,
        input: json!({"namespace": namespace_argument(), "filename": filename_argument()}),
        required: &["namespace", "filename"],
        output: ("deleted", "boolean"),
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
