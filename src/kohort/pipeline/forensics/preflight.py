"""Check directories, files and the cluster of a forensics run before Spark starts.

To start Spark takes ten seconds or more; a mistake that needs no Spark is found in one. Only the
driver's own file system is checked: other file systems are known to Spark alone.
"""

import json
import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics.cluster_probe import check_options, find_topics
from kohort.pipeline.forensics.options import ForensicsOptions, check
from kohort.pipeline.source.broker_check import check_reachable

END_COLUMNS: Final = ("at_ms", "topic", "partition", "log_start", "log_end")

_OWN_ENTRIES: Final = frozenset(("bronze", "silver", "gold", "_complete.json", "_checkpoint"))
"""What earlier runs leave in the target directory."""


class BadLocation(PipelineError):
    """A directory or a file that cannot be used; the message says which and why."""


def check_before_start(
    options: ForensicsOptions, *, report: str | None, has_local_files: bool
) -> None:
    """`has_local_files`: paths without a scheme are on the file system of this process."""
    check(options)
    if report is not None:
        _check_report(Path(report))
    if has_local_files:
        target = find_local_path(options.target)
        if target is not None:
            _check_target(target, options)
        if options.log is not None:
            _check_log(options.log)
        ends = None if options.ends is None else find_local_path(options.ends)
        if ends is not None:
            _check_ends(ends)
    if options.bootstrap_servers is not None:
        check_reachable(check_options(options))
        find_topics(options)


def find_local_path(location: str) -> Path | None:
    """The path of a location on the local file system; None for another file system."""
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(location)


def _check_report(report: Path) -> None:
    if report.is_dir():
        raise BadLocation(f"--report {report} is a directory: give the name of a file")
    parent = report.parent
    if not parent.is_dir():
        raise BadLocation(f"--report {report}: the directory {parent} does not exist; create it")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise BadLocation(f"--report {report}: the directory {parent} is not writable")


def _check_target(target: Path, options: ForensicsOptions) -> None:
    log = None if options.log is None else find_local_path(options.log)
    if log is not None and log.resolve() in (target.resolve(), *target.resolve().parents):
        raise BadLocation(
            f"--to {target} is inside the log directory {log}: use a directory outside of it"
        )
    if target.exists() and not target.is_dir():
        raise BadLocation(f"--to {target} is not a directory")
    if target.is_dir():
        others = sorted({each.name for each in target.iterdir()} - _OWN_ENTRIES)
        if others:
            raise BadLocation(
                f"--to {target} has other files, such as {others[0]}: use a new directory, or one "
                "with the tables of an earlier run"
            )
    existing = next(each for each in (target, *target.absolute().parents) if each.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise BadLocation(f"--to {target} cannot be created: {existing} is not writable")


def _check_log(location: str) -> None:
    # pyarrow is an optional dependency.
    from kohort.pipeline.forensics.decoders.segment_files import list_segments  # noqa: PLC0415

    list_segments(location)


def _check_ends(ends: Path) -> None:
    if ends.is_dir() or any(sign in str(ends) for sign in "*?[{"):
        # Spark reads all files of a directory or a pattern.
        return
    try:
        with ends.open(encoding="utf-8") as file:
            first = next((line for line in file if line.strip()), None)
    except OSError as error:
        raise BadLocation(f"--ends {ends} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadLocation(f"--ends {ends} is not UTF-8 text") from None
    if first is None:
        raise BadLocation(f"--ends {ends} is empty")
    try:
        row = json.loads(first)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise BadLocation(f"--ends {ends}: the first line is not a JSON object")
    missing = [name for name in END_COLUMNS if name not in row]
    if missing:
        raise BadLocation(f"--ends {ends}: the first line has no {', '.join(missing)}")
