"""kohort groups watch: shows one group live, as a screen on a terminal, else as lines."""

import json
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from kohort.admin.group_monitor.monitor import GroupMonitor, now_ms, start_monitor
from kohort.admin.group_monitor.views import GroupView
from kohort.cli.cluster_options import TIMEOUT_MS, AsJson, Bootstrap, Config, Timeout, connect
from kohort.cli.groups.options import Group
from kohort.cli.groups.watch_view import (
    WatchState,
    describe_changes,
    render_screen,
    state_as_json,
    with_timestamp,
)
from kohort.cli.messages import print_stderr
from kohort.cli.record_options import forward_consumer_warnings, report_errors, stop_on_signal
from kohort.types import GroupId

_Every = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.5, help="Minimum time between two lines about lag."),
]

_WAIT_S: Final = 0.2
"""A key or Ctrl-C takes effect within this time."""

_REDRAW_S: Final = 1.0
"""The screen shows elapsed times, so it is redrawn even if the group does not change."""


def run(
    group: Group,
    *,
    bootstrap: Bootstrap,
    every: _Every = 10.0,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Watch state, members, assignment, lag and rebalances of a group live.

    On a terminal, press q or Ctrl-C to quit. Without a terminal, prints one line per change.

    \b
      kohort groups watch billing
      kohort groups watch billing | tee billing.log
      kohort groups watch billing --json
    """
    group_id = GroupId(group)
    is_screen = sys.stdout.isatty() and sys.stdin.isatty() and not as_json
    with (
        connect(bootstrap, command_config, timeout) as cluster,
        report_errors(),
        forward_consumer_warnings(),
        stop_on_signal() as is_stopping,
        start_monitor(cluster) as monitor,
    ):
        read_state = _state_reader(monitor, group_id, cluster.bootstrap_servers)
        if is_screen:
            _show_screen(monitor, read_state, is_stopping)
        else:
            format_changes = (
                _JsonChanges().format if as_json else _TextChanges(lag_interval_s=every).format
            )
            _print_changes(monitor, read_state, format_changes, is_stopping)


def _state_reader(
    monitor: GroupMonitor, group_id: GroupId, cluster: str
) -> Callable[[], WatchState]:
    def read_state() -> WatchState:
        now = now_ms()
        with monitor.locked_state() as state:
            view, is_exact = state.find_group(group_id, now), state.has_events
        health = monitor.health()
        return WatchState(
            group_id=group_id,
            cluster=cluster,
            view=view,
            error=health.error,
            share_read=health.share_read,
            is_exact=is_exact,
            now_ms=now,
        )

    return read_state


# Screen


def _show_screen(
    monitor: GroupMonitor, read_state: Callable[[], WatchState], is_stopping: Callable[[], bool]
) -> None:
    console = Console()

    def render() -> Text:
        lines = render_screen(read_state(), console.width, console.height)
        text = Text(no_wrap=True, overflow="crop", end="")
        for number, line in enumerate(lines):
            text.append("\n" if number else "")
            text.append(line.text, style=line.style or None)
        return text

    with (
        _quit_key() as is_pressed,
        Live(render(), console=console, screen=True, auto_refresh=False) as live,
    ):
        seen, drawn_at, size = monitor.version, time.monotonic(), console.size
        while not is_stopping() and not is_pressed():
            version = monitor.wait_for_change(seen, _WAIT_S)
            is_outdated = time.monotonic() - drawn_at >= _REDRAW_S or console.size != size
            if version != seen or is_outdated:
                seen, drawn_at, size = version, time.monotonic(), console.size
                live.update(render(), refresh=True)


@contextmanager
def _quit_key() -> Iterator[Callable[[], bool]]:
    """Give a function that returns True after q was pressed. Keys are read without echo."""
    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    tty.setcbreak(source)

    def is_pressed() -> bool:
        while select.select([source], [], [], 0)[0]:
            key = os.read(source, 1)
            if not key or key in b"qQ":
                return True
        return False

    try:
        yield is_pressed
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


# Lines


def _print_changes(
    monitor: GroupMonitor,
    read_state: Callable[[], WatchState],
    format_changes: Callable[[WatchState], Iterator[str]],
    is_stopping: Callable[[], bool],
) -> None:
    seen = -1
    while not is_stopping():
        version = monitor.wait_for_change(seen, _WAIT_S)
        if version == seen:
            continue
        seen = version
        for line in format_changes(read_state()):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()


class _JsonChanges:
    """Formats the state as JSON whenever it differs from the last one."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def format(self, state: WatchState) -> Iterator[str]:
        if state.share_read < 1:
            return
        document = state_as_json(state)
        content = {key: item for key, item in document.items() if key != "at"}
        if content != self._last:
            self._last = content
            yield json.dumps(document, separators=(",", ":"))


class _TextChanges:
    """Formats each change as a line."""

    def __init__(self, *, lag_interval_s: float) -> None:
        self._lag_interval_ms = int(lag_interval_s * 1000)
        self._view: GroupView | None = None
        self._printed_lag: tuple[int | None, int] = (None, 0)
        """The lag that was printed last, and when."""
        self._error = ""
        self._is_missing_printed = False

    def format(self, state: WatchState) -> Iterator[str]:
        if state.error != self._error:
            self._error = state.error
            print_stderr(
                f"cluster not reachable: {state.error}"
                if state.error
                else "cluster reachable again"
            )
        # Events from before the start of this command are not printed as changes.
        if state.share_read < 1:
            return
        if state.view is None:
            if not self._is_missing_printed and self._view is None:
                self._is_missing_printed = True
                print_stderr(f"group {state.group_id!r} does not exist yet")
            elif self._view is not None:
                self._view = None
                yield with_timestamp(state.now_ms, "the group was deleted")
            return
        for line in describe_changes(self._view, state.view, is_exact=state.is_exact):
            yield with_timestamp(state.now_ms, line)
        self._view = state.view
        lag, (printed, printed_at) = state.view.row.lag, self._printed_lag
        is_due = state.now_ms - printed_at >= self._lag_interval_ms
        if lag is not None and lag != printed and is_due:
            self._printed_lag = lag, state.now_ms
            yield with_timestamp(state.now_ms, f"lag {lag}")
