"""A cluster for Kafka's command-line tools: Kohort or Apache Kafka, known by its address."""

import itertools
import os
import time
from dataclasses import dataclass

from tests.contract.tools.tool_runner import Ended, Running, Tools

_NUMBERS = itertools.count(1)

_RUN = f"{os.getpid()}-{time.time_ns() % 10**9}"
"""Unique per process: several test processes share one Apache Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    name: str
    bootstrap_servers: str
    tools: Tools

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Ended:
        """Run a tool on this cluster; fails if the tool fails."""
        ended = self.tools.run(tool, *self._at(arguments), stdin=stdin)
        assert ended.code == 0, f"{tool}: {ended.out[-1000:]}{ended.err[-3000:]}"
        return ended

    def run_unchecked(self, tool: str, *arguments: str) -> Ended:
        """Run a tool on this cluster; the tool may fail."""
        return self.tools.run(tool, *self._at(arguments))

    def start(self, tool: str, *arguments: str) -> Running:
        return self.tools.start(tool, *self._at(arguments))

    def unique_name(self, word: str) -> str:
        """Tests share the clusters."""
        return f"{word}-{_RUN}-{next(_NUMBERS)}"

    def create_topic(self, partitions: int = 1, *arguments: str) -> str:
        topic = self.unique_name("topic")
        arguments = ("--create", "--topic", topic, "--partitions", f"{partitions}", *arguments)
        self.run("kafka-topics", *arguments)
        return topic

    def _at(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        # Subcommands come before options.
        at = ("--bootstrap-server", self.bootstrap_servers)
        is_option = not arguments or arguments[0].startswith("-")
        return (*at, *arguments) if is_option else (arguments[0], *at, *arguments[1:])
