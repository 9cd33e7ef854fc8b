"""Several tools in one file: each function that is decorated with @tool is one."""

from typing import Annotated

from fastmcp.tools import tool
from pydantic import Field

# Of larger ones the product could be infinite, which JSON can't say.
Number = Annotated[float, Field(ge=-1e100, le=1e100)]


@tool
def add(a: Number, b: Number) -> float:
    """Add two numbers together.

    Args:
        a: First number.
        b: Second number.

    Returns:
        The sum of a and b.
    """
    return a + b


@tool
def multiply(a: Number, b: Number) -> float:
    """Multiply two numbers.

    Args:
        a: First number.
        b: Second number.

    Returns:
        The product of a and b.
    """
    return a * b
