"""The directory that an ingest keeps: what is where, and when a batch counts.

    data/batch=7/...        rows, as Parquet; each batch has a directory of its own
    _bad/batch=7/...        records that could not be parsed, and why
    _commits/7.json         batch 7 is whole: rows, bad rows, and how many there are by now
    _checkpoint/            Spark's
    _staging/RUN/batch=8/   what is being written; moved into place when it is whole
    _kohort.json            whose table this is, and its columns
    _run                    which run may write

A batch is written aside, moved into place, and then its commit is written. Where moving a directory
is atomic, as on a local disk and HDFS, data/ never shows half a batch; on an object store, only
whoever follows the commits is sure of that. A batch that is run again replaces what has no commit,
and leaves alone what has one: Spark runs it again with the same offsets.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.files import Files
from kohort.pipeline.ingest.schema import BATCH, find_difference
from kohort.types import value

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA: Final = "data"
BAD: Final = "_bad"
CHECKPOINT: Final = "_checkpoint"
_COMMITS: Final = "_commits"
_STAGING: Final = "_staging"
_ABOUT: Final = "_kohort.json"
_RUN: Final = "_run"

_KIND: Final = "kohort ingest"
_VERSION: Final = 1

_COMMITS_KEPT: Final = 100
"""The last one is enough to read the table: these are for whoever wonders what happened."""


class NotOurs(PipelineError):
    """A directory that holds something else, or another ingest's table."""


class TakenOver(PipelineError):
    """Another run writes to the same table now."""


@value
class About:
    """Whose table it is."""

    topics: tuple[str, ...]
    group_id: str
    columns: StructType
    """Without the batch."""
    partition_by: tuple[str, ...]
    is_parsed: bool


@value
class Commit:
    batch: int
    rows: int
    bad: int
    rows_total: int
    """Of this batch and all before it."""
    bad_total: int
    end: str
    """Where it ends in the topics, as Spark's checkpoint has it."""


class Table:
    def __init__(self, files: Files) -> None:
        self.files = files

    # Reading

    def find_about(self) -> About | None:
        """None where there is no table yet."""
        if not self.files.exists(_ABOUT):
            return None
        return _read_about(self.files.read(_ABOUT), self.files.address(_ABOUT))

    def find_last_commit(self) -> Commit | None:
        numbers = self._committed()
        return None if not numbers else self._read_commit(max(numbers))

    def is_done(self, batch: int) -> bool:
        """Whether a batch has its commit, so that it lacks only its entry in Spark's own log."""
        last = self.find_last_commit()
        if last is None or batch > last.batch:
            return False
        # Spark runs only the last one again, and only with the offsets that it had.
        if batch < last.batch or self._find_end(batch) != last.end:
            raise NotOurs(
                f"{self.files.address(CHECKPOINT)} is older than the table, which has batch "
                f"{last.batch}: restore the newer one, or give a new directory"
            )
        return True

    def _find_end(self, batch: int) -> str:
        """The last line that Spark wrote of a batch before it ran it: where its source ends."""
        return self.files.read(f"{CHECKPOINT}/offsets/{batch}").strip().splitlines()[-1]

    def _committed(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self.files.names(_COMMITS))
        return [int(name) for name in names if name.isdecimal()]

    def _read_commit(self, batch: int) -> Commit:
        name = f"{_COMMITS}/{batch}.json"
        try:
            return Commit(**json.loads(self.files.read(name)))
        except (TypeError, ValueError) as error:
            raise NotOurs(f"{self.files.address(name)} is no commit of an ingest") from error

    # Opening

    def open(self, about: About) -> None:
        """Make it, or make sure that it is the one that is meant."""
        before = self.find_about()
        if before is None:
            others = [name for name in self.files.names() if name != f"{_ABOUT}.new"]
            if others:
                raise NotOurs(
                    f"{self.files.root} holds something else ({_shown(others)}): "
                    "give a directory that is new or empty"
                )
            self.files.make_directory()
        else:
            _compare(before, about, self.files.root)
            self._check_checkpoint()
        if before != about:
            self.files.write(_ABOUT, _write_about(about))

    def _check_checkpoint(self) -> None:
        """Without it, batches would be counted from 0 again, and taken for those that are there."""
        if self._committed() and not self.files.names(f"{CHECKPOINT}/offsets"):
            raise NotOurs(
                f"{self.files.address(CHECKPOINT)} is gone, which knows how far the table is: "
                "restore it, or give a new directory; the group knows where to go on"
            )

    def claim(self, run: str) -> None:
        """From now on only this run may write; what others had not finished is swept away."""
        self.files.write(_RUN, run)
        self.files.delete(_STAGING)

    # Writing

    def stage(self, run: str, batch: int, part: str) -> str:
        return f"{_STAGING}/{run}/{part}/{BATCH}={batch}"

    def publish(self, run: str, batch: int, staged: dict[str, str], *, rows: int, bad: int) -> None:
        """Let a batch be seen; `staged` says where its parts are, those that there are."""
        self._check_claim(run)
        # The data comes last: who sees a batch finds its bad records as well.
        for part in (BAD, DATA):
            place = f"{part}/{BATCH}={batch}"
            self.files.delete(place)
            if part in staged:
                self.files.move(staged[part], place)
        # Whoever took over may have swept away what was just moved; it runs this batch again.
        self._check_claim(run)
        self._commit(batch, rows, bad)
        self.files.delete(f"{_STAGING}/{run}")

    def _commit(self, batch: int, rows: int, bad: int) -> None:
        last = self.find_last_commit()
        fields = {
            "batch": batch,
            "rows": rows,
            "bad": bad,
            "rows_total": rows + (last.rows_total if last else 0),
            "bad_total": bad + (last.bad_total if last else 0),
            "end": self._find_end(batch),
        }
        self.files.make_directory(_COMMITS)
        self.files.write(f"{_COMMITS}/{batch}.json", json.dumps(fields))
        for old in self._committed():
            if old <= batch - _COMMITS_KEPT:
                self.files.delete(f"{_COMMITS}/{old}.json")

    def _check_claim(self, run: str) -> None:
        if self.files.read(_RUN) != run:
            raise TakenOver(
                f"another ingest writes to {self.files.root} now, and this one has ended: "
                "one is enough for a table; members of a group that share its work have a table "
                "each"
            )


def _compare(before: About, now: About, root: str) -> None:
    advice = "give another directory"
    if before.topics != now.topics:
        raise NotOurs(f"{root} is the table of topic {', '.join(before.topics)}: {advice}")
    if before.group_id != now.group_id:
        raise NotOurs(f"{root} is the table of group {before.group_id}: {advice}, or that group")
    if before.is_parsed != now.is_parsed:
        kind = "parsed with a schema" if before.is_parsed else "raw, without a schema"
        raise NotOurs(f"{root} is a table of records {kind}: {advice}, or do the same again")
    if before.partition_by != now.partition_by:
        by = ", ".join(before.partition_by) or "nothing"
        raise NotOurs(f"{root} is partitioned by {by}: {advice}, or do the same again")
    difference = find_difference(before.columns, now.columns)
    if difference is not None:
        raise NotOurs(f"{root} has other columns: {difference}; {advice}")


def _write_about(about: About) -> str:
    fields = {
        "kind": _KIND,
        "version": _VERSION,
        "topics": list(about.topics),
        "group": about.group_id,
        "partition_by": list(about.partition_by),
        "is_parsed": about.is_parsed,
        "columns": about.columns.jsonValue(),
    }
    return json.dumps(fields, indent=1)


def _read_about(text: str, address: str) -> About:
    try:
        found: dict[str, Any] = json.loads(text)
        if (found["kind"], found["version"]) != (_KIND, _VERSION):
            raise NotOurs(f"{address} is of another kind or version")
        return About(
            topics=tuple(found["topics"]),
            group_id=found["group"],
            columns=StructType.fromJson(found["columns"]),
            partition_by=tuple(found["partition_by"]),
            is_parsed=found["is_parsed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise NotOurs(f"{address} is nothing that this version writes: {error}") from error


def _shown(names: "Iterable[str]") -> str:
    some = sorted(names)
    return ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
