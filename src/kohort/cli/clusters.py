"""What commands about a cluster have in common: how it is named, reached, and how they fail.

Exit codes: 0 where all was done, 1 where something could not be, 2 where a command makes no sense.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kohort.types import GroupId, Millis

if TYPE_CHECKING:
    from kohort.admin.cluster import Cluster

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar="KOHORT_BOOTSTRAP",
        help="The cluster: one of its brokers, or several with commas.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Options of the connection, as in a properties file of Kafka's tools.",
    ),
]
Timeout = Annotated[
    int, typer.Option(metavar="MS", min=1, help="How long one question may take, in ms.")
]
AsJson = Annotated[bool, typer.Option("--json", help="For machines.")]

TIMEOUT_MS = 30_000

_COMPLETION_MS = Millis(2_000)
"""Whoever presses Tab waits no longer."""


@contextmanager
def talking_to(bootstrap: str, config: Path | None, timeout_ms: int) -> "Iterator[Cluster]":
    """The cluster, for one command; what goes wrong with it is told in one sentence."""
    from kohort.admin.cluster import open_cluster  # noqa: PLC0415  # other verbs need none of it

    with one_sentence_about_what_fails():
        options = _read_config(config)
        with open_cluster(bootstrap, options=options, timeout_ms=Millis(timeout_ms)) as cluster:
            yield cluster


@contextmanager
def one_sentence_about_what_fails() -> Iterator[None]:
    from kohort.admin.errors import AdminError, WrongWish  # noqa: PLC0415  # as above

    try:
        yield
    except WrongWish as error:
        say_error(error)
        raise typer.Exit(2) from None
    except AdminError as error:
        say_error(error)
        raise typer.Exit(1) from None


def say_error(what: object) -> None:
    typer.echo(f"kohort: {what}", err=True)


def refuse(what: str) -> NoReturn:
    """The command itself makes no sense."""
    raise typer.BadParameter(what)


def choose_groups(cluster: "Cluster", given: list[str] | None, *, is_all: bool) -> list[GroupId]:
    """Those that are named, or all there are."""
    from kohort.admin.groups import list_groups  # noqa: PLC0415  # as above

    if is_all:
        return [each.group_id for each in list_groups(cluster)]
    return [GroupId(each) for each in given or ()]


def check_chosen(given: list[str] | None, *, is_all: bool) -> None:
    if is_all == bool(given):
        refuse("name one group or more, or say --all-groups")


def now_ms() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


def _read_config(path: Path | None) -> dict[str, str]:
    from kohort.admin.errors import WrongWish  # noqa: PLC0415  # as above
    from kohort.admin.options import read_properties  # noqa: PLC0415

    if path is None:
        return {}
    try:
        return read_properties(path.read_text("utf-8"))
    except (OSError, UnicodeError) as error:
        raise WrongWish(f"{path} cannot be read: {error}") from None


# What a shell completes


def complete_groups(context: typer.Context, incomplete: str) -> list[str]:
    from kohort.admin.groups import list_groups  # noqa: PLC0415  # as above

    return _complete(context, incomplete, lambda each: [g.group_id for g in list_groups(each)])


def complete_topics(context: typer.Context, incomplete: str) -> list[str]:
    from kohort.admin.topics import list_topics  # noqa: PLC0415  # as above

    return _complete(context, incomplete, lambda each: [t.topic for t in list_topics(each)])


def _complete(context: typer.Context, incomplete: str, ask: Any) -> list[str]:
    """A line that is not finished may name no cluster, or none that answers: then nothing fits."""
    from kohort.admin.cluster import open_cluster  # noqa: PLC0415  # as above
    from kohort.admin.errors import AdminError  # noqa: PLC0415

    bootstrap = context.params.get("bootstrap")
    if not bootstrap:
        return []
    try:
        with open_cluster(bootstrap, timeout_ms=_COMPLETION_MS) as cluster:
            return [name for name in ask(cluster) if name.startswith(incomplete)]
    except AdminError:
        return []
