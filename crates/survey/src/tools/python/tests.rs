//! Tools of Python, as its sources write them.

use crate::tools::testing::check;

#[test]
fn decorated_functions_are_found_with_hints_and_docstrings() {
    let server = r#"
from mcp.server.fastmcp import FastMCP, Context
mcp = FastMCP("demo")

@mcp.tool()
async def add(a: int, b: Annotated[int, Field(description="the second")] = 2, *, ctx: Context) -> int:
    """Adds numbers.

    Well.
    """
    return a + b

@mcp.tool(name="other-name", description="Said beside it")
def named(text: str = Field(description="some text")):
    """Not this."""

@app.route("/x")
def no_tool(): ...
"#;
    check(
        &[("server.py", server)],
        "add server.py:5 (a:int!, b:int=the second) Adds numbers.\n\nWell.\n\
         other-name server.py:13 (text:str!=some text) Said beside it\n",
    );
}

#[test]
fn low_level_tools_are_found_with_models_and_enums() {
    let server = r#"
import mcp.types as types
class Status(BaseModel):
    repo_path: str
    depth: int = Field(default=3, description="how deep")

class GitTools(str, Enum):
    STATUS = "git_status"
    LOG = "git_log"

@server.list_tools()
async def list_tools() -> list[types.Tool]:
    return [
        types.Tool(name=GitTools.STATUS, description="Shows " "status", inputSchema=Status.model_json_schema()),
        Tool(name=GitTools.LOG.value, description=ABOUT, inputSchema={
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "how many"}},
            "required": ["n"],
        }),
    ]
"#;
    check(
        &[("pkg/server.py", server), ("pkg/texts.py", "ABOUT = 'The log'\n")],
        "git_status pkg/server.py:14 (repo_path:str!, depth:int=how deep) Shows status\n\
         git_log pkg/server.py:15 (n:integer!=how many) The log\n",
    );
}

#[test]
fn calls_and_bare_decorators_are_found() {
    let server = r#"
from fastmcp.tools import tool

@tool
def plain(x: float) -> float:
    "Plain."

def later(q: str): "Later."
mcp.add_tool(later)
mcp.tool(later, name="later-again")
"#;
    let langchain = "from langchain.tools import tool\n@tool\ndef other(): 'No MCP.'\n";
    check(
        &[("a.py", server), ("b.py", langchain)],
        "plain a.py:4 (x:float!) Plain.\n\
         later a.py:9 (q:str!) Later.\n\
         later-again a.py:10 (q:str!) Later.\n",
    );
}

#[test]
fn mounted_servers_give_their_prefix() {
    let main = "main_mcp.mount(jira_mcp, prefix='jira')\n";
    let jira = "from fastmcp import FastMCP\njira_mcp = FastMCP('x')\n@jira_mcp.tool()\ndef get(): 'Gets.'\n";
    check(&[("main.py", main), ("jira.py", jira)], "jira_get jira.py:3 () Gets.\n");
}

#[test]
fn tests_are_no_sources() {
    let test = "from fastmcp import FastMCP\n@mcp.tool()\ndef fake(): 'Fake.'\n";
    check(&[("test_a.py", test), ("tests/a.py", test), ("conftest.py", test)], "");
}
