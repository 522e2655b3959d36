"""kohort groups watch: one group, live: a screen on a terminal, else a line for each change."""

import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    complete_groups,
    talking_to,
)
from kohort.cli.streaming import hearing_consumers, note, one_sentence_about, until_told_to_end
from kohort.types import GroupId

if TYPE_CHECKING:
    from kohort.admin.picture.following import Following
    from kohort.admin.picture.values import GroupView
    from kohort.cli.watch_view import Scene

_Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="Which one.", autocompletion=complete_groups)
]
_Every = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.5, help="How often lag is told, without a terminal."),
]

_LOOK_S: Final = 0.2
"""How long a key or Ctrl-C may have to wait."""

_REDRAW_S: Final = 1.0
"""Times that pass are shown, so a screen changes even when the group does not."""


def run(
    group: _Group,
    *,
    bootstrap: Bootstrap,
    every: _Every = 10.0,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Watch a group live: its state, members, who holds what, lag and rebalances.

    On a terminal q or Ctrl-C ends it. Without one, each change is a line.

    \b
      kohort groups watch billing
      kohort groups watch billing | tee billing.log
      kohort groups watch billing --json
    """
    group_id = GroupId(group)
    is_screen = sys.stdout.isatty() and sys.stdin.isatty() and not as_json
    with (
        talking_to(bootstrap, command_config, timeout) as cluster,
        one_sentence_about(),
        hearing_consumers(),
        until_told_to_end() as is_told,
    ):
        from kohort.admin.picture.following import follow  # noqa: PLC0415  # other verbs need none

        with follow(cluster) as following:
            look = _looker(following, group_id, cluster.bootstrap_servers)
            if is_screen:
                _show_screen(following, look, is_told)
            else:
                _show_lines(following, look, is_told, every_s=every, is_json=as_json)


def _looker(following: "Following", group_id: GroupId, where: str) -> "Callable[[], Scene]":
    from kohort.admin.picture.following import now_ms  # noqa: PLC0415  # as above
    from kohort.cli.watch_view import Scene  # noqa: PLC0415

    def look() -> "Scene":
        now = now_ms()
        with following.look() as picture:
            view, is_exact = picture.find_group(group_id, now), picture.has_events
        health = following.health()
        return Scene(
            group_id=group_id,
            where=where,
            view=view,
            trouble=health.trouble,
            share_read=health.share_read,
            is_exact=is_exact,
            now_ms=now,
        )

    return look


# On a terminal


def _show_screen(
    following: "Following", look: "Callable[[], Scene]", is_told: Callable[[], bool]
) -> None:
    from rich.console import Console  # noqa: PLC0415  # as above
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from kohort.cli.watch_view import draw  # noqa: PLC0415

    console = Console()

    def paint() -> Text:
        lines = draw(look(), console.width, console.height)
        drawn = Text(no_wrap=True, overflow="crop", end="")
        for number, line in enumerate(lines):
            drawn.append("\n" if number else "")
            drawn.append(line.text, style=line.style or None)
        return drawn

    with (
        _keys() as is_quit,
        Live(paint(), console=console, screen=True, auto_refresh=False) as live,
    ):
        seen, drawn_at, size = following.version, time.monotonic(), console.size
        while not is_told() and not is_quit():
            version = following.wait_for_change(seen, _LOOK_S)
            is_old = time.monotonic() - drawn_at >= _REDRAW_S or console.size != size
            if version != seen or is_old:
                seen, drawn_at, size = version, time.monotonic(), console.size
                live.update(paint(), refresh=True)


@contextmanager
def _keys() -> Iterator[Callable[[], bool]]:
    """Whether q was pressed: keys come as they are pressed, and are not shown."""
    import termios  # noqa: PLC0415  # only where there is a terminal
    import tty  # noqa: PLC0415

    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    tty.setcbreak(source)

    def is_quit() -> bool:
        while select.select([source], [], [], 0)[0]:
            pressed = os.read(source, 1)
            if not pressed or pressed in b"qQ":
                return True
        return False

    try:
        yield is_quit
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


# Without one


def _show_lines(
    following: "Following",
    look: "Callable[[], Scene]",
    is_told: Callable[[], bool],
    *,
    every_s: float,
    is_json: bool,
) -> None:
    tell = _JsonTeller().tell if is_json else _LineTeller(every_s).tell
    seen = -1
    while not is_told():
        version = following.wait_for_change(seen, _LOOK_S)
        if version == seen:
            continue
        seen = version
        for said in tell(look()):
            sys.stdout.write(said + "\n")
        sys.stdout.flush()


class _JsonTeller:
    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def tell(self, scene: "Scene") -> Iterator[str]:
        from kohort.cli.watch_view import as_json  # noqa: PLC0415  # as above

        if scene.share_read < 1:
            return
        said = as_json(scene)
        now = {key: content for key, content in said.items() if key != "at"}
        if now != self._last:
            self._last = now
            yield json.dumps(said, separators=(",", ":"))


class _LineTeller:
    def __init__(self, every_s: float) -> None:
        self._every_ms = int(every_s * 1000)
        self._view: GroupView | None = None
        self._lag: tuple[int | None, int] = (None, 0)
        """What was told last, and when."""
        self._trouble = ""
        self._is_awaited = False

    def tell(self, scene: "Scene") -> Iterator[str]:
        from kohort.cli.watch_view import stamp, tell_changes  # noqa: PLC0415  # as above

        if scene.trouble != self._trouble:
            self._trouble = scene.trouble
            note(f"the cluster does not answer: {scene.trouble}" if scene.trouble else "it is back")
        # What happened before is not told as if it happened now.
        if scene.share_read < 1:
            return
        if scene.view is None:
            if not self._is_awaited and self._view is None:
                self._is_awaited = True
                note(f"there is no group {scene.group_id!r} yet")
            elif self._view is not None:
                self._view = None
                yield stamp(scene.now_ms, "the group is gone")
            return
        for said in tell_changes(self._view, scene.view, is_exact=scene.is_exact):
            yield stamp(scene.now_ms, said)
        self._view = scene.view
        lag, (told, told_at) = scene.view.row.lag, self._lag
        if lag is not None and lag != told and scene.now_ms - told_at >= self._every_ms:
            self._lag = lag, scene.now_ms
            yield stamp(scene.now_ms, f"lag {lag}")
