"""One line of a member trace: positional words and options, each consumed once."""

import re
import shlex
from dataclasses import dataclass, field

_OPTION = re.compile(
    "(assignors|auto-commit|gen|heartbeat|instance|leader|member|poll|protocol|rack|session|timeout"
    "|type)=(.*)"
)


@dataclass
class TraceWords:
    bare: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, line: str) -> "TraceWords":
        words = cls()
        for word in shlex.split(line):
            option = _OPTION.fullmatch(word)
            if option is None:
                words.bare.append(word)
            else:
                words.options[option[1]] = option[2]
        return words

    def next(self) -> str:
        return self.bare.pop(0)

    def rest(self) -> list[str]:
        taken, self.bare = self.bare, []
        return taken

    def option(self, name: str) -> str | None:
        return self.options.pop(name, None)

    def finish(self) -> None:
        assert not self.bare, f"unexpected words: {self.bare}"
        assert not self.options, f"unexpected options: {self.options}"
