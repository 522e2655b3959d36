"""What all decoders of records share: records as Spark hands them over, what is wrong with one."""

import pyarrow as pa

from kohort.types import value


@value
class Problem:
    """A row that nobody could make sense of, and why."""

    index: int
    reason: str


def in_utc(records: pa.RecordBatch) -> pa.RecordBatch:
    """The same moments: Spark names the zone of its session, which is not always UTC."""
    at = records.schema.get_field_index("timestamp")
    moments = records.column(at).cast(pa.timestamp("us", tz="UTC"))
    return records.set_column(at, "timestamp", moments)
