"""The data source `format("kohort")`: read and write topics in batch and streaming queries."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kohort.pipeline.source.options import read_source_options
from kohort.pipeline.source.reader import KohortBatchReader, KohortStreamReader
from kohort.pipeline.spark_schema import SPARK_HEADERS, SPARK_SCHEMA


class KohortDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kohort"

    def schema(self) -> str:
        includes_headers = str(self.options.get("includeHeaders", "false")).lower() == "true"
        return SPARK_SCHEMA + (SPARK_HEADERS if includes_headers else "")

    def reader(self, schema: StructType) -> DataSourceReader:
        return KohortBatchReader(read_source_options(self.options, is_streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return KohortStreamReader(read_source_options(self.options, is_streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        # A query that only reads must not need confluent_kafka.
        from kohort.pipeline.sink.writers import make_writer  # noqa: PLC0415

        return make_writer(self.options, schema, overwrite)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        from kohort.pipeline.sink.writers import make_stream_writer  # noqa: PLC0415  # as above

        return make_stream_writer(self.options, schema, overwrite)
