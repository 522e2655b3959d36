"""Cuts the power at every point of a workload on the real disk layer, and checks the recovery.

A workload on a real directory is recorded, system call by system call. For each prefix of the
recording, legal states of the directory are built in memory and opened by the real recovery.

    python -m tests.log.power_cut --states 10000 --seed 7
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kohort.log.catalog import Catalog
from kohort.types import Offset, Topic
from kohort.wire.batch import iter_records, split
from tests.log.crash_states import Directory, Tree
from tests.log.cut_history import History, PartitionHistory, TopicState
from tests.log.cut_workload import run_workload
from tests.log.faulty_disks import MemoryDisk
from tests.log.log_setup import NOW, open_catalog, read_all
from tests.log.syscall_recorder import NOTHING, Change, Synced, SyscallRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    changes: tuple[Change, ...]
    directories: set[int]
    history: History

    def without_syncs(self, is_lost: Callable[[str], bool]) -> "Recording":
        """As if the log had not synced these paths."""
        changes = tuple(
            Synced(NOTHING, each.path) if isinstance(each, Synced) and is_lost(each.path) else each
            for each in self.changes
        )
        return Recording(changes=changes, directories=self.directories, history=self.history)


def record(directory: Path, seed: int, rounds: int) -> Recording:
    """Run the workload. What was recorded must explain what is in the directory."""
    recorder = SyscallRecorder(directory)
    history = History(recorder)
    with recorder.active():
        run_workload(directory, history, Random(seed), rounds)  # noqa: S311  # reproducible
    found = {
        f"{path.relative_to(directory)}": path.stat().st_size
        for path in directory.rglob("*")
        if path.is_file()
    }
    assert found == recorder.sizes(), "a change was not recorded"
    return Recording(
        changes=tuple(recorder.changes), directories=recorder.directories, history=history
    )


def check_states(recording: Recording, rng: Random, count: int) -> int:
    """Check about `count` states, spread over all points; returns how many it were.

    The points with many unsynced changes have more states than those with few.
    """
    directory = Directory(recording.directories)
    checked, points = 0, len(recording.changes) + 1
    for position in range(points):
        if position:
            directory.apply(recording.changes[position - 1])
        wanted = count * (position + 1) // points - checked
        for number, tree in enumerate(directory.states(rng, wanted)):
            try:
                check_state(tree, recording.history, position, loses_power_again=number % 2 == 1)
            except BaseException as error:
                before = recording.changes[max(0, position - 3) : position]
                error.add_note(f"state {number} after change {position}; the last: {before}")
                raise
            checked += 1
    return checked


def check_state(tree: Tree, history: History, position: int, *, loses_power_again: bool) -> None:
    disk = materialise(tree)
    catalog = open_catalog(disk)
    check_catalog(catalog, history, position)
    found = describe(catalog)
    if loses_power_again:
        disk.power_off()
    else:
        disk.kill()
    catalog = open_catalog(disk)
    again = describe(catalog)
    assert again == found, f"a second start found {again} instead of {found}"
    check_memory(catalog, history, position)


def materialise(tree: Tree) -> MemoryDisk:
    disk = MemoryDisk()
    for path in sorted(tree):
        content = tree[path]
        if content is None:
            disk.make_directory(path)
        else:
            file = disk.create(path)
            file.append(content)
            file.sync()
    for path, content in tree.items():
        if content is None:
            disk.sync_directory(path)
    disk.sync_directory("")
    return disk


def describe(catalog: Catalog) -> dict[str, object]:
    """Everything a client can read."""
    found: dict[str, object] = {}
    for topic in catalog.topics:
        found[topic.name] = (topic.topic_id, topic.partition_count, dict(topic.settings))
        for number in range(topic.partition_count):
            log = catalog.partition(topic.name, number)
            assert log is not None
            found[f"{topic.name}-{number}"] = (log.start_offset, log.end_offset, read_all(log))
    return found


# Checks


def check_catalog(catalog: Catalog, history: History, position: int) -> None:
    names = {topic.name for topic in catalog.topics}
    for name in names | set(history.topics):
        topic = catalog.find_topic(name)
        state = None
        if topic is not None:
            state = TopicState(
                topic_id=topic.topic_id,
                partition_count=topic.partition_count,
                settings=tuple(sorted(topic.settings.items())),
            )
        possible = history.possible_states(name, position)
        assert state in possible, f"topic {name} is {state}, expected one of {possible}"
        if state is not None:
            for number in range(state.partition_count):
                check_partition(catalog, name, number, history.partition(state, number), position)


def check_partition(
    catalog: Catalog, name: Topic, number: int, history: PartitionHistory, position: int
) -> None:
    log = catalog.partition(name, number)
    assert log is not None
    title = f"{name}-{number}"
    acked, written = history.acked_end.at(position), history.written_end.at(position)
    assert acked <= log.end_offset <= written, (
        f"{title} ends at {log.end_offset}; {acked} were acknowledged, {written} written"
    )
    lowest, highest = history.acked_start.at(position), history.start.at(position)
    assert lowest <= log.start_offset <= max(highest, lowest), (
        f"{title} starts at {log.start_offset}, not between {lowest} and {highest}"
    )
    data = read_all(log)
    found = {
        record.offset: (record.key, record.value)
        for start, _ in split(data)
        for record in iter_records(data, start)
        if record.offset >= log.start_offset
    }
    for offset, content in found.items():
        assert content == history.records[offset], f"{title}@{offset} is {content}"
    if history.is_compacted:
        check_keys(title, found, history, acked)
    else:
        expected = [*range(log.start_offset, log.end_offset)]
        assert [*found] == expected, f"{title} has {[*found]}, expected {expected}"


def check_keys(
    title: str,
    found: Mapping[Offset, tuple[bytes | None, bytes | None]],
    history: PartitionHistory,
    acked: int,
) -> None:
    """Compaction keeps the last record of each key."""
    assert [*found] == sorted(found), f"{title} has offsets {[*found]}"
    newest = {key: offset for offset, (key, _) in found.items()}
    for key, offset in history.last_of_keys(acked).items():
        kept = newest.get(key)
        assert kept is not None, f"{title} has lost {key!r}, committed at {offset}"
        assert kept >= offset, f"{title} has {key!r} of {kept}, a later one was acknowledged"


def check_memory(catalog: Catalog, history: History, position: int) -> None:
    """What the catalog and the producers must remember."""
    for partition, batches in history.batches.items():
        log = catalog.partition(*partition)
        if log is not None and log.end_offset > log.start_offset:
            retried = log.append(batches[log.end_offset], NOW)
            assert retried.is_duplicate, f"{partition}: the last batch was written again"
    first = catalog.reserve_producer_ids(1)
    reserved = history.producer_ids.at(position)
    assert first >= reserved, f"producer id {first} was issued before"


def check_all(states: int, seed: int, rounds: int) -> int:
    rng = Random(seed)  # noqa: S311  # reproducible from the seed
    with tempfile.TemporaryDirectory(prefix="kohort-power-") as directory:
        recording = record(Path(directory), seed, rounds)
    return check_states(recording, rng, states)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=60, help="of the workload")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = parser.parse_args(None if arguments is None else [*arguments])
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()
    checked = check_all(options.states, options.seed, options.rounds)
    print(f"{checked} states recovered in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
