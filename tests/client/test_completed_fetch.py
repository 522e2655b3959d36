"""CompletedFetch: decodes batches one by one and filters records."""

from collections.abc import Callable

import pytest

from kohort.client.errors import CorruptRecordError, RecordDeserializationError
from kohort.client.fetch.completed_fetch import CompletedFetch, FetchConfig, FetchPosition
from kohort.types import Offset
from kohort.wire.batch import assign_offset
from kohort.wire.compression import Codec
from kohort.wire.control_batch import MarkerType
from tests.client.fetched_batches import HERE, aborted, batch, fetch, marker, take_all
from tests.log.malformed_batches import MALFORMED

COMMITTED = FetchConfig(is_read_committed=True)


def test_take_returns_up_to_count_records_in_order() -> None:
    opened = fetch(batch([b"a", b"b", b"c"]) + batch([b"d", b"e"], 3))

    taken = [[each.value for each in opened.take(2)] for _ in range(4)]

    assert taken == [[b"a", b"b"], [b"c", b"d"], [b"e"], []]
    assert opened.is_done
    assert opened.position == opened.end == FetchPosition(offset=Offset(5), leader_epoch=7)


def test_the_position_is_behind_the_taken_records() -> None:
    opened = fetch(batch([b"a", b"b", b"c"], 10), 10)

    opened.take(2)

    assert opened.position == FetchPosition(offset=Offset(12), leader_epoch=7)


def test_records_before_the_requested_offset_are_skipped() -> None:
    opened = fetch(batch([b"a", b"b", b"c"], 10) + batch([b"d"], 13), 12)

    assert take_all(opened, 1) == [(12, b"c"), (13, b"d")]


def test_a_truncated_last_batch_is_left_for_the_next_fetch() -> None:
    opened = fetch(batch([b"a"]) + batch([b"b"], 1)[:-3])

    assert take_all(opened) == [(0, b"a")]
    assert opened.end.offset == 1


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
def test_every_codec_is_decompressed(codec: Codec) -> None:
    values = [b"value %d" % number for number in range(100)]

    assert take_all(fetch(batch(values, codec=codec)), 30) == list(enumerate(values))


def test_control_batches_are_skipped() -> None:
    content = batch([b"a"], 0, producer=1) + marker(MarkerType.COMMIT, 1, 1) + batch([b"b"], 2)

    for config in (FetchConfig(), COMMITTED):
        opened = fetch(content, 0, config)
        assert take_all(opened) == [(0, b"a"), (2, b"b")]
    ended = fetch(marker(MarkerType.COMMIT, 5, 1), 5)
    assert ended.take(10) == []
    assert ended.is_done
    assert ended.position.offset == 6


def test_read_committed_skips_aborted_transactions() -> None:
    content = (
        batch([b"good"], 0, producer=1)
        + batch([b"bad"], 1, producer=2)
        + batch([b"good too"], 2, producer=1)
        + marker(MarkerType.ABORT, 3, 2)
        + batch([b"again"], 4, producer=2)
        + marker(MarkerType.COMMIT, 5, 1)
        + marker(MarkerType.COMMIT, 6, 2)
        + batch([b"plain"], 7)
    )
    list_of_aborted = [aborted(2, 1)]

    committed = take_all(fetch(content, 0, COMMITTED, list_of_aborted))
    everything = take_all(fetch(content, 0, FetchConfig(), list_of_aborted))

    assert committed == [(0, b"good"), (2, b"good too"), (4, b"again"), (7, b"plain")]
    assert everything == sorted([*committed, (1, b"bad")])


def test_transactions_of_one_producer_are_distinguished() -> None:
    content = (
        batch([b"bad"], 0, producer=1)
        + marker(MarkerType.ABORT, 1, 1)
        + batch([b"good"], 2, producer=1)
        + marker(MarkerType.COMMIT, 3, 1)
        + batch([b"bad again"], 4, producer=1)
        + marker(MarkerType.ABORT, 5, 1)
    )

    opened = fetch(content, 0, COMMITTED, [aborted(1, 4), aborted(1, 0)])

    assert take_all(opened) == [(2, b"good")]
    assert opened.position.offset == 6


def test_a_corrupt_batch_raises_each_time_it_is_reached() -> None:
    second = bytearray(batch([b"b"], 1))
    second[-1] ^= 1
    opened = fetch(batch([b"a"]) + bytes(second))

    assert [each.value for each in opened.take(10)] == [b"a"]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="at offset 1"):
            opened.take(10)
    assert not opened.is_done
    assert opened.position.offset == 1


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
def test_the_error_of_a_malformed_batch_has_the_offset_behind_it(
    malformed: Callable[[], bytes],
) -> None:
    second = bytearray(malformed())
    assign_offset(second, base_offset=Offset(1), partition_leader_epoch=7)
    if malformed is MALFORMED["offset-deltas"]:
        # The consumer numbers the records of a batch by their order.
        assert take_all(fetch(bytes(second), 1)) == [(1, b"v"), (2, b"v"), (3, b"v")]
        return
    opened = fetch(batch([b"a"]) + bytes(second) + batch([b"b"], 4))

    assert [each.value for each in opened.take(10)] == [b"a"]
    with pytest.raises(CorruptRecordError) as caught:
        opened.take(10)

    error = caught.value
    assert (error.partition, error.offset, error.next_offset) == (HERE, 1, 4)


def test_a_batch_with_a_malformed_header_is_followed_by_the_next_one() -> None:
    bad = bytearray(batch([b"b", b"c"], 1))
    bad[57:61] = (9).to_bytes(4)  # nine records for two offsets
    content = batch([b"a"]) + bytes(bad) + batch([b"d"], 30)
    opened = fetch(content)

    opened.take(1)
    with pytest.raises(CorruptRecordError, match="9 records for 2 offsets") as caught:
        opened.take(1)

    assert (caught.value.offset, caught.value.next_offset) == (1, 30)


def test_a_damaged_offset_delta_does_not_lead_behind_the_log() -> None:
    bad = bytearray(batch([b"a", b"b"], 5))
    bad[23] = 0x10

    with pytest.raises(CorruptRecordError, match="crc") as caught:
        CompletedFetch(
            HERE,
            bytes(bad),
            FetchPosition(offset=Offset(5)),
            FetchConfig(),
            high_watermark=Offset(7),
        ).take(1)

    assert caught.value.next_offset == 7


def test_batches_behind_a_corrupt_one_are_not_read() -> None:
    assert fetch(b"\0" * 100).is_bad
    assert fetch(b"\0" * 10).is_bad
    assert not fetch(batch([b"a"])).is_bad
    with pytest.raises(CorruptRecordError, match=r"orders-3 is corrupt at offset 9"):
        fetch(b"\0" * 10, 9).take(1)
    assert CorruptRecordError(HERE, Offset(9), "unknown end").next_offset == 10


def test_without_check_crcs_checksums_are_ignored() -> None:
    content = bytearray(batch([b"a"]))
    content[17] ^= 1

    assert take_all(fetch(bytes(content), 0, FetchConfig(check_crcs=False))) == [(0, b"a")]


def test_deserialization_stops_before_the_first_failing_record() -> None:
    config = FetchConfig(value_deserializer=int)
    opened = fetch(batch([b"1", b"2", b"x", b"4"]), 0, config)

    assert [each.value for each in opened.take(10)] == [1, 2]
    assert opened.position.offset == 2
    with pytest.raises(RecordDeserializationError) as caught:
        opened.take(1)
    assert (caught.value.partition, caught.value.offset) == (HERE, 2)
    assert not opened.is_done


def test_older_batches_do_not_move_the_position_back() -> None:
    opened = fetch(batch([b"a"], 3), 50)

    assert opened.take(5) == []
    assert opened.end.offset == opened.position.offset == 50
