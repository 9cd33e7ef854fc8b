"""What a run comes to: cells that work or say why not, the table of them, and what got worse."""

import re
from dataclasses import dataclass, field

WORKS = "✓"

# Where a client does not even have such a step.
NONE = "–"


@dataclass
class Row:
    """One client over one transport. A cell is `WORKS`, `NONE`, or why it does not work."""

    client: str
    version: str
    over: str
    cells: dict[str, str] = field(default_factory=dict)

    @property
    def works(self) -> set[str]:
        return {column for column, cell in self.cells.items() if cell == WORKS}


@dataclass
class Table:
    """A table of `docs/clients.md`: it stands between two comments with its name."""

    name: str
    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)

    def render(self) -> str:
        head = ["client", "version", "over", *self.columns]
        lines = [head, ["---"] * len(head)]
        for row in self.rows:
            cells = [row.cells.get(column, NONE) for column in self.columns]
            lines.append([row.client, row.version, row.over, *map(escaped, cells)])
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def plain(self) -> str:
        """The same for a terminal: marks first, and the reasons below each row."""
        width = max((len(row.client) for row in self.rows), default=0)
        lines = []
        for row in self.rows:
            marks = [f"{mark(row.cells.get(column, NONE))} {column}" for column in self.columns]
            lines.append(f"{row.client:{width}}  {row.over:5}  {'   '.join(marks)}")
            for column in self.columns:
                cell = row.cells.get(column, NONE)
                if cell not in (WORKS, NONE):
                    lines.append(f"{'':{width}}         {column}: {cell}")
        return "\n".join(lines)

    def read(self, text: str) -> list[Row]:
        """The rows that are committed."""
        lines = [line for line in self.section(text).splitlines() if line.startswith("|")]
        rows = []
        for line in lines[2:]:  # The head comes first, and a line below it.
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            rows.append(Row(*cells[:3], dict(zip(self.columns, cells[3:]))))
        return rows

    def section(self, text: str) -> str:
        found = re.search(self._pattern, text, re.DOTALL)
        return found.group(1) if found else ""

    def put_into(self, text: str) -> str:
        """The page with this table; rows that were not run stay as they are."""
        made = {(row.client, row.over): row for row in self.rows}
        kept = [made.pop((row.client, row.over), row) for row in self.read(text)]
        whole = Table(self.name, self.columns, kept + list(made.values())).render()
        begin, end = self._marks
        return re.sub(self._pattern, lambda _: f"{begin}\n\n{whole}\n{end}", text, flags=re.DOTALL)

    def worse_than(self, text: str) -> list[str]:
        """What works in the committed table and did not in this run."""
        before = {(row.client, row.over): row.works for row in self.read(text)}
        return [
            f"{row.client} over {row.over}: `{column}` worked before; now: {row.cells.get(column, NONE)}"
            for row in self.rows
            for column in sorted(before.get((row.client, row.over), set()) - row.works)
        ]

    @property
    def _marks(self) -> tuple[str, str]:
        return f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"

    @property
    def _pattern(self) -> str:
        begin, end = self._marks
        return f"{re.escape(begin)}(.*?){re.escape(end)}"


def mark(cell: str) -> str:
    return cell if cell in (WORKS, NONE) else "✗"


def escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").replace("<", "&lt;").split())
