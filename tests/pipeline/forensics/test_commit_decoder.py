"""The compiled loop decodes commits as kohort.wire does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kohort.pipeline.forensics.decoders import kernel
from kohort.pipeline.forensics.decoders.commit_decoder import COMMITS, decode_commits, find_problems
from kohort.types import GroupId, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.consumer_offsets import (
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kohort.wire.errors import WireError
from tests.wire.kafka_vectors import KafkaVector, vectors_of

Pair = tuple[bytes, bytes | None]

VERSIONS = range(5)
MILLIS_MAX = (2**63 - 1) // 1000


def batch_of(pairs: Sequence[Pair]) -> pa.RecordBatch:
    """Records as Spark passes them; a slice, so that columns start within their buffers."""
    keys, values = zip((b"\0\1", b"before"), *pairs, strict=True)
    whole = pa.RecordBatch.from_arrays(
        [
            pa.array([3] * len(keys), pa.int32()),
            pa.array(range(-1, len(keys) - 1), pa.int64()),
            pa.array([1_000_000] * len(keys), pa.timestamp("us", tz="America/New_York")),
            pa.array(keys, pa.binary()),
            pa.array(values, pa.binary()),
        ],
        names=["partition", "offset", "timestamp", "key", "value"],
    )
    return whole.slice(1)


def rows_of(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    rows = []
    for batch in decode_commits(batch_of(pairs)):
        batch.validate(full=True)
        assert batch.schema == COMMITS
        at = batch.column("at").cast(pa.int64()).to_pylist()
        plain = batch.drop_columns(["at"]).to_pylist()
        rows += [row | {"at": each} for row, each in zip(plain, at, strict=True)]
    return sorted(rows, key=lambda row: row["log_offset"])


def careful_rows(pairs: Sequence[Pair]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The rows and the errors according to kohort.wire."""
    rows, problems = [], {}
    for offset, (key_bytes, value_bytes) in enumerate(pairs):
        try:
            key = decode_key(key_bytes)
            value = decode_value(key, value_bytes)
        except WireError as error:
            problems[offset] = str(error)
            continue
        at_ms = 1_000 if value is None else value.commit_timestamp
        rows.append(
            {
                "group_id": key.group,
                "topic": key.topic,
                "partition": key.partition,
                "at": max(-MILLIS_MAX, min(at_ms, MILLIS_MAX)) * 1000,
                "log_partition": 3,
                "log_offset": offset,
                "is_removed": value is None,
                "committed": None if value is None else value.offset,
                "leader_epoch": -1 if value is None else value.leader_epoch,
                "metadata": None if value is None else value.metadata,
            }
        )
    return rows, problems


names = st.text(max_size=8) | st.sampled_from(["billing", "Größe", "x" * 300])
keys = st.builds(
    OffsetCommitKey,
    group=names.map(GroupId),
    topic=names.map(Topic),
    partition=st.integers(-1, 2**31 - 1).map(Partition),
).flatmap(
    lambda key: st.sampled_from([b"\0\0", b"\0\1"]).map(lambda number: number + encode_key(key)[2:])
)
values = st.builds(
    OffsetCommitValue,
    offset=st.integers(-(2**63), 2**63 - 1).map(Offset),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=st.text(max_size=5) | st.sampled_from(["m" * 126, "m" * 127, "m" * 128, "é" * 9000]),
    commit_timestamp=st.integers(-(2**63), 2**63 - 1).map(Millis),
    expire_timestamp=st.integers(-1, 2**63 - 1).map(Millis),
    topic_id=st.sampled_from([Uuid(bytes(16)), Uuid(bytes(range(16)))]),
).flatmap(lambda value: st.sampled_from(VERSIONS).map(lambda version: encode_value(value, version)))
pairs = st.tuples(keys, st.none() | values)


@given(st.lists(pairs, max_size=12))
def test_commits_of_every_version_decode_as_in_kohort_wire(
    given_pairs: list[Pair],
) -> None:
    rows, problems = careful_rows(given_pairs)

    assert rows_of(given_pairs) == rows
    assert problems == {}
    assert find_problems(batch_of(given_pairs)) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("metadata", ["", "m" * 300])
@pytest.mark.parametrize("topic_id", [bytes(16), bytes(range(16))])
def test_the_compiled_loop_decodes_all_that_brokers_write(
    version: int, metadata: str, topic_id: bytes
) -> None:
    key = encode_key(OffsetCommitKey(group=GroupId("g"), topic=Topic("t"), partition=Partition(1)))
    content = encode_value(
        OffsetCommitValue(
            offset=Offset(7),
            metadata=metadata,
            commit_timestamp=Millis(5),
            topic_id=Uuid(topic_id),
        ),
        version,
    )
    found = np.empty((kernel.COMMIT_ROWS, 1), dtype=np.int64)

    doubtful = kernel.scan_commits(
        np.frombuffer(key, np.uint8),
        np.array([0, len(key)]),
        np.frombuffer(content, np.uint8),
        np.array([0, len(content)]),
        np.array([False]),
        found,
    )

    assert doubtful == 0
    assert found[kernel.OFFSET, 0] == 7


@st.composite
def damaged(draw: st.DrawFn) -> Pair:
    """A key and value that were truncated, extended, changed or random."""
    key, value = draw(pairs)
    value = value or b""
    victim = draw(st.sampled_from([key, value]))
    at = draw(st.integers(0, max(len(victim) - 1, 0)))
    changed = draw(
        st.sampled_from(
            [
                victim[:at],
                victim + b"\0",
                victim[:at] + bytes([draw(st.integers(0, 255))]) + victim[at + 1 :],
                draw(st.binary(max_size=40)),
            ]
        )
    )
    # Whatever else is wrong with a key, its number says that it is a commit's.
    return (b"\0\1" + changed[2:], value) if victim is key else (key, changed)


@given(st.lists(pairs | damaged(), min_size=1, max_size=12))
@example([(b"\0\1", b"")])
def test_damaged_records_have_the_error_of_kohort_wire(
    given_pairs: list[Pair],
) -> None:
    rows, problems = careful_rows(given_pairs)

    assert rows_of(given_pairs) == rows
    found = {each.index: each.reason for each in find_problems(batch_of(given_pairs))}
    assert found == problems


def test_unknown_tags_are_skipped() -> None:
    value = encode_value(OffsetCommitValue(offset=Offset(7), commit_timestamp=Millis(5)), 4)
    key = encode_key(OffsetCommitKey(group=GroupId("g"), topic=Topic("t"), partition=Partition(1)))

    (row,) = rows_of([(key, value[:-1] + b"\x01\x09\x03new")])

    assert (row["committed"], row["at"]) == (7, 5_000)


@pytest.mark.parametrize(
    "vector", vectors_of("OffsetCommitValue", "LegacyOffsetCommitValue"), ids=str
)
def test_records_of_kafka_are_decoded_as_kafka_does(vector: KafkaVector) -> None:
    key = encode_key(OffsetCommitKey(group=GroupId("g"), topic=Topic("t"), partition=Partition(1)))

    (row,) = rows_of([(key, vector.data)])

    fields = vector.fields
    assert row["committed"] == fields["offset"]
    assert row["metadata"] == fields["metadata"]
    assert row["at"] == max(min(fields["commitTimestamp"], MILLIS_MAX), -MILLIS_MAX) * 1000
    assert row["leader_epoch"] == fields.get("leaderEpoch", -1)


@pytest.mark.parametrize("vector", vectors_of("OffsetCommitKey", "LegacyOffsetCommitKey"), ids=str)
def test_keys_of_kafka_have_the_partition(vector: KafkaVector) -> None:
    (row,) = rows_of([(vector.data, None)])

    fields = vector.fields
    assert (row["group_id"], row["topic"]) == (fields["group"], fields["topic"])
    assert (row["partition"], row["is_removed"]) == (fields["partition"], True)
