"""Where keys were seen last: batches that are alike are compared, and give what reading would."""

from hypothesis import example, given
from hypothesis import strategies as st

from kohort.log.compaction_keys import LastOffsets
from kohort.types import Offset
from kohort.wire.batch import Codec, assign_offset, iter_records, peek
from tests.log.logs import new_batch, new_record

SHAPES = [
    ("a", "b"),
    ("a", "c"),
    ("a",),
    ("b", None, "a"),
    ("a", "a", "b"),
    ("k" * 40, "a"),
    ("k" * 40, "k" * 39 + "l"),
]
"""Keys of a batch; some begin alike, some are of one size, one has a key twice."""

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
def test_every_key_is_found_where_it_was_last(
    batches: list[tuple[tuple[str | None, ...], str | None, Codec]], first: int
) -> None:
    last_offsets = LastOffsets(Offset(first))
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

        last_offsets.note(chunk, position, peek(chunk, position))
    assert len(last_offsets) == len(expected)

    last_offsets.finish()

    assert {key: last_offsets.find(key) for key in expected} == expected
    assert sorted(last_offsets.values()) == sorted(expected.values())
    assert last_offsets.find(b"never") == -1
