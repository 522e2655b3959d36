"""CPU time with and without each fast path.

A fast path gives the same result as the plain path beside it, and must save at least 15 % of the
figure it serves. Here each is switched off by replacing its one interface with the plain path. Both
sides take turns in short rounds in one process, without sockets and, if possible, without a disk;
the best round of each side counts, because other programs on the machine only add time.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from bench.kit.harness import Effort, Result, Work, calls_per_round, cpu_seconds, tell
from bench.kit.in_memory_node import Unplugged
from bench.kit.request_frames import fetch_offsets
from bench.node import MEMORY, TOPIC, beat_frames, commit_frame, join_through
from kohort.coordinator.commands import Heartbeat
from kohort.coordinator.committed_offsets import CommittedOffsets
from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.groups.classic import heartbeat
from kohort.coordinator.record_codec import Skipped, encode_record
from kohort.coordinator.records import OffsetCommitted, OffsetsCommitted
from kohort.log import key_offset_map
from kohort.log.appended_batch import TrustedBatch
from kohort.log.catalog import Catalog
from kohort.log.compaction import Compaction
from kohort.log.key_offset_map import KeyOffsetMap
from kohort.log.partition import PartitionLog
from kohort.node import dispatch, group_record_writer
from kohort.node.group_loader import GroupLoader, read_batches
from kohort.node.handlers import k08_offset_commit, k09_offset_fetch, k12_heartbeat
from kohort.node.offset_fetch_encoder import PlainOffsetFetchEncoder
from kohort.node.repeated_commits import RepeatedCommits
from kohort.node.repeated_requests import RepeatedRequests
from kohort.node.request import PARKED
from kohort.types import GroupId, Millis, Offset, Partition, Uuid
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k12_heartbeat import HeartbeatResponse
from kohort.wire.batch import BatchHeader, encode_simple_batch, iter_records
from kohort.wire.records import encode_simple_records

RATIO_MAX: Final = 0.85

CONNECTIONS: Final = 50
PARTITIONS: Final = 10
FRAMES: Final = 16
NOW: Final = Millis(1_700_000_000_000)
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "1000000",
}

Change = tuple[Any, str, Any]
"""An object, the name of its interface, and the plain path to put there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FastPath:
    name: str
    off: Sequence[Change]
    serves_one: bool = True
    """Whether it should help a connection that is alone; if not, that figure has no target."""


def find_nothing(*_: object) -> None:
    """A fast path that recognises nothing."""


# Heartbeats


def park_heartbeat(broker: Any, request: Any, now: Millis) -> object:
    """The plain path of every other request: a ticket, and a reply that is delivered later."""
    body = request.body
    command = Heartbeat(
        ticket=broker.park(request, lambda *_: k12_heartbeat.accepted_response(request.version)),
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=body.group_instance_id,
        generation=body.generation_id,
    )
    broker.groups.submit(command, now)
    return PARKED


def heartbeat_paths() -> Iterator[FastPath]:
    yield FastPath(
        name="the last request's bytes again", off=[(RepeatedRequests, "find", find_nothing)]
    )
    yield FastPath(name="usual heartbeat", off=[(heartbeat, "find_usual_outcome", find_nothing)])
    yield FastPath(
        name="prepared response",
        off=[(k12_heartbeat, "accepted_response", lambda _: HeartbeatResponse())],
    )
    known = dispatch._handlers  # noqa: SLF001  # the handlers have no other interface
    handlers = {**known, 12: park_heartbeat}
    yield FastPath(name="reply without a ticket", off=[(dispatch, "_handlers", handlers)])


# Commits

columnar_offsets = RepeatedCommits.offsets


def encode_each(record: OffsetsCommitted) -> bytes:
    return encode_simple_records([encode_record(each) for each in record])


def commit_each(offsets: CommittedOffsets, records: OffsetsCommitted) -> None:
    for record in records:
        offsets.commit(record)


def append_each(log: PartitionLog, batches: Sequence[TrustedBatch], now: Millis) -> list[None]:
    for batch in batches:
        log.append_trusted(batch.data, now)
    return [None] * len(batches)


def commit_paths() -> Iterator[FastPath]:
    yield FastPath(
        name="recognised frames",
        off=[
            (RepeatedRequests, "read", find_nothing),
            (k08_offset_commit, "_learn", find_nothing),
        ],
    )
    yield FastPath(
        name="columnar offsets",
        off=[(RepeatedCommits, "offsets", lambda *each: tuple(columnar_offsets(*each)))],
    )
    yield FastPath(name="prepared response", off=[(RepeatedCommits, "find_response", find_nothing)])
    yield FastPath(
        name="records from a template", off=[(group_record_writer, "encode_columns", encode_each)]
    )
    yield FastPath(name="lazy expansion", off=[(CommittedOffsets, "commit_all", commit_each)])
    yield FastPath(
        name="one write for many batches",
        off=[(PartitionLog, "append_trusted_batches", append_each)],
        serves_one=False,
    )


# The log


def batches_of(groups: int, count: int) -> Iterator[bytes]:
    """Commits of ten partitions by some groups in turn, as the log holds them."""
    for number in range(count):
        offsets = [
            OffsetCommitted(
                group_id=GroupId(f"group-{number % groups}"),
                topic=TOPIC,
                partition=Partition(each),
                offset=Offset(number),
                commit_ms=Millis(NOW + number),
            )
            for each in range(PARTITIONS)
        ]
        yield encode_simple_batch([encode_record(each) for each in offsets], Millis(NOW + number))


def batches_of_any(count: int) -> Iterator[bytes]:
    """Records of 5000 keys in random order: few batches repeat, and few are replaced as a whole."""
    rng = Random(1)  # noqa: S311  # the same records in every run
    for _ in range(count):
        pairs = [(b"key-%04d" % rng.randrange(5_000), bytes(100)) for _ in range(20)]
        yield encode_simple_batch(pairs, NOW)


def load_cpu(chunk: bytes) -> float:
    """CPU time of loading in microseconds."""
    return cpu_seconds(partial(load, chunk), 1) * 1e6


def load(chunk: bytes) -> None:
    coordinator, loader = Coordinator(), GroupLoader()
    for record in loader.read(chunk):
        assert not isinstance(record, Skipped)
        coordinator.apply(record)
    coordinator.apply_all(list(loader.finish()))


LOADING: Final = FastPath(
    name="repeated batches", off=[(GroupLoader, "read", lambda _, chunk: read_batches(chunk))]
)


def read_keys_of_records(
    chunk: bytes, position: int, _: BatchHeader
) -> list[tuple[bytes | None, Offset]]:
    return [(each.key, each.offset) for each in iter_records(chunk, position, check_crc=False)]


KEYS_ALONE: Final = FastPath(
    name="keys without values", off=[(key_offset_map, "read_keys", read_keys_of_records)]
)

COMPACTING: Final = (
    FastPath(name="repeated batches", off=[(KeyOffsetMap, "add", KeyOffsetMap.add_each)]),
    FastPath(name="replaced batches skipped", off=[(Compaction, "_skip_superseded", lambda *_: 0)]),
)


class CompactedLog:
    """A log with a directory that is copied, so that the same round can be run again."""

    def __init__(self, directory: Path, batches: Iterator[bytes]) -> None:
        self._original, self._copy = directory / "original", directory / "copy"
        self._original.mkdir(parents=True)
        catalog, _ = Catalog.open(self._original, NOW, {})
        catalog.create_topic(TOPIC, Uuid(bytes(range(16))), 1, COMPACTED)
        log = catalog.partition(TOPIC, 0)
        assert log is not None
        for batch in batches:
            log.append_trusted(batch, NOW)
        catalog.close(NOW)

    def compact(self) -> float:
        """CPU time of one round in microseconds."""
        shutil.copytree(self._original, self._copy)
        catalog, _ = Catalog.open(self._copy, NOW, {})
        try:
            return cpu_seconds(lambda: catalog.clean(NOW), 1) * 1e6
        finally:
            catalog.close(NOW)
            shutil.rmtree(self._copy)


# Measuring


@contextmanager
def switched_off(path: FastPath) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, plain in path.off:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, plain)
        yield


def compare(
    metric: str,
    path: FastPath,
    measured: Callable[[], float],
    rounds: int,
    target: float | None = RATIO_MAX,
) -> Result:
    """The best round with the fast path, and the best without."""
    fast, plain = [], []
    for _ in range(rounds):
        fast.append(measured())
        with switched_off(path):
            plain.append(measured())
    name = f"{metric}: {path.name}"
    return Result(metric=name, kohort=min(fast), peer=min(plain), target=target)


def timed(work: Work, per: int = 1) -> Callable[[], float]:
    """A measurement of some calls, after some more that a change of path is noticed in."""
    for _ in range(2 * FRAMES):
        work()
    count = max(1, calls_per_round(work) // 4)

    def measured() -> float:
        for _ in range(3):
            work()
        return cpu_seconds(work, count) / count / per * 1e6

    return measured


def measure(effort: Effort) -> Iterator[Result]:
    memory = MEMORY if Path(MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kohort-bench-", dir=memory) as directory:
        (Path(directory) / "node").mkdir()
        node = Unplugged(Path(directory) / "node")
        node.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9)
        yield from measure_requests(node, effort)
        node.close()
        yield from measure_log(Path(directory), effort)


def measure_requests(node: Unplugged, effort: Effort) -> Iterator[Result]:
    rounds = effort.rounds
    groups = [f"group-{number}" for number in range(effort.pick(1_000, CONNECTIONS))]
    members = [join_through(node, each) for each in groups]
    beats = timed(node.repeat(beat_frames(groups[0], members[0])))
    for path in heartbeat_paths():
        yield compare("heartbeat", path, beats, rounds)
    turns = [
        [
            commit_frame(group, member, turn, turn)
            for group, member in zip(groups, members, strict=True)
        ]
        for turn in range(FRAMES)
    ]
    alone = timed(node.repeat([turn[0] for turn in turns]))
    many = timed(node.repeat_on_each([turn[:CONNECTIONS] for turn in turns]), CONNECTIONS)
    for path in commit_paths():
        target = RATIO_MAX if path.serves_one else None
        yield compare("commit of 10, one connection", path, alone, rounds, target)
        yield compare(f"commit of 10, {CONNECTIONS} connections", path, many, rounds)
    for frame in turns[0]:
        node.repeat([frame])()
    direct = FastPath(
        name="bytes without messages",
        off=[(k09_offset_fetch, "new_offset_fetch_encoder", PlainOffsetFetchEncoder)],
    )
    for count in (1, len(groups)):
        fetch = timed(node.repeat([fetch_offsets(groups[:count])]))
        yield compare(f"offset fetch, groups: {count:_}", direct, fetch, rounds)


def measure_log(directory: Path, effort: Effort) -> Iterator[Result]:
    count = effort.pick(5_000, 500)
    rounds = min(effort.rounds, 6)
    for groups in (1, CONNECTIONS):
        chunk = b"".join(batches_of(groups, count))
        metric = f"restart, {count * PARTITIONS:_} commits, groups: {groups}"
        yield compare(metric, LOADING, partial(load_cpu, chunk), rounds)
    commits = batches_of(CONNECTIONS, effort.pick(10_000, 2_000))
    log = CompactedLog(directory / "commits", commits)
    for path in COMPACTING:
        yield compare("compaction of commits", path, log.compact, rounds)
    log = CompactedLog(directory / "any", batches_of_any(effort.pick(2_000, 1_000)))
    yield compare("compaction of 5_000 keys", KEYS_ALONE, log.compact, rounds)


if __name__ == "__main__":
    tell(__doc__ or "", "without", measure)
