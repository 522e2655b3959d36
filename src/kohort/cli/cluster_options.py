"""Options, connection and error handling that all commands about a cluster share.

Exit codes: 0 if everything was done, 1 if something failed, 2 if the command line is invalid.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kohort.admin.cluster_connection import Cluster, open_cluster
from kohort.admin.errors import AdminError, InvalidRequest
from kohort.admin.groups import list_groups
from kohort.admin.topics import list_topics
from kohort.cli.messages import fail
from kohort.settings.properties import read_properties
from kohort.settings.readers import BadValue
from kohort.types import GroupId, Millis

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "--bootstrap-server",
        metavar="HOST:PORT",
        envvar="KOHORT_BOOTSTRAP",
        help="Bootstrap servers of the cluster, comma-separated.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Properties file with connection options, as for Kafka's own tools.",
    ),
]
Timeout = Annotated[int, typer.Option(metavar="MS", min=1, help="Timeout of one request, in ms.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

TIMEOUT_MS = 30_000

_COMPLETION_TIMEOUT_MS = Millis(2_000)
"""A shell blocks while it completes a word."""


@contextmanager
def connect(bootstrap: str, config: Path | None, timeout_ms: int) -> Iterator[Cluster]:
    """Open the cluster for one command, and report its errors in one sentence."""
    with report_admin_errors():
        options = read_properties(config)
        with open_cluster(bootstrap, options=options, timeout_ms=Millis(timeout_ms)) as cluster:
            yield cluster


@contextmanager
def report_admin_errors() -> Iterator[None]:
    try:
        yield
    except (BadValue, InvalidRequest) as error:
        fail(error, 2)
    except AdminError as error:
        fail(error)


def usage_error(message: str) -> NoReturn:
    raise typer.BadParameter(message)


def select_groups(cluster: Cluster, given: list[str] | None, *, is_all: bool) -> list[GroupId]:
    if is_all:
        return [each.group_id for each in list_groups(cluster)]
    return [GroupId(each) for each in given or ()]


def require_groups(given: list[str] | None, *, is_all: bool) -> None:
    if is_all == bool(given):
        usage_error("name at least one GROUP, or use --all-groups")


def now_ms() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


# Shell completion


def complete_groups(context: typer.Context, incomplete: str) -> list[str]:
    return _complete(context, incomplete, lambda each: [g.group_id for g in list_groups(each)])


def complete_topics(context: typer.Context, incomplete: str) -> list[str]:
    return _complete(context, incomplete, lambda each: [t.topic for t in list_topics(each)])


def _complete(
    context: typer.Context, incomplete: str, list_names: Callable[[Cluster], Iterable[str]]
) -> list[str]:
    """Offer nothing if the unfinished command line names no cluster, or none that answers."""
    bootstrap = context.params.get("bootstrap")
    if not bootstrap:
        return []
    try:
        with open_cluster(bootstrap, timeout_ms=_COMPLETION_TIMEOUT_MS) as cluster:
            return [name for name in list_names(cluster) if name.startswith(incomplete)]
    except AdminError:
        return []
