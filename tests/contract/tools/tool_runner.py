"""Kafka's command-line tools, all in one JVM with a JSON protocol.

See `Tools.java`, which is compiled on first use. A tool is named after its script. `own_process`
runs tools that need their own JVM.
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
from tests.contract.tools.tool_table import TOOLS

SOURCE = Path(__file__).with_name("Tools.java")

DEADLINE_S = 240
"""Producers retry for two minutes; a tool that takes longer has failed."""

CLASSES = {tool.name: tool.main for tool in TOOLS}

LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A finished tool and its output."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]


class Running:
    """A running tool."""

    def __init__(self, tools: "Tools", number: int) -> None:
        self._tools = tools
        self._number = number
        self.output_lines: list[str] = []
        """The lines it has printed so far."""
        self.ended: Future[Ended] = Future()

    def wait(self, deadline_s: float = DEADLINE_S) -> Ended:
        return self.ended.result(deadline_s)

    def stop(self) -> Ended:
        """Stop the tool like Ctrl-C."""
        self._tools.tell({"stop": self._number})
        return self.wait()


class Tools:
    """One JVM that runs any number of tools."""

    def __init__(self) -> None:
        classpath = find_classpath()
        options = (*java.QUICK, *LOGGING)
        arguments = java.command((_compile(classpath), *classpath), "Tools", options=options)
        # The output of a tool comes through the JSON protocol; nothing else is printed.
        self._process = subprocess.Popen(
            arguments,
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
        """Run a tool to its end."""
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
                running.output_lines.append(answer["said"])
            else:
                del self._running[answer["run"]]
                ended = Ended(code=answer["code"], out=answer["out"], err=answer["err"])
                running.ended.set_result(ended)
        self._process.stdout.close()
        for running in self._running.values():
            running.ended.set_exception(EOFError("the JVM has ended"))


def own_process(tool: str, *arguments: str) -> Sequence[str]:
    """The command that starts a tool in its own JVM."""
    options = (*java.QUICK, *LOGGING)
    return java.command(find_classpath(), CLASSES[tool], *arguments, options=options)


def _compile(classpath: tuple[Path, ...]) -> Path:
    """The directory of the compiled classes, in the jar cache; compiled once for all runs."""
    source = SOURCE.read_bytes()
    home = find_home() / f"tools-{hashlib.sha256(source).hexdigest()[:12]}"
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
