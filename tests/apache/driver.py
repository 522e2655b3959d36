"""Kafka's own Java clients, in a process of their own that is asked and answers in JSON.

See `Driver.java`, which is compiled when it is first needed. Answers come as the questions are
done, not as they were asked, so many may ask at one time.
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
"""No answer takes as long; longer is a failure, not patience."""


class JavaError(Exception):
    """An exception in Java: Kafka's name for the error, and the exception's own."""

    def __init__(self, error: str, kind: str, message: str) -> None:
        super().__init__(f"{error} ({kind}): {message}")
        self.error = error
        self.kind = kind


class Driver:
    """One JVM with any number of consumers, producers and administrators in it."""

    def __init__(self) -> None:
        classpath = clients_only(find_classpath())
        words = java.command((_compile(classpath), *classpath), "Driver")
        # What its clients log is only of interest when something is wrong, and then all of it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._numbers = itertools.count(1)
        self._asking = threading.Lock()
        self._asked: dict[int, Future[Any]] = {}
        self._ears = threading.Thread(target=self._listen, name="java", daemon=True)
        self._ears.start()

    def make(self, kind: str, config: Mapping[str, object]) -> str:
        """A new consumer, producer or admin; the name by which it is asked."""
        name = f"{kind}-{next(self._numbers)}"
        self.ask(name, kind, config=dict(config))
        return name

    def ask(self, name: str, what: str, /, **arguments: Any) -> Any:
        """What the named one answered; raises JavaError."""
        question = {"id": next(self._numbers), "on": name, "do": what, **arguments}
        answer: Future[Any] = Future()
        self._asked[question["id"]] = answer
        assert self._process.stdin is not None
        with self._asking:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        return answer.result(DEADLINE_S)

    @property
    def journal(self) -> str:
        """What the clients have logged."""
        return os.pread(self._log.fileno(), 1 << 24, 0).decode("utf-8", errors="replace")

    def kill(self) -> None:
        """Everything in it ends without a word."""
        self._process.kill()
        self._process.wait()
        self._ears.join()
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
        self._log.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            asked = self._asked.pop(answer["id"])
            if "error" in answer:
                asked.set_exception(JavaError(answer["error"], answer["kind"], answer["message"]))
            else:
                asked.set_result(answer["ok"])
        for asked in self._asked.values():
            asked.set_exception(EOFError("the JVM has ended"))


def _compile(classpath: tuple[Path, ...]) -> Path:
    """Where the compiled driver is: beside the jars that it is compiled with, once for all runs."""
    source = SOURCE.read_bytes()
    home = find_home() / f"driver-{hashlib.sha256(source).hexdigest()[:12]}"
    if home.exists():
        return home
    with tempfile.TemporaryDirectory(dir=home.parent) as name:
        target = Path(name) / "classes"
        paths = os.pathsep.join(f"{path}" for path in classpath)
        words = [f"{java.find_javac()}", "-Xlint:all", "-Werror", "-proc:none"]
        words += ["-d", f"{target}", "-cp", paths, f"{SOURCE}"]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        try:
            target.rename(home)
        except OSError:
            # Another run was quicker, with the same source.
            assert home.exists()
    return home
