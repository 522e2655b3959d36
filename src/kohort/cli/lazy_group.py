"""A group of commands that imports the module of a command only when the command runs.

The table of a group has a target and a summary for each command. The help of the group shows the
summaries, so it imports no command. If a command needs a package of an extra that is not installed,
it ends with one sentence.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import typer
from typer.core import TyperCommand, TyperGroup

from kohort.cli.messages import fail
from kohort.extras import missing_extra

Commands: TypeAlias = Mapping[str, tuple[str, str]]
"""By command name: `module:function` or `module:app`, and the first paragraph of the help."""


def lazy_group(package: str, commands: Commands) -> type[TyperGroup]:
    class LazyGroup(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = {
                name: TyperCommand(name, help=summary) for name, (_, summary) in commands.items()
            }

        def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
            name, found, rest = super().resolve_command(ctx, args)
            if name is not None:
                ctx.invoked_subcommand = name
                found = load(package, name, commands[name][0])
            return name, found, rest

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except ImportError as error:
                missing = missing_extra(error, f"{ctx.command_path} {ctx.invoked_subcommand}")
                if missing is None:
                    raise
                fail(missing)

        def load_commands(self) -> dict[str, Any]:
            """Import all commands, for the generated page and for tests."""
            return {name: load(package, name, target) for name, (target, _) in commands.items()}

    return LazyGroup


def load(package: str, name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    found = getattr(import_module(f"{package}.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command(name)(found)
        found = app
    return typer.main.get_command(found)
