"""Generated Python source with a map from each line to its message fields.

The map has no cost while there are no errors. When a generated function fails, the line number in
the traceback leads to the field to report.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One name in the path of a field. For arrays also the local variables that give the index."""

    name: str
    items: str | None = None
    item: str | None = None

    def format(self, variables: dict[str, Any]) -> str:
        if self.items is None:
            return self.name
        items = variables[self.items]
        if self.item is None:  # decoding: the current item follows the items read so far
            return f"{self.name}[{len(items)}]"
        current = variables[self.item]
        index = next(i for i, each in enumerate(items) if each is current)
        return f"{self.name}[{index}]"


class Path(NamedTuple):
    """The path of a field in its message."""

    steps: tuple[Step, ...] = ()

    def field(self, name: str) -> "Path":
        return Path((*self.steps, Step(name)))

    def owner(self) -> "Path":
        return Path(self.steps[:-1])

    def items(self, items: str, item: str | None = None) -> "Path":
        return Path((*self.steps[:-1], Step(self.steps[-1].name, items, item)))

    def format(self, variables: dict[str, Any]) -> str:
        return ".".join(step.format(variables) for step in self.steps)


class Item(NamedTuple):
    """One value of a combined `struct` call: its format letter, its expression and its path."""

    letter: str
    expression: str
    path: Path

    @property
    def width(self) -> int:
        return struct.calcsize(">" + self.letter)


class GeneratedSource:
    """The lines of a generated function body, and the global names that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.items_by_line: dict[int, tuple[Item, ...]] = {}
        self.names: dict[str, Any] = {}
        self.depth = 2

    def add(self, line: str, *items: Item) -> None:
        self.lines.append("    " * self.depth + line)
        if items:
            self.items_by_line[len(self.lines)] = items

    def indent(self, line: str, *items: Item) -> None:
        self.add(line, *items)
        self.depth += 1

    def dedent(self) -> None:
        self.depth -= 1

    def structure(self, letters: str, verb: str) -> str:
        """Add a struct function to the globals; `verb` is pack or unpack_from. Returns its name."""
        name = f"{verb}_{letters.replace('?', 'o')}"
        self.names[name] = getattr(struct.Struct(">" + letters), verb)
        return name

    def constant(self, value: object) -> str:
        """An expression for a default value: a literal if possible, else a global name."""
        if value is None or isinstance(value, int | float | str) or value in (b"", ()):
            return repr(value)
        name = f"constant_{len(self.names)}"
        self.names[name] = value
        return name

    def compile(self, title: str, head: str, tail: str) -> Callable[..., Any]:
        """Compile the lines to a function. `head` ends in `try:`, `tail` has the except clause."""
        shift = head.count("\n") + 1
        code = compile("\n".join([head, *self.lines, tail]), f"<{title}>", "exec")
        exec(code, self.names)  # noqa: S102  # the source is generated from the declarations
        function: Callable[..., Any] = self.names[head.partition("(")[0].removeprefix("def ")]
        self.items_by_line = {line + shift: items for line, items in self.items_by_line.items()}
        return function
