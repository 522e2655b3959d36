"""The directory of an ingested table: its layout, and when a batch is complete.

    data/batch=7/...        rows in Parquet, one directory per batch
    _bad/batch=7/...        records that could not be parsed, and why
    _commits/7.json         batch 7 is complete: its rows and bad rows, and the totals
    _checkpoint/            Spark's checkpoint
    _staging/RUN/batch=8/   the batch that is being written
    _kohort.json            topics, group and columns of the table
    _run                    the id of the run that may write

A batch is written to _staging, moved into place, and then its commit is written. If a directory
can be moved atomically, as on a local disk and on HDFS, data/ never shows half a batch. On an
object store only a reader that follows the commits is sure of that. A batch that runs again
replaces what has no commit and skips what has one, because Spark repeats it with the same offsets.
"""

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.hadoop_fs import HadoopFiles
from kohort.pipeline.ingest.table_schema import BATCH, find_difference
from kohort.types import value

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA: Final = "data"
BAD: Final = "_bad"
CHECKPOINT: Final = "_checkpoint"
_COMMITS: Final = "_commits"
_STAGING: Final = "_staging"
_METADATA: Final = "_kohort.json"
_RUN: Final = "_run"

_KIND: Final = "kohort ingest"
_VERSION: Final = 1

_COMMITS_KEPT: Final = 100
"""The last one is enough to read the table; the others help to find errors."""


class TableMismatch(PipelineError):
    """The directory holds something else, or the table of another ingest."""


class TableTakenOver(PipelineError):
    """Another run now writes to the same table."""


@value
class TableMetadata:
    """What _kohort.json stores."""

    topics: tuple[str, ...]
    group_id: str
    columns: StructType
    """All columns but the batch."""
    partition_by: tuple[str, ...]
    is_parsed: bool


@value
class BatchCommit:
    batch: int
    rows: int
    bad: int
    rows_total: int
    """Of this batch and all earlier ones."""
    bad_total: int
    end: str
    """The offset at which it ends, as in Spark's checkpoint."""


class IngestTable:
    def __init__(self, files: HadoopFiles) -> None:
        self.files = files

    # Reading

    def find_metadata(self) -> TableMetadata | None:
        """None if there is no table yet."""
        if not self.files.exists(_METADATA):
            return None
        return _read_metadata(self.files.read(_METADATA), self.files.address(_METADATA))

    def find_last_commit(self) -> BatchCommit | None:
        numbers = self._committed()
        return None if not numbers else self._read_commit(max(numbers))

    def is_committed(self, batch: int) -> bool:
        """Whether a batch has its commit, and only its entry in Spark's log is missing."""
        last = self.find_last_commit()
        if last is None or batch > last.batch:
            return False
        # Spark runs only the last batch again, with the same offsets.
        if batch < last.batch or self._find_end(batch) != last.end:
            raise TableMismatch(
                f"{self.files.address(CHECKPOINT)} is older than the table, which has batch "
                f"{last.batch}: restore the newer one, or give a new directory"
            )
        return True

    def _find_end(self, batch: int) -> str:
        """The last line of Spark's offset log for a batch: the offset at which it ends."""
        return self.files.read(f"{CHECKPOINT}/offsets/{batch}").strip().splitlines()[-1]

    def _committed(self) -> list[int]:
        names = (name.removesuffix(".json") for name in self.files.names(_COMMITS))
        return [int(name) for name in names if name.isdecimal()]

    def _read_commit(self, batch: int) -> BatchCommit:
        name = f"{_COMMITS}/{batch}.json"
        try:
            return BatchCommit(**json.loads(self.files.read(name)))
        except (TypeError, ValueError) as error:
            raise TableMismatch(
                f"{self.files.address(name)} is not a commit of an ingest"
            ) from error

    # Opening

    def open(self, metadata: TableMetadata) -> None:
        """Create the table, or raise TableMismatch if it is another one."""
        before = self.find_metadata()
        if before is None:
            others = [name for name in self.files.names() if name != f"{_METADATA}.new"]
            if others:
                raise TableMismatch(
                    f"{self.files.root} holds something else ({_shown(others)}): "
                    "give a directory that is new or empty"
                )
            self.files.make_directory()
        else:
            _check_same(before, metadata, self.files.root)
            self._check_checkpoint()
        if before != metadata:
            self.files.write(_METADATA, _write_metadata(metadata))

    def _check_checkpoint(self) -> None:
        """Without it, Spark would number new batches from 0, like committed ones."""
        if self._committed() and not self.files.names(f"{CHECKPOINT}/offsets"):
            raise TableMismatch(
                f"{self.files.address(CHECKPOINT)} is missing: restore it, or give a new "
                "directory, which continues from the group's committed offsets"
            )

    def claim(self, run: str) -> None:
        """Make this run the only writer, and delete the unfinished batch of an earlier run."""
        self.files.write(_RUN, run)
        self.files.delete(_STAGING)

    # Writing

    def stage(self, run: str, batch: int, part: str) -> str:
        return f"{_STAGING}/{run}/{part}/{BATCH}={batch}"

    def publish(self, run: str, batch: int, staged: dict[str, str], *, rows: int, bad: int) -> None:
        """Move a batch into place and commit it; `staged` has the directories of its parts."""
        self._check_claim(run)
        # Data comes last, so that a reader of a batch finds its bad records, too.
        for part in (BAD, DATA):
            directory = f"{part}/{BATCH}={batch}"
            self.files.delete(directory)
            if part in staged:
                self.files.move(staged[part], directory)
        # A run that took over may have deleted the moved directories; it repeats the batch.
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
            raise TableTakenOver(
                f"another ingest now writes to {self.files.root}, so this one stopped: a table has "
                "one writer; members that share a group need a table each"
            )


def _check_same(before: TableMetadata, now: TableMetadata, root: str) -> None:
    advice = "give another directory"
    if before.topics != now.topics:
        raise TableMismatch(f"{root} is the table of topic {', '.join(before.topics)}: {advice}")
    if before.group_id != now.group_id:
        raise TableMismatch(
            f"{root} is the table of group {before.group_id}: {advice}, or use that group"
        )
    if before.is_parsed != now.is_parsed:
        kind = "parsed with a schema" if before.is_parsed else "raw, without a schema"
        raise TableMismatch(
            f"{root} is a table of records {kind}: {advice}, or use the same options"
        )
    if before.partition_by != now.partition_by:
        by = ", ".join(before.partition_by) or "nothing"
        raise TableMismatch(f"{root} is partitioned by {by}: {advice}, or use the same options")
    difference = find_difference(before.columns, now.columns)
    if difference is not None:
        raise TableMismatch(f"{root} has other columns: {difference}; {advice}")


def _write_metadata(metadata: TableMetadata) -> str:
    fields = {
        "kind": _KIND,
        "version": _VERSION,
        "topics": list(metadata.topics),
        "group": metadata.group_id,
        "partition_by": list(metadata.partition_by),
        "is_parsed": metadata.is_parsed,
        "columns": metadata.columns.jsonValue(),
    }
    return json.dumps(fields, indent=1)


def _read_metadata(text: str, address: str) -> TableMetadata:
    try:
        found: dict[str, Any] = json.loads(text)
        if (found["kind"], found["version"]) != (_KIND, _VERSION):
            raise TableMismatch(f"{address} has another kind or version")
        return TableMetadata(
            topics=tuple(found["topics"]),
            group_id=found["group"],
            columns=StructType.fromJson(found["columns"]),
            partition_by=tuple(found["partition_by"]),
            is_parsed=found["is_parsed"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TableMismatch(f"{address} was not written by this version: {error}") from error


def _shown(names: "Iterable[str]") -> str:
    some = sorted(names)
    return ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
