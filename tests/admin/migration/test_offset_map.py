"""Source offsets are translated to target offsets by counting records, with any gaps."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.migration.migration_state import BatchIntent, open_state
from kohort.admin.migration.offset_map import MappedRange, join, map_range, translate
from kohort.types import Offset, Topic
from tests.client.node_cluster import at

PARTITION = at(Topic("orders"))


@st.composite
def logs(draw: st.DrawFn) -> list[list[Offset]]:
    """The offsets of the source, in batches."""
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 5, 2**33]), min_size=1, max_size=60))
    offsets, offset = list[Offset](), draw(st.integers(0, 1000))
    for step in steps:
        offset += step
        offsets.append(Offset(offset))
    cuts = sorted(draw(st.sets(st.integers(1, len(offsets)), max_size=8)) | {0, len(offsets)})
    return [offsets[first:last] for first, last in pairwise(cuts)]


@given(log=logs(), foreign=st.lists(st.integers(0, 3), min_size=10, max_size=10))
def test_a_reader_continues_after_all_read_records_and_before_all_others(
    log: list[list[Offset]], foreign: list[int]
) -> None:
    """Other producers write between some batches, so that the target has gaps too."""
    mapping: dict[Offset, Offset] = {}
    with open_state(None) as state:
        target = Offset(7)
        state.create_partition(PARTITION, Offset(0), target)
        copied = 0
        for batch, others in zip(log, [*foreign, *[0] * len(log)], strict=False):
            target = Offset(target + others)
            intent = BatchIntent(
                partition=PARTITION,
                copied=copied,
                source_next=Offset(batch[-1] + 1),
                mapped=map_range(batch, Offset(-1)),
                checksum=copied,
            )
            state.save_intents([intent])
            state.save_written([(intent, target)])
            mapping |= {offset: Offset(target + number) for number, offset in enumerate(batch)}
            copied += len(batch)
            target = Offset(target + len(batch))

        first, last = min(mapping), max(mapping)
        for offset in {0, first, last + 1, last + 99, *mapping, *(each + 1 for each in mapping)}:
            found = state.translate(PARTITION, Offset(offset))
            read = [mapping[each] for each in mapping if each < offset]
            unread = [mapping[each] for each in mapping if each >= offset]
            assert all(each < found for each in read)
            assert all(each >= found for each in unread)
            # The new position is directly after the last read record.
            assert found == (read[-1] + 1 if read else mapping[first])


def test_adjacent_dense_ranges_are_joined() -> None:
    first = map_range([Offset(3), Offset(4)], Offset(0))
    second = map_range([Offset(5), Offset(6), Offset(7)], Offset(2))

    joined = join(first, second)

    assert joined == MappedRange(
        source_first=Offset(3), source_next=Offset(8), target=Offset(0), count=5
    )
    assert join(first, map_range([Offset(6)], Offset(2))) is None
    assert join(first, map_range([Offset(5)], Offset(9))) is None


def test_a_range_with_gaps_stores_its_offsets() -> None:
    mapped = map_range([Offset(3), Offset(7), Offset(20)], Offset(100))

    found = [translate(mapped, Offset(offset)) for offset in (4, 7, 8, 20, 21, 99)]

    assert found == [101, 101, 102, 102, 103, 103]


def test_millions_of_records_without_gaps_take_one_row(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_state(path) as state:
        state.create_partition(PARTITION, Offset(0), Offset(0))
        for number in range(200):
            first = number * 10_000
            intent = BatchIntent(
                partition=PARTITION,
                copied=first,
                source_next=Offset(first + 10_000),
                mapped=MappedRange(
                    source_first=Offset(first),
                    source_next=Offset(first + 10_000),
                    target=Offset(-1),
                    count=10_000,
                ),
                checksum=0,
            )
            state.save_intents([intent])
            state.save_written([(intent, Offset(first))])

        assert state.translate(PARTITION, Offset(1_234_567)) == 1_234_567
        assert state.find_range(PARTITION, Offset(2_000_000)) == MappedRange(
            source_first=Offset(0), source_next=Offset(2_000_000), target=Offset(0), count=2_000_000
        )
    assert path.stat().st_size < 100_000
