//! What a model reads first: how tools are made here, step by step.

use std::sync::Arc;

use config::dock::Approval;
use gateway::own_tools::Tool;
use serde_json::json;

use super::{Described, Effect};
use crate::desk::Desk;

/// What clients are told when they connect.
pub const INSTRUCTIONS: &str = "These tools manage folders of Python tools (namespaces) that a core serves. Call \
    get_started first. After every change call reload_core, then test_tool. Values of secrets never pass through here.";

const GUIDE: &str = "\
To make a tool:
1. list_namespaces: see what there is.
2. create_namespace: if no namespace fits.
3. get_tool_template: see how a file of tools looks.
4. add_requirement: once for each package that the tool imports, if any.
5. write_tool: the whole file. If it answers written: false, correct what `details` names and call it again.
6. reload_core: so that the core serves it.
7. test_tool: call it with harmless input. On failure correct the file, and go on with 5.

To change a tool: list_tools, get_tool_source, then 5 to 7.

If a tool needs an API key or password:
1. declare_secret: name it for the namespace; read it in the tool with os.environ.
2. check_secrets: which ones are missing?
3. prepare_secret: for each of them; tell the user to run the command it returns. Never ask for the value.
4. reload_core, then check_secrets again.

To translate the tools of a repository: analyze_repo, read_repo_file for each relevant file, then as above with
generate_tool in the place of write_tool.

If something is wrong: health tells whether the core can be reached, list_tools which tools files define.";

const TEMPLATE: &str = r#""""Tools of this file: every function with `@tool` is one."""

import os
from typing import Literal

from fastmcp.tools import tool


@tool
async def find_items(query: str, order: Literal["new", "old"] = "new", limit: int = 10) -> dict:
    """Find items by a search term.

    Args:
        query: What to look for.
        order: Which items come first.
        limit: How many items are returned at most.
    """
    # A secret that was named with declare_secret; never write a value here.
    token = os.environ.get("EXAMPLE_TOKEN")
    if token is None:
        raise ValueError("EXAMPLE_TOKEN is not set")
    return {"query": query, "order": order, "items": []}
"#;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![get_started(desk), get_tool_template(desk)]
}

fn get_started(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "get_started",
        title: "Get started",
        description: "Read this first: how to make, change and test tools here, and what to do about secrets. \
            Returns guide, approval (\"auto\": what you write is served after a reload; \"required\": a person \
            approves it first) and next.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: ("guide", "string"),
    }
    .does(desk, |desk, _| async move {
        let approval = match desk.approval {
            Approval::Auto => "auto",
            Approval::Required => "required",
        };
        Ok(json!({"guide": GUIDE, "approval": approval, "next": "call list_namespaces"}))
    })
}

fn get_tool_template(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "get_tool_template",
        title: "Show how a file of tools looks",
        description: "A complete file of tools that write_tool accepts: imports, decorator, type hints, \
            docstring, a secret. Returns filename, code and rules.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: ("filename", "string"),
    }
    .does(desk, |_, _| async move {
        Ok(json!({
            "filename": "items.py",
            "code": TEMPLATE,
            "rules": [
                "begin with: from fastmcp.tools import tool",
                "write @tool above every function that is a tool; it may be async or not",
                "give every parameter a type hint; defaults make it optional",
                "give every tool a docstring: first what it does, then Args: with a line for each parameter",
                "return a dict, list, str, number or bool; raise an exception to report an error",
                "packages that you import must be added with add_requirement",
                "name secrets with declare_secret, read them with os.environ, never write a value",
            ],
        }))
    })
}
