"""The columns of the source, in the order of Spark's own Kafka source."""

from functools import cache
from typing import Final

import pyarrow as pa

ARROW_HEADER: Final = (pa.field("key", pa.string()), pa.field("value", pa.binary()))


@cache
def arrow_schema(*, includes_headers: bool) -> pa.Schema:
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if includes_headers:
        element = pa.field("element", pa.struct(list(ARROW_HEADER)))
        fields.append(pa.field("headers", pa.list_(element)))
    return pa.schema(fields)


SPARK_SCHEMA: Final = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, "
    "timestamp TIMESTAMP, timestampType INT"
)
SPARK_HEADERS: Final = ", headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
