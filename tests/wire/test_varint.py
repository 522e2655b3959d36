"""Variable-length integers: round trips, and comparison with kafka-python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint
from kafka.record.util import encode_varint as kafka_encode_varint

from kohort.wire.varint import (
    UVARINT,
    VARINT,
    VARLONG,
    encode_uvarint,
    encode_varint,
    encode_varlong,
    read_uvarint,
    read_varint,
    read_varlong,
)

UINT32 = st.integers(0, 2**32 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(value=UINT32, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_unsigned_varint_round_trip_at_a_position(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_uvarint(value)

    read = read_uvarint(before + encoded + after, len(before))

    assert read == (value, len(before) + len(encoded))
    assert len(encoded) <= 5


@given(value=INT32, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_varint_round_trip_at_a_position(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)

    read = read_varint(before + encoded + after, len(before))

    assert read == (value, len(before) + len(encoded))
    assert len(encoded) <= 5


@given(value=INT64, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_varlong_round_trip_at_a_position(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varlong(value)

    read = read_varlong(before + encoded + after, len(before))

    assert read == (value, len(before) + len(encoded))
    assert len(encoded) <= 10


@given(value=st.integers(-(2**34), 2**34 - 1))
def test_zigzag_bytes_match_kafka_python(value: int) -> None:
    theirs = bytearray()
    kafka_encode_varint(value, theirs.append)

    assert encode_varlong(value) == theirs


@given(value=INT64)
def test_kafka_python_decodes_our_bytes(value: int) -> None:
    encoded = encode_varlong(value)

    assert decode_varint(bytearray(encoded)) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_varint_bytes(value: int, encoded: str) -> None:
    assert encode_uvarint(value).hex() == encoded


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (-(2**31), "ffffffff0f"), (64, "8001")],
)
def test_zigzag_varint_bytes(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert encode_varlong(value).hex() == encoded


@pytest.mark.parametrize("read", [read_uvarint, read_varint, read_varlong])
@pytest.mark.parametrize("cut", [b"", b"\x80", b"\xff\xff", b"\xff\xff\xff\xff"])
def test_truncated_number_raises_index_error(read: object, cut: bytes) -> None:
    assert callable(read)

    with pytest.raises(IndexError):
        read(cut, 0)


@pytest.mark.parametrize("read", [read_uvarint, read_varint])
@pytest.mark.parametrize("encoded", ["ffffffff10", "ffffffff7f", "8080808080", "ffffffffff01"])
def test_number_above_32_bits_raises_value_error(read: object, encoded: str) -> None:
    assert callable(read)

    with pytest.raises(ValueError, match=r"32|5"):
        read(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ff" * 9 + "02", "ff" * 9 + "7f", "80" * 10, "ff" * 10 + "01"])
def test_number_above_64_bits_raises_value_error(encoded: str) -> None:
    with pytest.raises(ValueError, match=r"64|10"):
        read_varlong(bytes.fromhex(encoded), 0)


def test_non_canonical_encodings_are_accepted() -> None:
    assert read_uvarint(b"\x81\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_invalid_unsigned_number_is_not_encoded(value: int) -> None:
    with pytest.raises(ValueError, match=str(value)):
        encode_uvarint(value)


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31])
def test_number_above_32_bits_is_not_encoded(value: int) -> None:
    with pytest.raises(ValueError, match=str(value)):
        encode_varint(value)


@pytest.mark.parametrize("value", [-(2**63) - 1, 2**63])
def test_number_above_64_bits_is_not_encoded(value: int) -> None:
    with pytest.raises(ValueError, match=str(value)):
        encode_varlong(value)


@given(value=st.integers(0, 2**31 - 1) | st.integers(0, 2000))
def test_caches_match_the_encoders(value: int) -> None:
    assert UVARINT[value] == encode_uvarint(value)
    assert VARINT[value] == encode_varint(value)
    assert VARLONG[value] == encode_varlong(value)


def test_caches_store_only_small_numbers() -> None:
    asked = [UVARINT[value] for value in range(5000)]

    assert asked == [encode_uvarint(value) for value in range(5000)]
    assert len(UVARINT) == 1024
