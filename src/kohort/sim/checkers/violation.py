"""What a checker says when something that must not be, is."""


class Violation(Exception):
    """A broken rule; `rule` is the checker's name."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule
        self.what = what
