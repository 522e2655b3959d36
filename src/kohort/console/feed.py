"""Keeps an open page up to date: server-sent events with the parts of it that have changed.

    event: part     {"name": "members", "html": "..."}    put this in place
    event: chart    {...}                                 draw this
    event: health   {"html": "..."}                       how well the cluster is followed

Whoever is away for a while gets everything again: there is nothing to catch up with.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.concurrency import run_in_threadpool

from kohort.console.jsonable import dump
from kohort.types import value

LOOK_S: Final = 0.2
"""Between two looks whether the picture has changed; a look is the comparison of two numbers."""

QUIET_S: Final = 15.0
"""A word now and then, so that a connection that is gone is noticed on both sides."""

_SHARE: Final = 10
"""Drawing may take a tenth of the time: with very many groups a page changes less often."""


@value
class Frame:
    """What a page shows now."""

    parts: dict[str, str]
    chart: str | None
    health: str
    pace_s: float | None


async def stream(
    draw: Callable[[], Frame], version: Callable[[], int], is_ending: Callable[[], bool]
) -> AsyncIterator[str]:
    sent: dict[str, str] = {}
    seen = -1
    quiet_since = time.monotonic()
    yield "retry: 2000\n\n"
    while not is_ending():
        if version() == seen:
            if time.monotonic() - quiet_since > QUIET_S:
                quiet_since = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(LOOK_S)
            continue
        seen, began = version(), time.monotonic()
        frame = await run_in_threadpool(draw)
        for message in _news(frame, sent):
            quiet_since = time.monotonic()
            yield message
        took = time.monotonic() - began
        pause_s = max(frame.pace_s or 1.0, _SHARE * took)
        until = time.monotonic() + pause_s
        while not is_ending() and time.monotonic() < until:
            await asyncio.sleep(LOOK_S)


def _news(frame: Frame, sent: dict[str, str]) -> list[str]:
    """What has changed since it was last sent; `sent` is brought up to date."""
    told = {f"part {name}": html for name, html in frame.parts.items()} | {"health": frame.health}
    if frame.chart is not None:
        told["chart"] = frame.chart
    news = []
    for name, content in told.items():
        if sent.get(name) == content:
            continue
        sent[name] = content
        kind, _, part = name.partition(" ")
        if kind == "chart":
            news.append(f"event: chart\ndata: {content}\n\n")
        elif kind == "part":
            news.append(f"event: part\ndata: {dump({'name': part, 'html': content})}\n\n")
        else:
            news.append(f"event: health\ndata: {dump({'html': content})}\n\n")
    return news
