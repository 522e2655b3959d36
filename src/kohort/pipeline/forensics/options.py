"""The options of a forensics run. Pure: no Spark, no broker, no disk."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Final

from kohort.pipeline.errors import PipelineError
from kohort.types import value

FORENSICS_GROUP: Final = "kohort-forensics"

KAFKA_REFUSED: Final = {
    "bootstrap.servers": "use --bootstrap",
    "group.id": "use --own-group",
    "auto.offset.reset": "forensics reads the topics from the beginning",
    "enable.auto.commit": "forensics commits after each stored batch",
}


class BadForensicsOptions(PipelineError, ValueError):
    """An option that is missing, invalid, or contradicts another."""


@value
class ForensicsOptions:
    target: str
    """The directory of the tables."""
    log: str | None = None
    """A copied log directory. Either this or `bootstrap_servers` is given."""
    bootstrap_servers: str | None = None
    ends: str | None = None
    """End offsets of the consumed topics for a copied log, as JSON lines with at_ms, topic,
    partition, log_start and log_end."""
    since: datetime | None = None
    groups: tuple[str, ...] = ()
    """Empty: all groups."""
    is_continuous: bool = False
    every_s: float = 10.0
    """The time between two batches."""
    rebuild_s: float = 60.0
    """The shortest time between two builds of the tables."""
    rows_max: int = 1_000_000
    """Rows of one batch."""
    group_id: str = FORENSICS_GROUP
    """The consumer group of the run itself, which is left out of the tables."""
    kafka: Mapping[str, str] = field(default_factory=dict)


def check(options: ForensicsOptions) -> None:
    if (options.log is None) == (options.bootstrap_servers is None):
        raise BadForensicsOptions(
            "use either --bootstrap HOST:PORT to read from a cluster, or --from-log DIR to read a "
            "copied log directory"
        )
    if options.ends is not None and options.log is None:
        raise BadForensicsOptions(
            "--ends can only be used with --from-log: a cluster reports its own end offsets"
        )
    if options.is_continuous and options.log is not None:
        raise BadForensicsOptions("--continuous needs --bootstrap: a copied log does not grow")
    if not options.target:
        raise BadForensicsOptions("--to is empty: give the directory of the tables")
    if "" in options.groups:
        raise BadForensicsOptions("--group is empty: give a group id, or leave the option out")
    if options.bootstrap_servers is not None:
        if not options.group_id:
            raise BadForensicsOptions("--own-group is empty: give a group id")
        if options.group_id in options.groups:
            raise BadForensicsOptions(
                f"--group {options.group_id} is the group of this command itself, which is left "
                "out of the tables; use another --own-group to include it"
            )
