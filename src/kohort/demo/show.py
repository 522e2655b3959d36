"""The demo itself: everything set up, the schedule followed, everything ended, in one thread.

What happens comes out as values. A part that dies is told of; the others go on to their end, unless
it was the node, without which there is nothing to show.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Final

from kohort.console.server import Console
from kohort.demo.asking import await_commits
from kohort.demo.cast import SERVICES
from kohort.demo.console import FORENSICS
from kohort.demo.news import Acted, Ending, LeftOut, Opened, Place, Summary, Told
from kohort.demo.parts import say
from kohort.demo.schedule import draw_roles, perform
from kohort.demo.stage import DATA, JOURNALS, DemoWish, Stage
from kohort.demo.telling import Teller
from kohort.demo.warehouse import Warehouse
from kohort.types import GroupId, Millis

_LOOK_S: Final = 0.2
_CATCH_UP_S: Final = 5.0


class Stop:
    """How whoever runs a demo says that it should end."""

    def __init__(self) -> None:
        self.soon = threading.Event()
        """In order: all leave, and the report is written."""
        self.at_once = threading.Event()


def play(wish: DemoWish, console: Console, stop: Stop) -> Iterator[Told]:
    """Everything that happens; a Summary comes last, unless it is ended at once.

    The console is one that is not started yet; it ends with the demo.
    """
    show = _Show(wish, console, stop)
    threading.Thread(target=show.run, name="demo", daemon=True).start()
    try:
        while not stop.at_once.is_set():
            with contextlib.suppress(Empty):
                told = show.teller.told.get(timeout=_LOOK_S)
                if told is None:
                    return
                yield told
    finally:
        show.kill()


class _Show:
    def __init__(self, wish: DemoWish, console: Console, stop: Stop) -> None:
        self.teller = Teller()
        self._wish = wish
        self._console = console
        self._stop = stop
        self._stage: Stage | None = None
        self._lag: dict[GroupId, int] = {}

    def run(self) -> None:
        try:
            with contextlib.ExitStack() as parts:
                self._play(parts)
        # Whatever it was: it is told, and what was set up has been ended by then.
        except Exception as error:
            self.teller.note_death("demo", say(error))
        finally:
            self.teller.tell(self._sum_up())
            self.teller.end()

    def kill(self) -> None:
        """What would outlive this process ends now; after a good end nothing is left to."""
        if self._stage is not None:
            self._stage.troupe.kill()

    def _play(self, parts: contextlib.ExitStack) -> None:
        stage = self._stage = Stage(self._wish, self._console, self.teller, parts)
        self.teller.begin()
        self.teller.tell(
            Opened(
                console=self._console.url,
                token=self._console.token,
                bootstrap_servers=stage.node.bootstrap_servers,
                seed=self._wish.seed,
                roles=draw_roles(self._wish.seed),
            )
        )
        why = self._follow(stage)
        self.teller.tell(Ending(why=why))
        self._end(stage)

    def _follow(self, stage: Stage) -> str:
        """The schedule, act by act; says why it ends."""
        for act in perform(self._wish.seed, self._wish.minutes):
            why = self._wait_until(act.at_ms, stage)
            if why is not None:
                return why
            stage.troupe.carry_out(act)
            self.teller.tell(Acted(act=act))
        assert self._wish.minutes is not None, "a schedule without a length has no end"
        end_ms = Millis(int(self._wish.minutes * 60_000))
        return self._wait_until(end_ms, stage) or "the time is over"

    def _wait_until(self, at_ms: Millis, stage: Stage) -> str | None:
        """None when it is time; else why there is nothing more to wait for."""
        while (left_s := at_ms / 1_000 - self.teller.elapsed_s) > 0:
            if self._stop.soon.wait(min(left_s, _LOOK_S)):
                return "it was told to"
            if stage.node.failure is not None:
                self.teller.note_death("node", say(stage.node.failure))
                return "the node is gone"
        return None

    def _end(self, stage: Stage) -> None:
        """Whoever still has something to do with the node comes before it."""
        stage.front.close()
        if stage.node.failure is None:
            groups = [service.group_id for service in SERVICES]
            self._lag = await_commits(stage.node.bootstrap_servers, groups, _CATCH_UP_S)
        stage.troupe.close()
        if stage.reports is not None:
            stage.reports.close()
        if stage.warehouse is not None:
            self._end_warehouse(stage, stage.warehouse)
        stage.listener.close()

    def _end_warehouse(self, stage: Stage, warehouse: Warehouse) -> None:
        if stage.node.failure is not None:
            self.teller.tell(LeftOut(what="the last report", why="the node is gone"))
            return
        warehouse.finish_ingest(stage.front.placed)
        warehouse.explain()

    def _sum_up(self) -> Summary:
        stage, tally = self._stage, self.teller.tally
        warehouse = None if stage is None else stage.warehouse
        return Summary(
            seconds=self.teller.elapsed_s,
            produced=0 if stage is None else stage.front.placed,
            consumed={} if stage is None else stage.troupe.consumed(),
            lag=self._lag,
            ingested=None if warehouse is None else warehouse.ingested.rows,
            bad=None if warehouse is None else warehouse.ingested.bad,
            triggers=tally.triggers,
            returned=tally.returned,
            findings=tally.findings,
            places=tuple(_places(self._wish.directory)),
            died=tally.died,
        )


def _places(directory: Path) -> Iterator[Place]:
    """What is there now, and stays."""
    for what, name in (
        ("report", "report.html"),
        ("tables", FORENSICS),
        ("orders", "orders"),
        ("node's data", DATA),
        ("journals", JOURNALS),
    ):
        if (directory / name).exists():
            yield Place(what=what, path=str(directory / name))
