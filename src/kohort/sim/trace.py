"""What happened, one line per event: when, who, what, and the facts.

    12034.512 m1/2   joined   g generation=4 leader

Written only where somebody reads it; docs/simulation.md explains every word.
"""

from collections.abc import Callable
from typing import Final

from kohort.sim.timeline import Timeline

WORDS: Final = {
    "acked": "a producer's batch was acknowledged: where, from which offset on, what",
    "answer": "what the node answered a member: an error, or what matters of it",
    "asks": "a member's request leaves for the node",
    "befalls": "a decision of the plan takes effect: its number, what, whom, how much",
    "call": "a member's listener is called: what comes or goes",
    "commits": "the program asks to commit by hand",
    "committed": "a commit was answered, by hand or by itself, well or with an error",
    "dies": "a life of the node ends: kill, power, stop or failed",
    "ends": "a member's process is over, and why",
    "fails": "a member tells its program an error",
    "gives-up": "the node stops itself, and why",
    "heals": "from here on nothing goes wrong any more",
    "holds": "what a member believes to hold, each with # and the generation that gave it",
    "lag": "the world waits for this before it ends",
    "loaded": "the node has read its groups back",
    "lost": "a request has no answer, and why",
    "mended": "the log did not end where it should: where, how much was cut, why",
    "node-says": "a line of the node's journal",
    "processed": "a program has done with records of a partition, from and to which offset",
    "resets": "a reader's position did not exist any more, and where it goes on",
    "start": "a process begins, or a life of the node",
    "told": "a rebalance has ended for a member",
    "violation": "a rule is broken: the end of the run",
}
"""Every word a trace may use, with its meaning."""


class Trace:
    def __init__(self, timeline: Timeline, write: Callable[[str], None] | None) -> None:
        self._timeline = timeline
        self._write = write

    @property
    def is_read(self) -> bool:
        return self._write is not None

    def tell(self, who: str, word: str, *facts: object) -> None:
        if self._write is None:
            return
        assert word in WORDS, f"{word} is not explained"
        at_us = self._timeline.now
        text = " ".join(map(str, facts))
        line = f"{at_us // 1000:>6}.{at_us % 1000:03} {who:<6} {word:<9} {text}"
        self._write(line.rstrip())
