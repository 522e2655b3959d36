"""The tables that a report is made of: whole ones, of some groups or of all."""

from collections.abc import Sequence

from pyspark.sql import DataFrame

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.forensics.store import Store
from kohort.pipeline.forensics.tables import Table
from kohort.types import value


class NoSuchGroup(PipelineError):
    """A report was asked for of a group that no table knows."""


@value
class Shelf:
    store: Store
    groups: tuple[str, ...] = ()
    """None means all."""

    def read(self, table: Table) -> DataFrame:
        frame = self.store.read(table)
        if self.groups and "group_id" in frame.columns:
            return frame.where(frame.group_id.isin(list(self.groups)))
        return frame

    def only(self, groups: Sequence[str]) -> "Shelf":
        return Shelf(store=self.store, groups=tuple(groups))
