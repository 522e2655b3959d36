"""Where all parts tell their news: in one order, with the time, and counted."""

import threading
import time
from queue import SimpleQueue

from kohort.demo.news import Died, News, Told
from kohort.demo.tally import Tally
from kohort.types import Millis


class Teller:
    def __init__(self) -> None:
        self.told: SimpleQueue[Told | None] = SimpleQueue()
        """None: that was all."""
        self.tally = Tally()
        self._lock = threading.Lock()
        self._began_at = time.monotonic()

    def begin(self) -> None:
        """From here on time counts."""
        self._began_at = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_at

    def tell(self, news: News) -> None:
        with self._lock:
            self.tally.note(news)
            self.told.put(Told(at_ms=Millis(int(self.elapsed_s * 1_000)), news=news))

    def note_death(self, part: str, why: str) -> None:
        self.tell(Died(part=part, why=why))

    def end(self) -> None:
        self.told.put(None)
