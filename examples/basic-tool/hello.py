"""The smallest tool: put this file into the folder of a namespace, and it works."""

from fastmcp.tools import tool


@tool
def say_hello(name: str = "World") -> str:
    """Greet someone by name.

    Args:
        name: The person to greet. Defaults to "World".

    Returns:
        A greeting string.
    """
    return f"Hello, {name}!"
