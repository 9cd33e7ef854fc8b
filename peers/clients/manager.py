"""Makes, tests and removes a tool by the manager, with the Python SDK 1.x, which holds every structured result to
its schema: `manager.py URL TOKEN NAMESPACE REPOSITORY`; over HTTP+SSE, and only with a look, where the URL ends in
`/sse`. In the end, every tool that is listed was called.

The last line on stdout is `ok`, or the exit code is 1.
"""

import sys

sys.dont_write_bytecode = True

import anyio
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

CODE = '''from fastmcp.tools import tool

@tool
def double(number: int) -> int:
    """Double a number.

    Args:
        number: What is doubled.
    """
    return number * 2
'''


async def walk(session: ClientSession, namespace: str, repository: str) -> set[str]:
    called = set()

    async def done(name: str, /, **arguments) -> dict:
        called.add(name)
        result = await session.call_tool(name, arguments)
        assert not result.isError, (name, result)
        return result.structuredContent

    async def refused(name: str, /, **arguments) -> None:
        result = await session.call_tool(name, arguments)
        assert result.isError, (name, result)

    assert "reload_core" in (await done("get_started"))["guide"]
    analysis = await done("analyze_repo", repo_url=repository)
    assert [tool["name"] for tool in analysis["tools_found"]] == ["forecast"], analysis
    content = (await done("read_repo_file", repo_url=repository, path="src/index.ts"))["content"]
    assert "registerTool" in content
    await refused("read_repo_file", repo_url=repository, path="../x")
    analysis = await done("install_from_repo", repo_url=repository, namespace=namespace)
    assert analysis["namespace"] == namespace and analysis["secrets_needed"] == ["WEATHER_API_KEY"], analysis
    found = (await done("search_registry", query="one"))["result"]
    assert [row["package"] for row in found] == ["@a/one"], found
    analysis = await done("install_from_registry", package="@a/one", namespace=namespace)
    assert analysis["tools_found"][0]["name"] == "greet", analysis
    proposed = await done("install_server", package="@a/one", namespace=namespace)
    assert proposed["secrets"] == ["API_KEY"] and "npx" in proposed["entry"], proposed
    assert (await done("create_namespace", name=namespace))["created"]
    await refused("create_namespace", name=namespace)
    assert namespace in [row["name"] for row in (await done("list_namespaces"))["result"]]
    wrong = await done("write_tool", namespace=namespace, filename="d.py", code=CODE.replace(": int)", ")"))
    assert not wrong["written"] and wrong["error"] == "Missing type hint", wrong
    template = await done("get_tool_template")
    assert (await done("generate_tool", namespace=namespace, filename="t.py", code=template["code"]))["written"]
    written = await done("write_tool", namespace=namespace, filename="d.py", code=CODE)
    assert written["tools_found"] == ["double"], written
    assert (await done("get_tool_source", namespace=namespace, filename="d.py"))["source"] == CODE
    assert (await done("list_requirements", namespace=namespace))["packages"] == []
    assert (await done("add_requirement", namespace=namespace, package="idna==3.10"))["added"]
    assert (await done("install_requirements", namespace=namespace))["installed"]
    assert (await done("install_pip_packages", packages=["idna==3.10"]))["installed"]
    assert namespace in (await done("reload_core"))["namespaces"]
    rows = (await done("list_tools", namespace=namespace))["result"]
    assert {"name": "double", "description": "Double a number.", "filename": "d.py"} in rows, rows
    tried = await done("test_tool", namespace=namespace, tool_name="double", input={"number": 21})
    assert tried["success"] and tried["result"] == {"result": 42}, tried
    failed = await done("test_tool", namespace=namespace, tool_name="double", input={"number": "many"})
    assert not failed["success"], failed
    assert (await done("declare_secret", key="OTHER_KEY", namespace=namespace))["secrets"] == ["OTHER_KEY"]
    assert (await done("prepare_secret", key="SOME_KEY", namespace=namespace))["scope"] == namespace
    rows = (await done("list_secrets", namespace=namespace))["result"]
    assert {"key": "SOME_KEY", "scope": namespace, "status": "placeholder"} in rows, rows
    assert (await done("check_secrets", namespace=namespace))["missing"] == ["OTHER_KEY"]
    assert (await done("remove_secret", key="SOME_KEY", namespace=namespace))["removed"]
    assert (await done("health"))["core_reachable"]
    assert (await done("server_config"))["core_port"]
    assert (await done("delete_tool", namespace=namespace, filename="d.py"))["deleted"]
    assert (await done("delete_namespace", name=namespace))["deleted"]
    await done("reload_core")
    return called


async def main(url: str, token: str, namespace: str, repository: str = "") -> None:
    connect = sse_client if url.endswith("/sse") else streamablehttp_client
    with anyio.fail_after(120):
        async with (
            connect(url, headers={"Authorization": f"Bearer {token}"}) as (read, write, *_),
            ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert all(tool.outputSchema and tool.annotations and tool.title for tool in tools)
            if not url.endswith("/sse"):
                called = await walk(session, namespace, repository)
                assert called == {tool.name for tool in tools}, called ^ {tool.name for tool in tools}
            else:
                assert not (await session.call_tool("list_namespaces", {})).isError
    print("ok")


anyio.run(main, *sys.argv[1:5])
