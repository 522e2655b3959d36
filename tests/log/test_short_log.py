"""A log that somebody has cut short while the node was away."""

import os
import struct
from pathlib import Path

from kohort.log.catalog import Catalog
from kohort.types import Millis, Topic, Uuid
from kohort.wire.batch import NewBatch, NewRecord, encode

NOW = Millis(1_000)
TOPIC = Topic("t")
BATCH = encode(NewBatch(records=(NewRecord(key=None, value=bytes(1_000), timestamp=NOW),)))


def test_a_log_that_ends_just_where_its_index_points_is_taken_up_from_there(
    tmp_path: Path,
) -> None:
    catalog, _ = Catalog.open(tmp_path, NOW)
    catalog.create_topic(TOPIC, Uuid(b"0123456789abcdef"), 1, {}, NOW)
    log = catalog.partition(TOPIC, 0)
    assert log is not None
    for _ in range(20):
        log.append(BATCH, NOW)
    catalog.close(NOW)
    (index,) = (tmp_path / "t-0").glob("*.index")
    _, position = struct.unpack(">ii", index.read_bytes()[-8:])
    (file,) = (tmp_path / "t-0").glob("*.log")
    os.truncate(file, position)

    catalog, _ = Catalog.open(tmp_path, NOW)

    reopened = catalog.partition(TOPIC, 0)
    assert reopened is not None
    assert reopened.end_offset == position // len(BATCH)
    assert reopened.append(BATCH, NOW).base_offset == position // len(BATCH)
    catalog.close(NOW)
