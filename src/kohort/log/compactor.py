"""Drives compaction for one partition: begins a round, takes it a step further, gives it up."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from kohort.log.cleaning import Cleaned
from kohort.log.compaction import Compaction, Replacement, Step
from kohort.log.errors import StorageError
from kohort.types import Offset


class Compactor:
    """Between two steps the log may be written and read; before segments go, it gives up."""

    def __init__(self, put_in_place: Callable[[Replacement], None]) -> None:
        self._put_in_place = put_in_place
        self._round: Compaction | None = None
        self._steps: Iterator[Step] = iter(())

    @property
    def is_idle(self) -> bool:
        return self._round is None

    def begin(self, compaction: Compaction) -> None:
        self._round = compaction
        self._steps = compaction.run()

    def go_on(
        self, cleaned: Cleaned, budget_bytes: int | None, finish: Callable[[Offset], None]
    ) -> Cleaned:
        """Takes the round as far as the budget goes; finish is told how far the log is clean."""
        if self._round is None:
            return cleaned
        spent = 0
        try:
            for step in self._steps:
                if isinstance(step, Replacement):
                    self._put_in_place(step)
                else:
                    spent += step.bytes_read
                if budget_bytes is not None and spent >= budget_bytes:
                    return replace(cleaned, bytes_compacted=spent, is_done=False)
        except StorageError as error:
            self.give_up()
            return replace(cleaned, bytes_compacted=spent, failure=str(error))
        compacted = self._round.report()
        self._round = None
        finish(compacted.cleaned_to)
        return replace(cleaned, bytes_compacted=spent, compacted=compacted)

    def give_up(self) -> None:
        """What was put in place stays there; what is unfinished is removed."""
        if self._round is not None:
            with contextlib.suppress(StorageError):
                self._round.abandon()
            self._round = None
