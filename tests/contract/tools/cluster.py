"""A cluster as the tools see it: an address. Whose it is, only its name says."""

import itertools
from dataclasses import dataclass

from tests.contract.tools.running import Ended, Running, Tools

_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    name: str
    bootstrap_servers: str
    tools: Tools

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Ended:
        """A tool on this cluster, which must succeed."""
        ended = self.tools.run(tool, *self._at(arguments), stdin=stdin)
        assert ended.code == 0, f"{tool}: {ended.out[-1000:]}{ended.err[-3000:]}"
        return ended

    def try_to(self, tool: str, *arguments: str) -> Ended:
        """A tool on this cluster, whatever becomes of it."""
        return self.tools.run(tool, *self._at(arguments))

    def start(self, tool: str, *arguments: str) -> Running:
        return self.tools.start(tool, *self._at(arguments))

    def name_anew(self, word: str) -> str:
        """A name nobody else uses: the clusters serve all tests."""
        return f"{word}-{next(_NUMBERS)}"

    def create_topic(self, partitions: int = 1, *arguments: str) -> str:
        topic = self.name_anew("topic")
        words = ("--create", "--topic", topic, "--partitions", f"{partitions}", *arguments)
        self.run("kafka-topics", *words)
        return topic

    def _at(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        # Of the tools with subcommands, these come first.
        at = ("--bootstrap-server", self.bootstrap_servers)
        is_option = not arguments or arguments[0].startswith("-")
        return (*at, *arguments) if is_option else (arguments[0], *at, *arguments[1:])
