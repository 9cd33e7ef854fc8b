"""A second file of the same namespace: its tools stand beside those of math_tools.py."""

from fastmcp.tools import tool


@tool
def reverse(text: str) -> str:
    """Reverse a text.

    Args:
        text: The text to reverse.
    """
    return text[::-1]


@tool
def count_words(text: str) -> dict[str, int]:
    """Count how often each word occurs in a text.

    Args:
        text: The text; its words are compared in lower case.
    """
    counts: dict[str, int] = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts
