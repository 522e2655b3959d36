"""Kafka's Java clients, in a JVM with a JSON protocol.

See `Driver.java`, which is compiled on first use. Responses arrive in any order, so that many
threads can send requests at the same time.
"""

import hashlib
import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.apache import java
from tests.apache.jars import clients_only, find_classpath, find_home

SOURCE = Path(__file__).with_name("Driver.java")

DEADLINE_S = 60
"""No response takes as long."""


class JavaError(Exception):
    """An exception in Java: Kafka's error name and the exception class."""

    def __init__(self, error: str, kind: str, message: str) -> None:
        super().__init__(f"{error} ({kind}): {message}")
        self.error = error
        self.kind = kind


class Driver:
    """One JVM with any number of consumers, producers and admin clients."""

    def __init__(self) -> None:
        classpath = clients_only(find_classpath())
        arguments = java.command((_compile(classpath), *classpath), "Driver")
        # The log of the clients is shown only on failure.
        self._log_file = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the process
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log_file,
            text=True,
        )
        self._numbers = itertools.count(1)
        self._write_lock = threading.Lock()
        self._in_flight: dict[int, Future[Any]] = {}
        self._reader = threading.Thread(target=self._read, name="java", daemon=True)
        self._reader.start()

    def make(self, kind: str, config: Mapping[str, object]) -> str:
        """Create a consumer, producer or admin client; returns its name."""
        name = f"{kind}-{next(self._numbers)}"
        self.ask(name, kind, config=dict(config))
        return name

    def ask(self, name: str, what: str, /, **arguments: Any) -> Any:
        """Call a method of a client; raises JavaError."""
        request = {"id": next(self._numbers), "on": name, "do": what, **arguments}
        response: Future[Any] = Future()
        self._in_flight[request["id"]] = response
        assert self._process.stdin is not None
        with self._write_lock:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return response.result(DEADLINE_S)

    @property
    def log(self) -> str:
        """The log of the clients."""
        return os.pread(self._log_file.fileno(), 1 << 24, 0).decode("utf-8", errors="replace")

    def kill(self) -> None:
        """Kill the JVM; its clients do not close."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()
        self._log_file.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            response = json.loads(line)
            waiting = self._in_flight.pop(response["id"])
            if "error" in response:
                waiting.set_exception(
                    JavaError(response["error"], response["kind"], response["message"])
                )
            else:
                waiting.set_result(response["ok"])
        for waiting in self._in_flight.values():
            waiting.set_exception(EOFError("the JVM has exited"))


def _compile(classpath: tuple[Path, ...]) -> Path:
    """The directory of the compiled driver, in the jar cache; compiled once for all runs."""
    source = SOURCE.read_bytes()
    home = find_home() / f"driver-{hashlib.sha256(source).hexdigest()[:12]}"
    if home.exists():
        return home
    with tempfile.TemporaryDirectory(dir=home.parent) as name:
        target = Path(name) / "classes"
        paths = os.pathsep.join(f"{path}" for path in classpath)
        arguments = [f"{java.find_javac()}", "-Xlint:all", "-Werror", "-proc:none"]
        arguments += ["-d", f"{target}", "-cp", paths, f"{SOURCE}"]
        ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        try:
            target.rename(home)
        except OSError:
            # Another process has compiled the same source in the meantime.
            assert home.exists()
    return home
