"""The node's log messages: an event name, then its fields as name=value.

`LOG_EVENTS` documents every event name; docs/reference/metrics.md is generated from it.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

_LOGGER: Final = logging.getLogger("kohort")

LOG_EVENTS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "data-directory-open": (
        ("path", "mode", "warning"),
        "other users of the machine may read the data directory",
    ),
    "exposed": (
        ("address", "advertised", "warning"),
        "other machines can connect, and there is no authentication",
    ),
    "tail-cut": (
        ("path", "position", "bytes", "reason"),
        "after a crash a log ended with an incomplete batch, which was truncated",
    ),
    "file-repaired": (
        ("path", "reason"),
        "a damaged or unfinished file was rebuilt, replaced or renamed; no record is lost",
    ),
    "batch-damaged": (
        ("path", "position", "bytes", "reason"),
        "records with these offsets cannot be read; consumers get `CORRUPT_MESSAGE` for them",
    ),
    "data-loss-accepted": (
        ("path", "reason"),
        "records are missing, and `kohort.accept.data.loss` names the partition",
    ),
    "partition-refused": (
        ("path", "reason"),
        "stored records are missing or unreadable, so the partition is not served",
    ),
    "groups-refused": (
        ("reason",),
        "`__consumer_offsets` is refused, so no group is served; topics are",
    ),
    "groups-loaded": (
        ("groups",),
        "`__consumer_offsets` was read; the coordinator accepts requests from now on",
    ),
    "record-skipped": (("reason",), "a record of `__consumer_offsets` could not be decoded"),
    "unknown-records": (
        ("count", "kinds"),
        "`__consumer_offsets` has records of types that Kohort does not implement; they are kept",
    ),
    "metrics-served": (("address",), "the /metrics page is available at this address"),
    "metrics-exposed": (
        ("address", "warning"),
        "other machines can read the /metrics page, and there is no authentication",
    ),
    "control-served": (("address",), "control operations are served over HTTP at this address"),
    "control-exposed": (
        ("address", "warning"),
        "other machines can use the control operations, and there is no authentication",
    ),
    "connection-refused": (
        ("peer", "reason"),
        "as many connections are open as the setting allows that `reason` names",
    ),
    "cannot-accept": (
        ("reason",),
        "the operating system refused a connection, often for too many open files; retried in 1 s",
    ),
    "connection-closed": (
        ("peer", "reason"),
        "the node closed a connection: the client was idle or slow, or its request malformed",
    ),
    "loop-suspended": (
        ("seconds",),
        "the process did not run, or one request took that long; group deadlines were extended",
    ),
    "internal-error": (
        ("peer", "error"),
        "a bug in Kohort failed a request and closed its connection; please report the traceback",
    ),
    "storage-error": (
        ("partition", "path", "action", "reason", "count"),
        "clients were told of a storage error, or it is retried; once a minute per reason",
    ),
    "events-lost": (
        ("count", "reason"),
        "events could not be written to `__kohort_events`; the groups are not affected",
    ),
    "checkpoint-failed": (
        ("reason",),
        "the recovery checkpoint of a log could not be written; it is retried later",
    ),
    "disk-failed": (
        ("reason",),
        "a disk operation failed, so durability is no longer guaranteed and the node stops",
    ),
    "stopped-by-bug": (
        ("error",),
        "a bug: memory and log may differ, so the node stops; please report the traceback",
    ),
}
"""Every event with its fields and its meaning, roughly in the order in which they occur."""


def info(event: str, **fields: object) -> None:
    _LOGGER.info("%s%s", event, _EventFields(fields))


def warning(event: str, **fields: object) -> None:
    _LOGGER.warning("%s%s", event, _EventFields(fields))


def internal_error(event: str, *, error: BaseException, **fields: object) -> None:
    """Log a bug in Kohort with its traceback."""
    fields["error"] = f"{type(error).__name__}: {error}"
    _LOGGER.error("%s%s", event, _EventFields(fields), exc_info=error)


class _EventFields:
    """Formatted only if a log handler uses the message."""

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return "".join(f" {name}={_quote(field)}" for name, field in self._fields.items())


def _quote(field: object) -> str:
    text = str(field)
    return json.dumps(text) if not text or any(c in text for c in ' "\n\r\t=') else text
