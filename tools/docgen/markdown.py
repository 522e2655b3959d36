"""Markdown helpers of the page generators."""

from collections.abc import Iterable


def page(*blocks: str) -> str:
    return "\n\n".join(blocks) + "\n"


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format a table; pipes in cells are escaped."""
    lines = (head, ("---",) * len(head), *rows)
    cells = ((cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
