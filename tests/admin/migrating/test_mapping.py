"""Offsets of A become offsets of B by counting records, whatever gaps there are."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.migrating.mapping import Stretch, join, make_stretch, translate
from kohort.admin.migrating.state import Intent, open_state
from kohort.types import Offset, Topic
from tests.client.clusters import at

PLACE = at(Topic("orders"))


@st.composite
def logs(draw: st.DrawFn) -> list[list[Offset]]:
    """The offsets that A has, in batches."""
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 5, 2**33]), min_size=1, max_size=60))
    offsets, offset = list[Offset](), draw(st.integers(0, 1000))
    for step in steps:
        offset += step
        offsets.append(Offset(offset))
    cuts = sorted(draw(st.sets(st.integers(1, len(offsets)), max_size=8)) | {0, len(offsets)})
    return [offsets[first:last] for first, last in pairwise(cuts)]


@given(log=logs(), foreign=st.lists(st.integers(0, 3), min_size=10, max_size=10))
def test_a_reader_goes_on_behind_all_it_has_read_and_before_all_else(
    log: list[list[Offset]], foreign: list[int]
) -> None:
    """Some batches are written behind records of others, so that B has gaps of its own."""
    places: dict[Offset, Offset] = {}
    with open_state(None) as state:
        target = Offset(7)
        state.begin_partition(PLACE, Offset(0), target)
        copied = 0
        for batch, others in zip(log, [*foreign, *[0] * len(log)], strict=False):
            target = Offset(target + others)
            intent = Intent(
                partition=PLACE,
                copied=copied,
                source_next=Offset(batch[-1] + 1),
                stretch=make_stretch(batch, Offset(-1)),
                checksum=copied,
            )
            state.intend([intent])
            state.settle([(intent, target)])
            places |= {offset: Offset(target + number) for number, offset in enumerate(batch)}
            copied += len(batch)
            target = Offset(target + len(batch))

        first, last = min(places), max(places)
        for offset in {0, first, last + 1, last + 99, *places, *(each + 1 for each in places)}:
            found = state.translate(PLACE, Offset(offset))
            read = [places[each] for each in places if each < offset]
            unread = [places[each] for each in places if each >= offset]
            assert all(each < found for each in read)
            assert all(each >= found for each in unread)
            # Nothing lies between what was read and where it goes on.
            assert found == (read[-1] + 1 if read else places[first])


def test_neighbours_without_gaps_become_one() -> None:
    first = make_stretch([Offset(3), Offset(4)], Offset(0))
    second = make_stretch([Offset(5), Offset(6), Offset(7)], Offset(2))

    joined = join(first, second)

    assert joined == Stretch(
        source_first=Offset(3), source_next=Offset(8), target=Offset(0), count=5
    )
    assert join(first, make_stretch([Offset(6)], Offset(2))) is None
    assert join(first, make_stretch([Offset(5)], Offset(9))) is None


def test_a_stretch_with_gaps_knows_its_offsets() -> None:
    stretch = make_stretch([Offset(3), Offset(7), Offset(20)], Offset(100))

    found = [translate(stretch, Offset(offset)) for offset in (4, 7, 8, 20, 21, 99)]

    assert found == [101, 101, 102, 102, 103, 103]


def test_millions_of_records_without_gaps_take_one_row(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with open_state(path) as state:
        state.begin_partition(PLACE, Offset(0), Offset(0))
        for number in range(200):
            first = number * 10_000
            intent = Intent(
                partition=PLACE,
                copied=first,
                source_next=Offset(first + 10_000),
                stretch=Stretch(
                    source_first=Offset(first),
                    source_next=Offset(first + 10_000),
                    target=Offset(-1),
                    count=10_000,
                ),
                checksum=0,
            )
            state.intend([intent])
            state.settle([(intent, Offset(first))])

        assert state.translate(PLACE, Offset(1_234_567)) == 1_234_567
        assert state.find_stretch(PLACE, Offset(2_000_000)) == Stretch(
            source_first=Offset(0), source_next=Offset(2_000_000), target=Offset(0), count=2_000_000
        )
    assert path.stat().st_size < 100_000
