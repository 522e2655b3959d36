"""Kafka's own command-line tools, all in one JVM that is asked and answers in JSON.

See `Tools.java`, which is compiled when it is first needed. A tool is named as users know it, by
its script. `own_process` is for those that must have a JVM of their own.
"""

import hashlib
import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.apache import java
from tests.apache.jars import find_classpath, find_home
from tests.contract.tools.table import TOOLS

SOURCE = Path(__file__).with_name("Tools.java")

DEADLINE_S = 240
"""Clients try for two minutes to get rid of a record; whoever takes longer has failed."""

CLASSES = {tool.name: tool.main for tool in TOOLS}

LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A tool that has ended, and all it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]


class Running:
    """A tool that goes on until it has done its work or is stopped."""

    def __init__(self, tools: "Tools", number: int) -> None:
        self._tools = tools
        self._number = number
        self.said: list[str] = []
        """The lines it has printed so far."""
        self.ended: Future[Ended] = Future()

    def wait(self, deadline_s: float = DEADLINE_S) -> Ended:
        return self.ended.result(deadline_s)

    def stop(self) -> Ended:
        """As Ctrl-C would."""
        self._tools.tell({"stop": self._number})
        return self.wait()


class Tools:
    """One JVM in which any number of tools can run."""

    def __init__(self) -> None:
        classpath = find_classpath()
        options = (*java.QUICK, *LOGGING)
        words = java.command((_compile(classpath), *classpath), "Tools", options=options)
        # What is printed by a tool is told by the tool; Java itself has nothing to say.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._numbers = itertools.count(1)
        self._telling = threading.Lock()
        self._running: dict[int, Running] = {}
        threading.Thread(target=self._listen, name="tools", daemon=True).start()

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Ended:
        """A tool from its beginning to its end."""
        return self.start(tool, *arguments, stdin=stdin).wait()

    def start(self, tool: str, *arguments: str, stdin: str = "") -> Running:
        number = next(self._numbers)
        running = self._running[number] = Running(self, number)
        question = {"run": number, "main": CLASSES[tool], "arguments": arguments, "stdin": stdin}
        self.tell(question)
        return running

    def tell(self, question: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._telling:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            running = self._running[answer["run"]]
            if "said" in answer:
                running.said.append(answer["said"])
            else:
                del self._running[answer["run"]]
                ended = Ended(code=answer["code"], out=answer["out"], err=answer["err"])
                running.ended.set_result(ended)
        self._process.stdout.close()
        for running in self._running.values():
            running.ended.set_exception(EOFError("the JVM has ended"))


def own_process(tool: str, *arguments: str) -> Sequence[str]:
    """The words that start a tool in a JVM of its own."""
    options = (*java.QUICK, *LOGGING)
    return java.command(find_classpath(), CLASSES[tool], *arguments, options=options)


def _compile(classpath: tuple[Path, ...]) -> Path:
    """Where the compiled source is: beside the jars that it is compiled with, once for all runs."""
    source = SOURCE.read_bytes()
    home = find_home() / f"tools-{hashlib.sha256(source).hexdigest()[:12]}"
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
