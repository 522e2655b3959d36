"""Live updates of an open page: server-sent events with the parts that have changed.

    event: part     {"name": "members", "html": "..."}    replace this part of the page
    event: chart    {...}                                 new data of the chart
    event: health   {"html": "..."}                       whether the cluster is reachable

After a reconnect the client gets all parts again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.concurrency import run_in_threadpool

from kohort.console.json_values import dump
from kohort.types import value

CHECK_S: Final = 0.2
"""Between two checks for a new version of the state, which compare two numbers."""

KEEPALIVE_S: Final = 15.0
"""Between two keep-alive comments, with which both sides detect a lost connection."""

_RENDER_FACTOR: Final = 10
"""Rendering takes at most a tenth of the time: with many groups a page updates less often."""


@value
class FeedFrame:
    """The current content of a page."""

    parts: dict[str, str]
    chart: str | None
    health: str
    refresh_s: float | None


async def stream(
    render: Callable[[], FeedFrame], version: Callable[[], int], is_stopping: Callable[[], bool]
) -> AsyncIterator[str]:
    sent: dict[str, str] = {}
    seen = -1
    sent_at = time.monotonic()
    yield "retry: 2000\n\n"
    while not is_stopping():
        if version() == seen:
            if time.monotonic() - sent_at > KEEPALIVE_S:
                sent_at = time.monotonic()
                yield ": keep-alive\n\n"
            await asyncio.sleep(CHECK_S)
            continue
        seen, start = version(), time.monotonic()
        frame = await run_in_threadpool(render)
        for message in _changed_messages(frame, sent):
            sent_at = time.monotonic()
            yield message
        took = time.monotonic() - start
        pause_s = max(frame.refresh_s or 1.0, _RENDER_FACTOR * took)
        until = time.monotonic() + pause_s
        while not is_stopping() and time.monotonic() < until:
            await asyncio.sleep(CHECK_S)


def _changed_messages(frame: FeedFrame, sent: dict[str, str]) -> list[str]:
    """Messages for the parts that differ from `sent`, which is updated."""
    contents = {f"part {name}": html for name, html in frame.parts.items()} | {
        "health": frame.health
    }
    if frame.chart is not None:
        contents["chart"] = frame.chart
    messages = []
    for name, content in contents.items():
        if sent.get(name) == content:
            continue
        sent[name] = content
        kind, _, part = name.partition(" ")
        if kind == "chart":
            messages.append(f"event: chart\ndata: {content}\n\n")
        elif kind == "part":
            messages.append(f"event: part\ndata: {dump({'name': part, 'html': content})}\n\n")
        else:
            messages.append(f"event: health\ndata: {dump({'html': content})}\n\n")
    return messages
