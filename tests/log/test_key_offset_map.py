"""The key offset map: the fast path for similar batches gives the same result as reading keys."""

from hypothesis import example, given
from hypothesis import strategies as st

from kohort.log.key_offset_map import KeyOffsetMap
from kohort.types import Offset
from kohort.wire.batch import Codec, assign_offset, iter_records, peek
from tests.log.log_setup import new_batch, new_record

SHAPES = [
    ("a", "b"),
    ("a", "c"),
    ("a",),
    ("b", None, "a"),
    ("a", "a", "b"),
    ("k" * 40, "a"),
    ("k" * 40, "k" * 39 + "l"),
]
"""The keys of a batch. Some start with the same key, some have equal sizes, one repeats a key."""

BATCHES = st.lists(
    st.tuples(
        st.sampled_from(SHAPES),
        st.sampled_from(["1", "2", "other", None]),
        st.sampled_from([Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP]),
    ),
    max_size=40,
)


AB, BA = (("a", "b"), "1", Codec.NONE), (("b", "a"), "1", Codec.NONE)


@given(BATCHES, st.integers(0, 10))
@example([AB, AB, BA, BA, BA, AB], 0)
@example([BA, BA, AB, AB, AB, BA], 0)
def test_map_has_the_last_offset_of_each_key(
    batches: list[tuple[tuple[str | None, ...], str | None, Codec]], first: int
) -> None:
    offset_map = KeyOffsetMap(Offset(first))
    expected: dict[bytes, int] = {}
    chunk, end = b"", Offset(0)
    for keys, text, codec in batches:
        data = bytearray(new_batch(*(new_record(key, text) for key in keys), codec=codec))
        assign_offset(data, base_offset=end, partition_leader_epoch=0)
        position, chunk = len(chunk), chunk + data
        for record in iter_records(chunk, position):
            if record.key is not None and record.offset >= first:
                expected[record.key] = record.offset
        end = Offset(end + len(keys))

        offset_map.add(chunk, position, peek(chunk, position))
    assert len(offset_map) == len(expected)

    offset_map.finish()

    assert {key: offset_map.find(key) for key in expected} == expected
    assert sorted(offset_map.values()) == sorted(expected.values())
    assert offset_map.find(b"never") == -1
