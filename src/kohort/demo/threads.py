"""Threads of the demo that report their failure."""

import threading
from collections.abc import Callable

OnFailure = Callable[[str, str], None]
"""Called with the name of the failed part and the reason."""


def start_thread(name: str, work: Callable[[], None], on_failure: OnFailure) -> threading.Thread:
    def run() -> None:
        try:
            work()
        # The other parts continue, and the failure is printed.
        except Exception as error:
            on_failure(name, first_line(error))

    # Daemon: a second Ctrl-C must end the process while threads are running.
    thread = threading.Thread(target=run, name=f"demo {name}", daemon=True)
    thread.start()
    return thread


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
