"""The coordinator keeps the last record of each key of an unimplemented type."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.coordinator import Coordinator
from kohort.coordinator.record_codec import decode_record, encode_record
from kohort.coordinator.records import UnknownRecord
from kohort.types import Millis

KEY, OTHER = b"\x00\x03\x00\x01g", b"\x00\x05\x00\x01g\x00\x01m"

records = st.builds(
    UnknownRecord,
    key=st.sampled_from([KEY, OTHER]),
    value=st.none() | st.binary(max_size=3),
)


def loaded(*log: UnknownRecord) -> Coordinator:
    coordinator = Coordinator()
    coordinator.start()
    for record in log:
        coordinator.apply(record)
    return coordinator


def test_the_last_value_of_each_key_is_kept() -> None:
    coordinator = loaded(
        UnknownRecord(key=KEY, value=b"1"),
        UnknownRecord(key=OTHER, value=b"2"),
        UnknownRecord(key=KEY, value=b"3"),
    )

    assert {key: each.value for key, each in coordinator.unknown_records.items()} == {
        KEY: b"3",
        OTHER: b"2",
    }


def test_a_tombstone_removes_its_record() -> None:
    coordinator = loaded(UnknownRecord(key=KEY, value=b"1"), UnknownRecord(key=KEY, value=None))

    assert not coordinator.unknown_records


def test_resuming_and_serving_keeps_unknown_records() -> None:
    coordinator = loaded(UnknownRecord(key=KEY, value=b"1"))

    coordinator.resume(Millis(0))

    assert list(coordinator.unknown_records) == [KEY]
    assert not coordinator.groups


@given(st.lists(records, max_size=12))
def test_compacted_log_gives_the_same_unknown_records(log: list[UnknownRecord]) -> None:
    coordinator = loaded(*log)
    encoded = [encode_record(each) for each in coordinator.unknown_records.values()]

    read = [decode_record(each.key, each.value) for each in encoded]
    again = loaded(*(each for each in read if isinstance(each, UnknownRecord)))

    assert again.unknown_records == coordinator.unknown_records
