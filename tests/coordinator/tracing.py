"""Reads a trace, plays it to the machine, and writes down everything the machine said.

A file opens with one sentence, which is also its name, and the rows it shows; then come stanzas:
a command, `----`, what was said, an empty line. `pytest --rewrite` writes what is said anew.

    # A heartbeat of a stranger is refused.
    # shows: heartbeat.missing-group

    at 5s heartbeat g1 a-1 gen=1
    ----
    refused a-1 UNKNOWN_MEMBER_ID

Time stands still but for `at TIME command` and `advance TIME` or `advance +TIME`. Timers that come
due are told as `fired KEY @TIME`, with what they did below; a round of expiry that found nothing is
not told. A TIME or duration is `250`, `10s`, `5m`, `1h` or `7d`.

    join GROUP CLIENT [PROTOCOL | PROTOCOL(metadata)]... [member=] [instance=] [fresh=] [session=]
        [rebalance=] [type=] [topics=t1,t2] [owned=t1:0,1] [reason=] [host=]
        [lacks=id-required,skip]   usually session=10s rebalance=60s type=consumer, and range;
        `-` offers no protocol at all
    sync GROUP MEMBER gen=N [MEMBER=t1:0,1;t2:0 | MEMBER=text]... [instance=] [type=] [protocol=]
    heartbeat GROUP MEMBER gen=N [instance=]
    leave GROUP MEMBER[/INSTANCE]... [reason=]   `/INSTANCE` alone: by an administrator
    commit GROUP [MEMBER] [gen=N] OFFSET... [instance=] [retention=] [lacks=missing-group]
        OFFSET is TOPIC:PARTITION=5, =5/3 with a leader epoch, =5(text) or =5(x*99) with metadata,
        =5(null) with null for it; TOPIC is t1, or t1@7 with topic id 7
    txn-commit GROUP [MEMBER] pid=N [epoch=N] [gen=N] OFFSET... [instance=] [lacks=loading]
    end-txn PID commit|abort
    fetch GROUP [TOPIC:0,1]... [stable]          no topics: all that is committed
    delete-offsets GROUP TOPIC:0,1...
    describe GROUP... [lacks=missing-group]
    list [states=Stable,Empty] [types=classic]
    delete-groups GROUP...
    forget-topics TOPIC...
    fail ERROR | fail off    from now on the log refuses every record, or takes them again
    shutdown                 this node no longer coordinates
    limits NAME=VALUE...     Kafka's dotted names; they hold from the next start
    crash                    soft state is lost; the machine is rebuilt from its records and resumed
    given                    records in the lines below, as they are told but without `record`,
                             are loaded with those there are; the machine is rebuilt and resumed
    load                     the same, but still loading: `crash` ends it
    show GROUP | show timers

A request is answered under a name: that of its client or member, else of its group (or PID); any
request takes `as=NAME` instead. Of two open requests with one name the second is called `NAME#2`.
The words after `lacks=` are what an older client does not know.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from kohort.coordinator.commands import Command, Request, Shutdown, Ticket
from kohort.coordinator.limits import Limits
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.types import ErrorCode, GroupId, Millis
from tests.coordinator import asking
from tests.coordinator.asking import Words
from tests.coordinator.driver import Driver, rebuilt
from tests.coordinator.spelling import millis
from tests.coordinator.telling import show, tell

FOLDER = Path(__file__).parent / "traces"
_COLUMNS_MAX = 100

# The file


@dataclass
class Stanza:
    command: list[str]
    said: list[str]


@dataclass
class Trace:
    head: list[str]
    stanzas: list[Stanza]

    @property
    def sentence(self) -> str:
        return " ".join(line.removeprefix("# ") for line in self.head if not _is_shows(line))

    @property
    def shows(self) -> list[str]:
        rows = ",".join(line.removeprefix("# shows:") for line in self.head if _is_shows(line))
        return [row.strip() for row in rows.split(",") if row.strip()]

    @property
    def text(self) -> str:
        stanzas = ([*each.command, "----", *each.said] for each in self.stanzas)
        return "\n\n".join("\n".join(lines) for lines in [self.head, *stanzas]) + "\n"


def _is_shows(line: str) -> bool:
    return line.startswith("# shows:")


def read(text: str) -> Trace:
    """Stanzas are parted by empty lines; one whose `----` is yet to be written has said nothing."""
    head, *blocks = [block.splitlines() for block in re.split(r"\n\n+", text.strip())]
    assert all(line.startswith("# ") for line in head), "a trace opens with a sentence"
    stanzas = []
    for block in blocks:
        cut = block.index("----") if "----" in block else len(block)
        stanzas.append(Stanza(block[:cut], block[cut + 1 :]))
    return Trace(head, stanzas)


# Playing it


_ASK: dict[str, Callable[[Words, Ticket], Request]] = {
    "sync": asking.sync,
    "heartbeat": asking.heartbeat,
    "leave": asking.leave,
    "commit": asking.commit,
    "txn-commit": asking.txn_commit,
    "end-txn": asking.end_txn,
    "fetch": asking.fetch,
    "delete-offsets": asking.delete_offsets,
    "describe": asking.describe,
    "list": asking.list_groups,
    "delete-groups": asking.delete_groups,
}
_NAMED_AFTER_MEMBER = {"join", "sync", "heartbeat", "leave", "commit", "txn-commit"}


@dataclass
class Player:
    """Plays one trace. What is said piles up in `said` until the stanza is over."""

    driver: Driver = field(default_factory=Driver)
    said: list[str] = field(default_factory=list)
    names: dict[Ticket, str] = field(default_factory=dict)
    open: dict[Ticket, str] = field(default_factory=dict)
    """Requests that have not been answered."""
    clients: dict[str, int] = field(default_factory=dict)
    """How many ids each client has been given."""
    is_started: bool = False

    def play(self, trace: Trace) -> Trace:
        """The same trace, with what the machine says now."""
        said = [Stanza(each.command, self.perform(each)) for each in trace.stanzas]
        return Trace(trace.head, said)

    def perform(self, stanza: Stanza) -> list[str]:
        self.said = []
        line, *below = [line for line in stanza.command if not line.startswith("#")]
        timed = re.match(r"at (\S+) (.*)", line)
        if timed is not None:
            self._advance(millis(timed[1]))
            line = timed[2]
        verb, _, rest = line.partition(" ")
        words = Words.of(rest)
        self._do(verb, words, below)
        words.finish()
        return [part for line in self.said for part in _fold(line)]

    def _do(self, verb: str, words: Words, below: list[str]) -> None:
        does = {
            "limits": self._limit,
            "advance": self._on_advance,
            "fail": self._fail,
            "crash": self._crash,
            "show": self._show,
            "shutdown": lambda _: self._decide(Shutdown()),
            "forget-topics": lambda words: self._decide(asking.forget_topics(words)),
        }
        if verb in ("given", "load"):
            self._load(below)
            if verb == "given":
                self._crash(words)
            return
        assert not below, f"{verb} takes one line"
        if verb in does:
            does[verb](words)
        else:
            self._ask(verb, words)

    # Asking

    def _ask(self, verb: str, words: Words) -> None:
        ticket = Ticket(len(self.names) + 1)
        name = words.option("as") or self._name(verb, words)
        twins = [each for each in self.open.values() if each.partition("#")[0] == name]
        self.names[ticket] = self.open[ticket] = f"{name}#{len(twins) + 1}" if twins else name
        if verb == "join":
            client = words.bare[1]
            self._decide(asking.join(words, ticket, client, self._fresh(client, words)))
        else:
            self._decide(_ASK[verb](words, ticket))

    def _name(self, verb: str, words: Words) -> str:
        named = words.bare[1:2] if verb in _NAMED_AFTER_MEMBER else []
        return next((each for each in named if "=" not in each), (words.bare or [verb])[0])

    def _fresh(self, client: str, words: Words) -> str:
        """Ids are numbered by client: a-1, a-2. A join that brings an id needs none."""
        if "member" in words.options or "fresh" in words.options:
            return ""
        self.clients[client] = self.clients.get(client, 0) + 1
        return f"{client}-{self.clients[client]}"

    def _decide(self, command: Command) -> None:
        self.is_started = True
        self._tell(self.driver.decide(command))

    def _tell(self, outcome: Outcome) -> None:
        self.said += tell(outcome, self.driver.now, self.names.__getitem__)
        for reply in outcome.replies:
            assert reply.ticket in self.open, f"{self.names[reply.ticket]} is answered twice"
            del self.open[reply.ticket]

    # Time

    def _on_advance(self, words: Words) -> None:
        text = words.next()
        until = millis(text.removeprefix("+"))
        self._advance(Millis(self.driver.now + until) if text.startswith("+") else until)

    def _advance(self, until: Millis) -> None:
        assert until >= self.driver.now, f"it is {self.driver.now} already"
        while True:
            moment = min((at for at in self.driver.timers.values() if at <= until), default=None)
            if moment is None:
                break
            for key, outcome in self.driver.advance(moment):
                if not _is_idle(key, outcome):
                    self.said.append(f"fired {key} @{moment}")
                    self._tell(outcome)
        self.driver.advance(until)

    # Starting and failing

    def _limit(self, words: Words) -> None:
        known = {each.name: each for each in fields(Limits)}
        for word in words.rest():
            name, _, text = word.partition("=")
            name = name.replace(".", "_")
            if name == "offsets_retention_minutes":
                name, text = "offsets_retention_ms", f"{text}m"
            assert name in known, f"{name} is no setting"
            self.driver.limits = replace(self.driver.limits, **{name: millis(text)})
        if not self.is_started:
            self.driver = Driver(self.driver.limits, self.driver.now)

    def _fail(self, words: Words) -> None:
        error = words.next()
        self.driver.append_error = None if error == "off" else ErrorCode[error]

    def _lose(self) -> None:
        self.is_started = True
        if self.open:
            self.said.append(f"lost {' '.join(self.open.values())}")
            self.open.clear()

    def _crash(self, _: Words) -> None:
        self._lose()
        self._tell(self.driver.crash())

    def _load(self, below: list[str]) -> None:
        self._lose()
        self.driver.records += [asking.record(line) for line in below]
        self.driver.machine = rebuilt(self.driver.records, self.driver.limits)
        self.driver.timers.clear()

    # Looking inside

    def _show(self, words: Words) -> None:
        shown = words.next()
        if shown == "timers":
            self.said += [f"{key} @{at}" for key, at in sorted(self.driver.timers.items())]
            return
        group = self.driver.machine.groups.get(GroupId(shown))
        self.said += [f"{shown} unknown"] if group is None else show(group, self.names.__getitem__)

    def find_forgotten(self) -> list[str]:
        """Open requests that nothing would ever answer: not parked, or with no timer to end it."""
        ends = (TimerKind.INITIAL_DELAY, TimerKind.JOIN, TimerKind.SYNC)
        parked = {
            ticket
            for group_id, group in self.driver.machine.groups.items()
            if any(TimerKey(kind, group_id) in self.driver.timers for kind in ends)
            for member in group.roster.members.values()
            for ticket in (member.join_ticket, member.sync_ticket)
        }
        return [name for ticket, name in self.open.items() if ticket not in parked]


def _fold(line: str) -> Iterator[str]:
    """A line that is too long goes on below, further in; what is quoted stays together."""
    indent = " " * (len(line) - len(line.lstrip()))
    words = re.findall(r'(?:[^\s"]|"[^"]*")+', line)
    folded = indent + words[0]
    for word in words[1:]:
        if len(folded) + 1 + len(word) > _COLUMNS_MAX:
            yield folded
            folded = f"{indent}    {word}"
        else:
            folded += f" {word}"
    yield folded


def _is_idle(key: TimerKey, outcome: Outcome) -> bool:
    is_silent = not (outcome.notes or outcome.records or outcome.replies)
    return key.kind is TimerKind.EXPIRY and is_silent
