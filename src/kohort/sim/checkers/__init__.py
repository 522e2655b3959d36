"""Checkers of the simulation: one rule, or a few about one subject, in each file.

A checker sees what members, producers and the wire do, and raises Violation. Only two look inside
the code under test: replay at the groups, evictions at the events that are written about them.
"""


class Violation(Exception):
    """A broken rule; `rule` is the checker's name."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.what = what
