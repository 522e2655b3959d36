"""A part of the demo on a thread of its own, whose failure somebody hears of."""

import threading
from collections.abc import Callable

OnEnd = Callable[[str, str], None]
"""Hears which part ended by itself, and why."""


def start_part(name: str, work: Callable[[], None], on_end: OnEnd) -> threading.Thread:
    def run() -> None:
        try:
            work()
        # Whatever it was: the other parts go on, and people are told.
        except Exception as error:
            on_end(name, say(error))

    # It must not keep a process alive that is told to end at once.
    thread = threading.Thread(target=run, name=f"demo {name}", daemon=True)
    thread.start()
    return thread


def say(error: BaseException) -> str:
    """One line about an error."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
