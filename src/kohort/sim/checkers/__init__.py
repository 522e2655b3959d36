"""Checkers of the simulation: one rule, or a few about one subject, in each file.

A checker sees what members, producers and the wire do, and raises Violation. Only the replay
checker looks inside the code under test.
"""


class Violation(Exception):
    """A broken rule; `rule` is the checker's name."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.what = what
