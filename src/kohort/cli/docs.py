"""The page about every command, written from the commands themselves.

`python -m kohort.cli.docs > docs/cli.md` writes it anew. No command uses this module.
"""

import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, get_args, get_type_hints

import typer

from kohort.cli.app import app

_OPENING: Final = """\
# The command line

This page is written by `python -m kohort.cli.docs` from the commands themselves; it is not edited
by hand. `kohort COMMAND --help` says the same.

- Exit codes are for scripts: 0 where all was done, 1 where something could not be, 2 where the
  command made no sense. What went wrong is one sentence on stderr.
- `--json` is for machines; its names stay. Tables are for people: as wide as what is in them, with
  `-` where there is nothing, and with Kafka's own names for columns where Kafka has one.
- Commands about a cluster take it from `--bootstrap`, which may also be written
  `--bootstrap-server`, or from `KOHORT_BOOTSTRAP`. They work on Kohort and on Apache Kafka from 3.0
  on. `--command-config` takes a properties file as Kafka's own tools do.
- `kohort --install-completion` teaches your shell the commands, and the names of groups and topics.

## For who knows Kafka's tools

@TOOLS@

Three things differ. A lag is never below zero. What cannot be done ends with an exit code other
than zero, where Kafka's tools print an error and end with zero. And the plans of `kohort groups
reset` say what they mean: how many records are skipped, or read again.
"""


_GROUPS: Final = "kafka-consumer-groups"
_TOOLS: Final = (
    (f"{_GROUPS} --list --state --type", "kohort groups list"),
    (f"{_GROUPS} --describe --group G", "kohort groups offsets G"),
    (f"{_GROUPS} --describe --group G --members --verbose", "kohort groups members G --verbose"),
    (f"{_GROUPS} --describe --group G --state", "kohort groups describe G"),
    (f"{_GROUPS} --describe --all-groups", "kohort groups offsets --all-groups"),
    (f"{_GROUPS} --reset-offsets --group G --to-earliest", "kohort groups reset G --to-earliest"),
    (f"{_GROUPS} --delete --group G", "kohort groups delete G"),
    (f"{_GROUPS} --delete-offsets --group G --topic T", "kohort groups delete-offsets G --topic T"),
    ("kafka-topics --create --topic T", "kohort topics create T"),
    ("kafka-topics --describe --topic T", "kohort topics describe T"),
    ("kafka-topics --alter --topic T --partitions N", "kohort topics alter T --partitions N"),
    (
        "kafka-configs --alter --entity-type topics --entity-name T --add-config A=B",
        "kohort topics alter T --config A=B",
    ),
)
"""Kafka's words, and ours for the same."""


def render() -> str:
    command: Any = typer.main.get_command(app)
    tools = "\n".join(f"| `{theirs}` | `{ours}` |" for theirs, ours in _TOOLS)
    opening = _OPENING.replace("@TOOLS@", f"| Kafka | Kohort |\n| --- | --- |\n{tools}")
    return "\n".join([opening, *_sections(command, command.name or "kohort")])


def _sections(command: Any, path: str) -> Iterator[str]:
    children = getattr(command, "commands", None)
    if children is None:
        yield from _command(command, path)
        return
    if " " in path:
        yield f"## {path}\n\n{_prose(command.help)}"
    for name, child in children.items():
        is_alone = " " not in path and not hasattr(child, "commands")
        if is_alone:
            yield f"## {path} {name}\n"
            yield from _body(child, f"{path} {name}")
        else:
            yield from _sections(child, f"{path} {name}")


def _command(command: Any, path: str) -> Iterator[str]:
    yield f"### {path}\n"
    yield from _body(command, path)


def _body(command: Any, path: str) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    words = " ".join(_argument(each) for each in arguments)
    yield _prose(command.help)
    yield f"    {path} {words}".rstrip() + " [OPTIONS]\n"
    rows = [_row(command, each) for each in options if not each.hidden]
    if rows:
        yield "| option | | |\n| --- | --- | --- |\n" + "".join(rows)


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name or "").upper()
    many = "..." if argument.nargs == -1 else ""
    return f"{name}{many}" if argument.required else f"[{name}]{many}"


def _row(command: Any, option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    takes = "" if option.is_flag else f" `{_metavar(command, option)}`"
    remarks = []
    if option.required:
        remarks.append("required")
    elif option.default is not None and not option.is_flag and option.default != "":
        shown = getattr(option.default, "value", option.default)
        remarks.append(f"default `{shown}`")
    help_ = " ".join((option.help or "").split()).replace("|", "\\|")
    return f"| {names}{takes} | {help_} | {', '.join(remarks)} |\n"


def _metavar(command: Any, option: Any) -> str:
    """What it takes: as it is called, or else what the command's own function says."""
    if option.metavar:
        return str(option.metavar)
    hint: Any = get_type_hints(inspect.unwrap(command.callback))[option.name]
    while arguments := get_args(hint):
        (hint,) = (each for each in arguments if each is not type(None))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "/".join(str(each.value) for each in hint)
    return "N" if hint in (int, float) else "TEXT"


def _prose(text: str | None) -> str:
    """Paragraphs as they are, and what is set off by blanks, examples, as code."""
    parts: list[str] = []
    code: list[str] = []
    for paragraph in (text or "").strip().split("\n\n"):
        lines = [line for line in paragraph.split("\n") if line.strip("\b ")]
        if lines and lines[0].startswith("  "):
            code += (line.strip() for line in lines)
            continue
        parts += _fenced(code)
        code = []
        parts.append("\n".join(line.strip() for line in lines))
    return "\n\n".join([*parts, *_fenced(code)]) + "\n"


def _fenced(code: list[str]) -> list[str]:
    return ["\n".join(["```", *code, "```"])] if code else []


if __name__ == "__main__":
    sys.stdout.write(render())
