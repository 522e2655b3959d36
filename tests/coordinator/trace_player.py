"""Plays a trace: sends its commands to the coordinator and prints the outcomes.

A trace file begins with a title, which is also its file name, and the facts that it covers. Then
come stanzas: a command, `----`, the output, an empty line. `pytest --rewrite` updates the output.

    # A heartbeat of an unknown member is refused.
    # shows: heartbeat.missing-group

    at 5s heartbeat g1 a-1 gen=1
    ----
    refused a-1 UNKNOWN_MEMBER_ID

Only `at TIME command`, `advance TIME` and `advance +TIME` change the time. Timers that fire are
printed as `fired KEY @TIME`, followed by their outcome; an expiry check without effect is not
printed. A TIME or duration is `250`, `10s`, `5m`, `1h` or `7d`.

    join GROUP CLIENT [PROTOCOL | PROTOCOL(metadata)]... [member=] [instance=] [fresh=] [session=]
        [rebalance=] [type=] [topics=t1,t2] [owned=t1:0,1] [reason=] [host=]
        [lacks=id-required,skip]   defaults: session=10s rebalance=60s type=consumer, range;
        `-` sends no protocol
    sync GROUP MEMBER gen=N [MEMBER=t1:0,1;t2:0 | MEMBER=text]... [instance=] [type=] [protocol=]
    heartbeat GROUP MEMBER gen=N [instance=]
    leave GROUP MEMBER[/INSTANCE]... [reason=]   `/INSTANCE` alone: by an administrator
    commit GROUP [MEMBER] [gen=N] OFFSET... [instance=] [retention=] [lacks=missing-group]
        OFFSET is TOPIC:PARTITION=5, =5/3 with a leader epoch, =5(text) or =5(x*99) with metadata,
        =5(null) with null for it; TOPIC is t1, or t1@7 with topic id 7
    txn-commit GROUP [MEMBER] pid=N [epoch=N] [gen=N] OFFSET... [instance=] [lacks=loading]
    end-txn PID commit|abort
    fetch GROUP [TOPIC:0,1]... [stable]          no topics: all offsets
    delete-offsets GROUP TOPIC:0,1...
    describe GROUP... [lacks=missing-group]
    list [states=Stable,Empty] [types=classic]
    delete-groups GROUP...
    topics-deleted TOPIC...
    rebalance GROUP          forces a rebalance
    fail ERROR | fail off    from now on appends fail, or succeed again
    shutdown                 this broker no longer coordinates
    config NAME=VALUE...     Kafka's setting names; effective from the next start
    set-clock +TIME | -TIME  the wall clock is set forward or back; timers do not depend on it
    crash                    soft state is lost; the coordinator is rebuilt from its records
    given                    loads the records in the lines below, printed without `record`, in
                             addition to the existing ones, and resumes
    load                     like `given`, but stays in loading; `crash` ends it
    show GROUP | show timers

Replies are printed with a name: that of the client or member, else of the group (or PID). `as=NAME`
sets another name. The second of two open requests with one name is `NAME#2`. `lacks=` lists the
features that an older client does not support.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from kohort.coordinator.commands import Command, RebalanceGroup, Request, Shutdown, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.outcome import Outcome, TimerKey, TimerKind
from kohort.types import ErrorCode, GroupId, Millis
from tests.coordinator import trace_commands
from tests.coordinator.driver import Driver, rebuilt
from tests.coordinator.trace_commands import Words
from tests.coordinator.trace_effects import format_group, format_outcome
from tests.coordinator.trace_syntax import millis

FOLDER = Path(__file__).parent / "traces"
_COLUMNS_MAX = 100

# Trace files


@dataclass
class Stanza:
    command: list[str]
    output: list[str]


@dataclass
class Trace:
    head: list[str]
    stanzas: list[Stanza]

    @property
    def title(self) -> str:
        return " ".join(line.removeprefix("# ") for line in self.head if not _is_shows(line))

    @property
    def shows(self) -> list[str]:
        rows = ",".join(line.removeprefix("# shows:") for line in self.head if _is_shows(line))
        return [row.strip() for row in rows.split(",") if row.strip()]

    @property
    def text(self) -> str:
        stanzas = ([*each.command, "----", *each.output] for each in self.stanzas)
        return "\n\n".join("\n".join(lines) for lines in [self.head, *stanzas]) + "\n"


def _is_shows(line: str) -> bool:
    return line.startswith("# shows:")


def read(text: str) -> Trace:
    """Parse a trace. Empty lines separate stanzas; one without `----` has no output yet."""
    head, *blocks = [block.splitlines() for block in re.split(r"\n\n+", text.strip())]
    assert all(line.startswith("# ") for line in head), "a trace begins with a title"
    stanzas = []
    for block in blocks:
        cut = block.index("----") if "----" in block else len(block)
        stanzas.append(Stanza(block[:cut], block[cut + 1 :]))
    return Trace(head, stanzas)


# Player


_REQUESTS: dict[str, Callable[[Words, Ticket], Request]] = {
    "sync": trace_commands.sync,
    "heartbeat": trace_commands.heartbeat,
    "leave": trace_commands.leave,
    "commit": trace_commands.commit,
    "txn-commit": trace_commands.txn_commit,
    "end-txn": trace_commands.end_txn,
    "fetch": trace_commands.fetch,
    "delete-offsets": trace_commands.delete_offsets,
    "describe": trace_commands.describe,
    "list": trace_commands.list_groups,
    "delete-groups": trace_commands.delete_groups,
}
_NAMED_AFTER_MEMBER = {"join", "sync", "heartbeat", "leave", "commit", "txn-commit"}


@dataclass
class Player:
    """Plays one trace. `output` collects the lines of the current stanza."""

    driver: Driver = field(default_factory=Driver)
    output: list[str] = field(default_factory=list)
    names: dict[Ticket, str] = field(default_factory=dict)
    open: dict[Ticket, str] = field(default_factory=dict)
    """Open requests."""
    clients: dict[str, int] = field(default_factory=dict)
    """The number of member ids issued to each client."""
    is_started: bool = False

    def play(self, trace: Trace) -> Trace:
        """Return the trace with its actual output."""
        stanzas = [Stanza(each.command, self.perform(each)) for each in trace.stanzas]
        return Trace(trace.head, stanzas)

    def perform(self, stanza: Stanza) -> list[str]:
        self.output = []
        line, *below = [line for line in stanza.command if not line.startswith("#")]
        timed = re.match(r"at (\S+) (.*)", line)
        if timed is not None:
            self._advance(millis(timed[1]))
            line = timed[2]
        verb, _, rest = line.partition(" ")
        words = Words.of(rest)
        self._do(verb, words, below)
        words.finish()
        return [part for line in self.output for part in _fold(line)]

    def _do(self, verb: str, words: Words, below: list[str]) -> None:
        commands = {
            "config": self._configure,
            "advance": self._on_advance,
            "set-clock": self._set_clock,
            "fail": self._fail,
            "crash": self._crash,
            "show": self._show,
            "shutdown": lambda _: self._decide(Shutdown()),
            "rebalance": lambda words: self._decide(RebalanceGroup(group_id=GroupId(words.next()))),
            "topics-deleted": lambda words: self._decide(trace_commands.topics_deleted(words)),
        }
        if verb in ("given", "load"):
            self._load(below)
            if verb == "given":
                self._crash(words)
            return
        assert not below, f"{verb} takes one line"
        if verb in commands:
            commands[verb](words)
        else:
            self._request(verb, words)

    # Requests

    def _request(self, verb: str, words: Words) -> None:
        ticket = Ticket(len(self.names) + 1)
        name = words.option("as") or self._name(verb, words)
        same_name = [each for each in self.open.values() if each.partition("#")[0] == name]
        self.names[ticket] = self.open[ticket] = (
            f"{name}#{len(same_name) + 1}" if same_name else name
        )
        if verb == "join":
            client = words.bare[1]
            self._decide(trace_commands.join(words, ticket, client, self._fresh(client, words)))
        else:
            self._decide(_REQUESTS[verb](words, ticket))

    def _name(self, verb: str, words: Words) -> str:
        named = words.bare[1:2] if verb in _NAMED_AFTER_MEMBER else []
        return next((each for each in named if "=" not in each), (words.bare or [verb])[0])

    def _fresh(self, client: str, words: Words) -> str:
        """Member ids are numbered by client: a-1, a-2. A join with a member id needs none."""
        if "member" in words.options or "fresh" in words.options:
            return ""
        self.clients[client] = self.clients.get(client, 0) + 1
        return f"{client}-{self.clients[client]}"

    def _decide(self, command: Command) -> None:
        self.is_started = True
        self._print(self.driver.decide(command))

    def _print(self, outcome: Outcome) -> None:
        driver = self.driver
        self.output += format_outcome(outcome, driver.now, driver.wall, self.names.__getitem__)
        for reply in outcome.replies:
            assert reply.ticket in self.open, f"{self.names[reply.ticket]} is answered twice"
            del self.open[reply.ticket]

    # Time

    def _on_advance(self, words: Words) -> None:
        text = words.next()
        until = millis(text.removeprefix("+"))
        self._advance(Millis(self.driver.now + until) if text.startswith("+") else until)

    def _set_clock(self, words: Words) -> None:
        text = words.next()
        by_ms = millis(text[1:])
        self.driver.wall_ahead_ms += by_ms if text.startswith("+") else -by_ms

    def _advance(self, until: Millis) -> None:
        assert until >= self.driver.now, f"the time is already {self.driver.now}"
        while True:
            deadline = min((at for at in self.driver.timers.values() if at <= until), default=None)
            if deadline is None:
                break
            for key, outcome in self.driver.advance(deadline):
                if not _is_idle(key, outcome):
                    self.output.append(f"fired {key} @{deadline}")
                    self._print(outcome)
        self.driver.advance(until)

    # Start and failures

    def _configure(self, words: Words) -> None:
        known = {each.name: each for each in fields(GroupConfig)}
        for word in words.rest():
            name, _, text = word.partition("=")
            name = name.replace(".", "_")
            if name == "offsets_retention_minutes":
                name, text = "offsets_retention_ms", f"{text}m"
            assert name in known, f"unknown setting {name}"
            self.driver.config = replace(self.driver.config, **{name: millis(text)})
        if not self.is_started:
            self.driver = Driver(self.driver.config, self.driver.now)

    def _fail(self, words: Words) -> None:
        error = words.next()
        self.driver.append_error = None if error == "off" else ErrorCode[error]

    def _drop_open_requests(self) -> None:
        self.is_started = True
        if self.open:
            self.output.append(f"lost {' '.join(self.open.values())}")
            self.open.clear()

    def _crash(self, _: Words) -> None:
        self._drop_open_requests()
        self._print(self.driver.crash())

    def _load(self, below: list[str]) -> None:
        self._drop_open_requests()
        self.driver.records += [trace_commands.record(line) for line in below]
        self.driver.coordinator = rebuilt(self.driver.records, self.driver.config)
        self.driver.timers.clear()

    # Inspection

    def _show(self, words: Words) -> None:
        shown = words.next()
        if shown == "timers":
            self.output += [f"{key} @{at}" for key, at in sorted(self.driver.timers.items())]
            return
        group = self.driver.coordinator.groups.get(GroupId(shown))
        self.output += (
            [f"{shown} unknown"] if group is None else format_group(group, self.names.__getitem__)
        )

    def find_unanswerable(self) -> list[str]:
        """Find open requests that would never be answered: not parked, or without a timer."""
        ends = (TimerKind.INITIAL_DELAY, TimerKind.JOIN, TimerKind.SYNC)
        parked = {
            ticket
            for group_id, group in self.driver.coordinator.groups.items()
            if any(TimerKey(kind, group_id) in self.driver.timers for kind in ends)
            for member in group.members.values()
            for ticket in (member.join_ticket, member.sync_ticket)
        }
        return [name for ticket, name in self.open.items() if ticket not in parked]


def _fold(line: str) -> Iterator[str]:
    """Wrap a long line with more indentation; quoted text is not split."""
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
    has_no_effect = not (outcome.events or outcome.records or outcome.replies)
    return key.kind is TimerKind.EXPIRY and has_no_effect
