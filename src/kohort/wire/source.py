"""Generated Python source, line by line, with a note on which field each line is about.

The notes cost nothing while all goes well. When a generated function fails, the line number in
the traceback leads to the note, and the note to the message, field and position to report.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One name on the way to a field; in an array, also the locals that tell the item's index."""

    name: str
    items: str | None = None
    item: str | None = None

    def show(self, variables: dict[str, Any]) -> str:
        if self.items is None:
            return self.name
        items = variables[self.items]
        if self.item is None:  # while decoding, the items read so far stand before this one
            return f"{self.name}[{len(items)}]"
        current = variables[self.item]
        index = next(i for i, each in enumerate(items) if each is current)
        return f"{self.name}[{index}]"


class Path(NamedTuple):
    """Where a field sits in its message."""

    steps: tuple[Step, ...] = ()

    def field(self, name: str) -> "Path":
        return Path((*self.steps, Step(name)))

    def owner(self) -> "Path":
        return Path(self.steps[:-1])

    def items(self, items: str, item: str | None = None) -> "Path":
        return Path((*self.steps[:-1], Step(self.steps[-1].name, items, item)))

    def show(self, variables: dict[str, Any]) -> str:
        return ".".join(step.show(variables) for step in self.steps)


class Item(NamedTuple):
    """One value of a fused run: its struct letter, the expression it meets, and its path."""

    letter: str
    expression: str
    path: Path

    @property
    def width(self) -> int:
        return struct.calcsize(">" + self.letter)


class Source:
    """Lines of a function body under construction, and the names they need."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.notes: dict[int, tuple[Item, ...]] = {}
        self.names: dict[str, Any] = {}
        self.depth = 2

    def add(self, line: str, *items: Item) -> None:
        self.lines.append("    " * self.depth + line)
        if items:
            self.notes[len(self.lines)] = items

    def indent(self, line: str, *items: Item) -> None:
        self.add(line, *items)
        self.depth += 1

    def dedent(self) -> None:
        self.depth -= 1

    def structure(self, letters: str, verb: str) -> str:
        """Name a struct function in the generated code's globals; `verb` is pack or unpack_from."""
        name = f"{verb}_{letters.replace('?', 'o')}"
        self.names[name] = getattr(struct.Struct(">" + letters), verb)
        return name

    def constant(self, value: object) -> str:
        """An expression for a default: spelled out where Python can, else a named global."""
        if value is None or isinstance(value, int | float | str) or value in (b"", ()):
            return repr(value)
        name = f"constant_{len(self.names)}"
        self.names[name] = value
        return name

    def compile(self, title: str, head: str, tail: str) -> Callable[..., Any]:
        """Turn the lines into a function; `head` ends in `try:`, `tail` holds the except clause."""
        shift = head.count("\n") + 1
        code = compile("\n".join([head, *self.lines, tail]), f"<{title}>", "exec")
        exec(code, self.names)  # noqa: S102  # our own text, made from our own declarations
        function: Callable[..., Any] = self.names[head.partition("(")[0].removeprefix("def ")]
        self.notes = {line + shift: items for line, items in self.notes.items()}
        return function
