"""Hints become the schema: choices, records, limits, pictures and progress.

Nothing here needs more than the standard library.
"""

import enum
import struct
import zlib
from dataclasses import dataclass, field
from typing import Annotated, Literal, Optional

from fastmcp import Context
from fastmcp.tools import tool
from fastmcp.utilities.types import Image
from pydantic import Field


class Priority(enum.Enum):
    """How soon a ticket is looked at."""

    LOW = "low"
    HIGH = "high"


@dataclass
class Ticket:
    """Something to do."""

    title: str
    priority: Priority = Priority.LOW
    tags: list[str] = field(default_factory=list)
    parent: Optional["Ticket"] = None


@tool(title="File a ticket", tags={"tickets"}, annotations={"destructiveHint": False})
def file_ticket(ticket: Ticket, dry_run: bool = False) -> Ticket:
    """File a ticket and return it as it was stored.

    Args:
        ticket: The ticket to file.
        dry_run: Only check the ticket.
    """
    if dry_run:
        ticket.tags.append("dry-run")
    return ticket


@tool
async def sum_up(
    numbers: list[Annotated[float, Field(ge=-1e100, le=1e100)]],
    how: Literal["sum", "mean"] = "sum",
    digits: Annotated[int, Field(ge=0, le=15, description="Digits after the point")] = 2,
    ctx: Optional[Context] = None,
) -> float:
    """Add numbers up and tell how far it is."""
    total = 0.0
    for done, number in enumerate(numbers, 1):
        total += number
        if ctx is not None:
            await ctx.report_progress(done, len(numbers))
    return round(total / max(len(numbers), 1) if how == "mean" else total, digits)


Part = Annotated[int, Field(ge=0, le=255)]


@tool(annotations={"readOnlyHint": True})
def swatch(red: Part, green: Part, blue: Part) -> Image:
    """Draw a small square of one colour."""
    row = b"\0" + bytes((red, green, blue)) * 8
    data = zlib.compress(row * 8)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return Image(data=png, format="png")
