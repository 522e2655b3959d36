"""Parcels: batches opened one by one, and nothing given out that is not wanted."""

import pytest

from kohort.client.errors import BadRecord, Undeserializable
from kohort.client.fetching.parcel import Opening, Place
from kohort.types import Offset
from kohort.wire.compression import Codec
from kohort.wire.control import MarkerType
from tests.client.batches import HERE, aborted, batch, marker, parcel, take_all

COMMITTED = Opening(is_committed_only=True)


def test_batches_come_out_in_order_and_as_many_records_as_are_wanted() -> None:
    opened = parcel(batch([b"a", b"b", b"c"]) + batch([b"d", b"e"], 3))

    taken = [[each.value for each in opened.take(2)] for _ in range(4)]

    assert taken == [[b"a", b"b"], [b"c", b"d"], [b"e"], []]
    assert opened.is_done
    assert opened.place == opened.end == Place(offset=Offset(5), leader_epoch=7)


def test_the_place_is_behind_what_was_taken() -> None:
    opened = parcel(batch([b"a", b"b", b"c"], 10), 10)

    opened.take(2)

    assert opened.place == Place(offset=Offset(12), leader_epoch=7)


def test_what_is_before_the_offset_asked_for_is_left_out() -> None:
    opened = parcel(batch([b"a", b"b", b"c"], 10) + batch([b"d"], 13), 12)

    assert take_all(opened, 1) == [(12, b"c"), (13, b"d")]


def test_a_batch_that_was_cut_at_the_end_is_left_for_the_next_fetch() -> None:
    opened = parcel(batch([b"a"]) + batch([b"b"], 1)[:-3])

    assert take_all(opened) == [(0, b"a")]
    assert opened.end.offset == 1


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
def test_every_codec_is_opened(codec: Codec) -> None:
    values = [b"value %d" % number for number in range(100)]

    assert take_all(parcel(batch(values, codec=codec)), 30) == list(enumerate(values))


def test_what_controls_the_log_is_never_given_out_but_passed() -> None:
    content = batch([b"a"], 0, producer=1) + marker(MarkerType.COMMIT, 1, 1) + batch([b"b"], 2)

    for opening in (Opening(), COMMITTED):
        opened = parcel(content, 0, opening)
        assert take_all(opened) == [(0, b"a"), (2, b"b")]
    ended = parcel(marker(MarkerType.COMMIT, 5, 1), 5)
    assert ended.take(10) == []
    assert ended.is_done
    assert ended.place.offset == 6


def test_records_of_aborted_transactions_are_left_out_where_only_committed_ones_are_wanted() -> (
    None
):
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

    committed = take_all(parcel(content, 0, COMMITTED, list_of_aborted))
    everything = take_all(parcel(content, 0, Opening(), list_of_aborted))

    assert committed == [(0, b"good"), (2, b"good too"), (4, b"again"), (7, b"plain")]
    assert everything == sorted([*committed, (1, b"bad")])


def test_transactions_of_one_producer_are_told_apart() -> None:
    content = (
        batch([b"bad"], 0, producer=1)
        + marker(MarkerType.ABORT, 1, 1)
        + batch([b"good"], 2, producer=1)
        + marker(MarkerType.COMMIT, 3, 1)
        + batch([b"bad again"], 4, producer=1)
        + marker(MarkerType.ABORT, 5, 1)
    )

    opened = parcel(content, 0, COMMITTED, [aborted(1, 4), aborted(1, 0)])

    assert take_all(opened) == [(2, b"good")]
    assert opened.place.offset == 6


def test_a_bad_batch_is_complained_of_when_it_comes_and_every_time() -> None:
    second = bytearray(batch([b"b"], 1))
    second[-1] ^= 1
    opened = parcel(batch([b"a"]) + bytes(second))

    assert [each.value for each in opened.take(10)] == [b"a"]
    for _ in range(2):
        with pytest.raises(BadRecord, match="at offset 1"):
            opened.take(10)
    assert not opened.is_done
    assert opened.place.offset == 1


def test_nothing_follows_what_cannot_be_read() -> None:
    assert parcel(b"\0" * 100).is_bad
    assert parcel(b"\0" * 10).is_bad
    assert not parcel(batch([b"a"])).is_bad
    with pytest.raises(BadRecord, match=r"orders-3 cannot be read at offset 9"):
        parcel(b"\0" * 10, 9).take(1)


def test_checksums_are_not_compared_if_nobody_minds() -> None:
    content = bytearray(batch([b"a"]))
    content[17] ^= 1

    assert take_all(parcel(bytes(content), 0, Opening(check_crcs=False))) == [(0, b"a")]


def test_records_are_deserialized_up_to_the_first_that_cannot_be() -> None:
    opening = Opening(value_deserializer=int)
    opened = parcel(batch([b"1", b"2", b"x", b"4"]), 0, opening)

    assert [each.value for each in opened.take(10)] == [1, 2]
    assert opened.place.offset == 2
    with pytest.raises(Undeserializable) as caught:
        opened.take(1)
    assert (caught.value.partition, caught.value.offset) == (HERE, 2)
    assert not opened.is_done


def test_a_broker_that_sends_older_batches_does_not_turn_back_the_place() -> None:
    opened = parcel(batch([b"a"], 3), 50)

    assert opened.take(5) == []
    assert opened.end.offset == opened.place.offset == 50
