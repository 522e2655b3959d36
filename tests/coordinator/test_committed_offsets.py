"""CommittedOffsets: columnar commits read like single commits."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.commands import OffsetColumns, PartitionColumns
from kohort.coordinator.committed_offsets import CommittedOffsets
from kohort.coordinator.records import OffsetCommitted, OffsetsCommitted
from kohort.types import ZERO_UUID, GroupId, Millis, Offset, Partition, ProducerId, Topic

GROUP = GroupId("g")
PRODUCER = ProducerId(7)


def places_of(*names: tuple[str, int]) -> PartitionColumns:
    return PartitionColumns(
        tuple(Topic(topic) for topic, _ in names),
        tuple(Partition(partition) for _, partition in names),
        (ZERO_UUID,) * len(names),
    )


PLACES = [
    places_of(("t", 0), ("t", 1)),
    places_of(("t", 1), ("u", 0)),
    places_of(("u", 0)),
    places_of(("t", 0), ("t", 1)),
]
"""They overlap, and two are alike without being the same."""


@dataclass(frozen=True)
class Step:
    kind: str
    place: int
    offset: int


STEPS = st.builds(
    Step,
    st.sampled_from(
        ["together", "together", "together", "alone", "pending", "end", "remove", "look"]
    ),
    st.integers(0, len(PLACES) - 1),
    st.integers(0, 1_000),
)


def together(step: Step) -> OffsetsCommitted:
    places = PLACES[step.place]
    columns = OffsetColumns(
        partition_columns=places,
        offsets=tuple(Offset(step.offset + number) for number in range(len(places.topics))),
        leader_epochs=(-1,) * len(places.topics),
    )
    return OffsetsCommitted(group_id=GROUP, columns=columns, commit_ms=Millis(5))


def do(book: CommittedOffsets, step: Step, *, is_lumped: bool) -> None:
    first, *_ = records = list(together(step))
    match step.kind:
        case "together" if is_lumped:
            book.commit_all(together(step))
        case "together":
            for record in records:
                book.commit(record)
        case "alone":
            book.commit(first)
        case "pending":
            book.commit_pending(PRODUCER, first)
        case "end":
            book.end_transaction(PRODUCER, is_commit=step.offset % 2 == 0)
        case "remove":
            book.remove(first.topic, first.partition)
        case _:
            assert isinstance(book.find(first.topic, first.partition), OffsetCommitted | None)


@given(st.lists(STEPS, max_size=40))
def test_columnar_commits_read_like_single_commits(steps: list[Step]) -> None:
    lumped, single = CommittedOffsets(), CommittedOffsets()

    for step in steps:
        do(lumped, step, is_lumped=True)
        do(single, step, is_lumped=False)

    assert bool(lumped) == bool(single)
    assert lumped == single


def test_unexpanded_commits_are_bounded() -> None:
    book = CommittedOffsets()

    for number in range(1_000):
        places = places_of(("t", 0))
        columns = OffsetColumns(
            partition_columns=places, offsets=(Offset(number),), leader_epochs=(-1,)
        )
        book.commit_all(OffsetsCommitted(group_id=GROUP, columns=columns, commit_ms=Millis(5)))

    assert [record.offset for record in book] == [999]
