"""`format("kohort")`: topics as tables and streams, to read and to write."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kohort.pipeline.columns import SPARK_HEADERS, SPARK_SCHEMA
from kohort.pipeline.source.batch import KohortBatchReader
from kohort.pipeline.source.options import read_source_options
from kohort.pipeline.source.stream import KohortStreamReader


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
        # Who only reads needs no producer.
        from kohort.pipeline.sink.writers import make_writer  # noqa: PLC0415

        return make_writer(self.options, schema, overwrite)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,
    ) -> DataSourceStreamWriter:
        from kohort.pipeline.sink.writers import make_stream_writer  # noqa: PLC0415  # as above

        return make_stream_writer(self.options, schema, overwrite)
