"""Batches that pass the checks of a segment's headers and checksums, but cannot be decoded.

Old logs and other brokers may contain them. `PartitionLog.append_trusted` writes them, because it
does not validate records.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from kohort.log.catalog import Catalog
from kohort.types import Topic
from kohort.wire.batch import Codec
from kohort.wire.batch_header import HEADER_BYTES, assemble, peek
from tests.log.log_setup import NOW, new_batch, new_record, open_catalog

_OFFSETS: Final = 3


def wrong_record_count() -> bytes:
    """Three records are announced, and there are two."""
    two = new_batch(new_record(value="v" * 20), new_record(value="v" * 20))
    header = replace(peek(two), last_offset_delta=_OFFSETS - 1, record_count=_OFFSETS)
    return assemble(header, two[HEADER_BYTES:])


def wrong_offset_deltas() -> bytes:
    """Three records, the first of which has an offset delta beyond the batch."""
    three = new_batch(*(new_record() for _ in range(_OFFSETS)))
    body = bytearray(three[HEADER_BYTES:])
    body[3] = 2 * _OFFSETS  # zigzag
    return assemble(peek(three), bytes(body))


def broken_compression() -> bytes:
    """Bytes that are not zstd, in a batch that says so."""
    three = new_batch(*(new_record(value="v" * 20) for _ in range(_OFFSETS)))
    header = replace(peek(three), attributes=int(Codec.ZSTD))
    return assemble(header, three[HEADER_BYTES:])


MALFORMED: Final = {
    "record-count": wrong_record_count,
    "offset-deltas": wrong_offset_deltas,
    "compression": broken_compression,
}
"""Each has three offsets."""


def append_below_validation(data: Path, topic: Topic, *batches: bytes) -> None:
    """Append batches to partition 0 of a stopped node."""
    catalog: Catalog = open_catalog(data)
    log = catalog.partition(topic, 0)
    assert log is not None
    for batch in batches:
        log.append_trusted(batch, NOW)
    catalog.close(NOW)


def damage_last_batch(directory: Path) -> None:
    """Flip a bit of the last record, so that its checksum is wrong."""
    file = max(directory.glob("*.log"))
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
