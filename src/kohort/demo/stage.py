"""All parts of the demo, set up and running; each is entered on one stack, which ends it."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kohort.console.server import Console
from kohort.demo.listening import Listener
from kohort.demo.parts import say, start_part
from kohort.demo.producing import Front, make_topic
from kohort.demo.schedule import report_times
from kohort.demo.telling import Teller
from kohort.demo.troupe import Troupe
from kohort.demo.warehouse import Warehouse
from kohort.node.embedded import Node
from kohort.pipeline.forensics.wish import GROUP as FORENSICS
from kohort.types import value

DATA: Final = "data"
JOURNALS: Final = "journals"

_LOOK_S: Final = 0.2


@value
class DemoWish:
    seed: int
    minutes: float | None
    """None: until it is told to end."""
    directory: Path
    """Where everything goes."""
    has_spark: bool


class Stage:
    def __init__(
        self, wish: DemoWish, console: Console, teller: Teller, parts: contextlib.ExitStack
    ) -> None:
        # It holds a port already, which it must let go of whatever happens.
        parts.callback(console.stop)
        journals = wish.directory / JOURNALS
        parts.enter_context(_journal_in(journals))
        self._teller = teller
        self.node = Node(data=wish.directory / DATA).start()
        parts.callback(self._end_node)
        servers = self.node.bootstrap_servers
        make_topic(servers)
        console.bootstrap = servers
        console.start()
        # Also here, so that it ends before the node does.
        parts.callback(console.stop)
        self.troupe = Troupe(servers, journals, teller.note_death)
        parts.callback(self.troupe.kill)
        self.warehouse: Warehouse | None = None
        if wish.has_spark:
            self.warehouse = Warehouse(
                servers, wish.directory, tell=teller.tell, on_end=teller.note_death
            )
            parts.callback(self.warehouse.close)
        self.listener = Listener(
            servers,
            without=frozenset({FORENSICS}),
            tell=teller.tell,
            on_end=teller.note_death,
        )
        parts.callback(self.listener.close)
        self.front = Front(servers, wish.seed, teller.note_death)
        parts.callback(self.front.close)
        self.reports: Reports | None = None
        if self.warehouse is not None:
            self.reports = Reports(wish.minutes, self.warehouse, teller)
            parts.callback(self.reports.close)

    def _end_node(self) -> None:
        is_told = self.node.failure is not None
        try:
            self.node.stop()
        # Whatever it died of: it is told like any other death.
        except Exception as error:
            if not is_told:
                self._teller.note_death("node", say(error))


class Reports:
    """Explains the history now and then, while the schedule goes on."""

    def __init__(self, minutes: float | None, warehouse: Warehouse, teller: Teller) -> None:
        self._minutes = minutes
        self._warehouse = warehouse
        self._teller = teller
        self._closing = threading.Event()
        self._thread = start_part("forensics", self._run, teller.note_death)

    def close(self) -> None:
        """What is being explained is left: the report at the end will say more."""
        self._closing.set()
        while self._thread.is_alive():
            self._warehouse.cancel_jobs()
            self._thread.join(_LOOK_S)

    def _run(self) -> None:
        for at_ms in report_times(self._minutes):
            left_s = at_ms / 1_000 - self._teller.elapsed_s
            if self._closing.wait(max(0.0, left_s)):
                return
            try:
                self._warehouse.explain(self._closing)
            except Exception:
                # Spark tells in many ways that a job was cancelled.
                if not self._closing.is_set():
                    raise


@contextlib.contextmanager
def _journal_in(directory: Path) -> Iterator[None]:
    """What the node and our own clients log goes to a file, not to the terminal."""
    directory.mkdir(parents=True, exist_ok=True)
    logger = logging.getLogger("kohort")
    handler = logging.FileHandler(directory / "kohort.txt", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        handler.close()
