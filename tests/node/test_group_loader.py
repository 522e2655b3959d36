"""Loading `__consumer_offsets`: the fast path and the plain path give the same state."""

from collections.abc import Callable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.record_codec import Skipped, encode_record
from kohort.coordinator.records import (
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
    Record,
    UnknownRecord,
)
from kohort.node.group_loader import GroupLoader, read_batches
from kohort.types import (
    Generation,
    GroupId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
)
from kohort.wire.batch import Codec, NewBatch, NewRecord, encode, encode_simple_batch
from kohort.wire.consumer_offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from kohort.wire.control_batch import EndTransactionMarker, MarkerType, new_marker_batch

GROUPS = tuple(map(GroupId, ("g", "longer")))
PLACES = tuple((Topic(name), partition) for name in ("t", "orders") for partition in (0, 1))
NOW = Millis(1_700_000_000_000)
PRODUCER = ProducerId(7)

Write = Callable[[int], bytes]
"""A batch of the log with numbers that grow with the round it is written in."""

numbers = st.integers(0, 2**40)
groups = st.sampled_from(GROUPS)
places = st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True)
producers = st.sampled_from([PRODUCER, ProducerId(8)])


def offset(
    group: GroupId, topic: str, partition: int, number: int, metadata: str = ""
) -> OffsetCommitted:
    return OffsetCommitted(
        group_id=group,
        topic=Topic(topic),
        partition=Partition(partition),
        offset=Offset(number),
        leader_epoch=number % 3 - 1,
        metadata=metadata,
        commit_ms=Millis(NOW + number % 1000),
    )


def batch(*records: OffsetCommitted | OffsetRemoved | ClassicGroupMetadata | GroupRemoved) -> bytes:
    return encode_simple_batch([encode_record(record) for record in records], NOW)


@st.composite
def commits(draw: st.DrawFn, *, of_several: bool = False) -> Write:
    """With or without metadata."""
    metadata = draw(st.sampled_from(["", "", "m"]))
    group, start = draw(groups), draw(numbers)
    offsets = [(draw(groups) if of_several else group, *place) for place in draw(places)]
    return lambda number: batch(*(offset(*each, start + number, metadata) for each in offsets))


@st.composite
def older_commits(draw: st.DrawFn) -> Write:
    """As earlier versions of Kafka wrote them, under keys of either number."""
    version, key_version = draw(st.integers(0, 3)), draw(st.sampled_from([b"\0\0", b"\0\1"]))
    group, named, metadata = draw(groups), draw(places), draw(st.sampled_from(["", "m"]))

    def write(number: int) -> bytes:
        content = OffsetCommitValue(
            offset=Offset(number), metadata=metadata, commit_timestamp=Millis(NOW + number)
        )
        keys = [
            encode_key(OffsetCommitKey(group=group, topic=topic, partition=Partition(partition)))
            for topic, partition in named
        ]
        pairs = [(key_version + key[2:], encode_value(content, version)) for key in keys]
        return encode_simple_batch(pairs, NOW)

    return write


@st.composite
def removals(draw: st.DrawFn) -> Write:
    group = draw(groups)
    removed = [
        OffsetRemoved(group_id=group, topic=topic, partition=Partition(partition))
        for topic, partition in draw(places)
    ]
    return lambda _: batch(*removed)


@st.composite
def generations(draw: st.DrawFn) -> Write:
    group = draw(groups)
    return lambda number: batch(
        ClassicGroupMetadata(
            group_id=group,
            protocol_type="consumer",
            generation=Generation(number),
            protocol=None,
            leader=None,
            state_since_ms=NOW,
            members=(),
        )
    )


def in_transaction(offsets: list[OffsetCommitted], producer_id: ProducerId) -> bytes:
    pairs = map(encode_record, offsets)
    return encode(
        NewBatch(
            records=tuple(NewRecord(key=key, value=text, timestamp=NOW) for key, text in pairs),
            is_transactional=True,
            producer_id=producer_id,
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
    )


def end_of(producer_id: ProducerId, how: MarkerType) -> bytes:
    return encode(
        new_marker_batch(
            EndTransactionMarker(type=how, coordinator_epoch=0),
            producer_id=producer_id,
            producer_epoch=ProducerEpoch(0),
            timestamp=NOW,
            base_offset=Offset(0),
        )
    )


@st.composite
def transactions(draw: st.DrawFn) -> Write:
    group, named, producer_id = draw(groups), draw(places), draw(producers)
    return lambda number: in_transaction(
        [offset(group, *place, number) for place in named], producer_id
    )


@st.composite
def markers(draw: st.DrawFn) -> Write:
    ended = end_of(draw(producers), draw(st.sampled_from(MarkerType)))
    return lambda _: ended


@st.composite
def oddities(draw: st.DrawFn) -> Write:
    """A value that makes no sense, under a key that does; or a compressed one that does."""
    group, is_damaged = draw(groups), draw(st.booleans())

    def write(number: int) -> bytes:
        key, text = encode_record(offset(group, "t", 0, number))
        assert text is not None
        if is_damaged:
            return encode_simple_batch([(key, text[:-2])], NOW)
        record = NewRecord(key=key, value=text, timestamp=NOW)
        return encode(NewBatch(records=(record,), codec=Codec.GZIP))

    return write


@st.composite
def group_removals(draw: st.DrawFn) -> Write:
    group = draw(groups)
    return lambda _: batch(GroupRemoved(group_id=group))


writers = st.one_of(
    commits(),
    commits(),
    commits(),
    commits(of_several=True),
    older_commits(),
    removals(),
    generations(),
    group_removals(),
    transactions(),
    markers(),
    oddities(),
)


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """A few that write, each of them several times."""
    cast = draw(st.lists(writers, min_size=2, max_size=5))
    order = draw(st.lists(st.sampled_from(cast), min_size=12, max_size=40))
    return [write(number) for number, write in enumerate(order)]


def returned(log: list[bytes], chunk_size: int) -> Iterator[Record | UnknownRecord | Skipped]:
    loader = GroupLoader()
    for first in range(0, len(log), chunk_size):
        yield from loader.read(b"".join(log[first : first + chunk_size]))
    yield from loader.finish()


def loaded(
    records: Iterator[Record | UnknownRecord | Skipped],
) -> tuple[Coordinator, list[Skipped]]:
    coordinator, skipped = Coordinator(), []
    coordinator.start()
    for record in records:
        if isinstance(record, Skipped):
            skipped.append(record)
        else:
            coordinator.apply(record)
    return coordinator, skipped


@settings(max_examples=500)
@given(logs(), st.integers(1, 5))
def test_fast_path_gives_the_same_state_as_the_plain_path(
    log: list[bytes], chunk_size: int
) -> None:
    quick, quick_skipped = loaded(returned(log, chunk_size))
    general, skipped = loaded(record for each in log for record in read_batches(each))

    assert quick.hard_state() == general.hard_state()
    assert set(quick.groups) == set(general.groups)
    assert quick.unknown_records == general.unknown_records
    assert quick_skipped == skipped


def count_told(make: Callable[[int], bytes]) -> int:
    return sum(1 for _ in returned([make(number) for number in range(100)], 10))


def test_only_the_last_of_similar_commits_is_decoded() -> None:
    def make(number: int) -> bytes:
        return batch(*(offset(GROUPS[0], "t", place, number * 7) for place in range(10)))

    # The first one was not yet known to be one of many.
    assert count_told(make) == 20


def test_interleaved_commits_are_decoded_once_per_group() -> None:
    assert count_told(lambda number: batch(offset(GROUPS[number % 2], "t", 0, number))) == 4


def test_commits_with_other_differences_are_all_decoded() -> None:
    def make(number: int) -> bytes:
        return batch(offset(GROUPS[0], "t", 0, number, f"{number}"))

    assert count_told(make) == 100


def committed(log: list[bytes]) -> list[tuple[str, int, int]]:
    (group,) = loaded(returned(log, 3))[0].groups.values()
    return sorted((each.topic, each.partition, each.offset) for each in group.offsets)


def test_batches_of_equal_size_with_other_number_positions_are_distinguished() -> None:
    places = [("t", 0), ("orders", 0)]
    log = [
        batch(*(offset(GROUPS[0], *place, number) for place in order))
        for number in range(10)
        for order in (places, reversed(places))
    ]

    assert len({len(each) for each in log}) == 1
    assert committed(log) == [("orders", 0, 9), ("t", 0, 9)]


def test_waiting_commit_is_applied_before_the_end_of_a_transaction() -> None:
    often = [batch(offset(GROUPS[0], "t", 0, number)) for number in range(5)]
    pending = in_transaction([offset(GROUPS[0], "t", 0, 100)], PRODUCER)
    ended = end_of(PRODUCER, MarkerType.COMMIT)

    assert committed([*often, pending, ended]) == [("t", 0, 100)]
    assert committed([*often, pending, often[-1], ended]) == [("t", 0, 4)]
