"""Reads a trace, plays it to a member, and writes down everything the member said.

A file opens with one sentence, which is also its name; then come stanzas: what happens, `----`,
what was said, an empty line. `pytest tests/client --rewrite` writes what is said anew.

    # A member that polls for the first time looks for its coordinator.

    subscribe t1
    ----
    watch t1

    at 5s poll
    ----
    send find#1 to anyone g
    state unjoined -> preparing

Time stands still but for `at TIME event` and `advance TIME` or `advance +TIME`. When the member's
deadline comes it is woken, and what it then says stands below `woken @TIME`.

    member [assignors=range,cooperative-sticky] [instance=] [rack=] [auto-commit=5s] [session=]
        [heartbeat=] [poll=] [timeout=]     how it is made, if not by default: range, no auto-commit
    given PARTITIONS [member=m2] [gen=1] [protocol=range] [leader TOPIC=COUNT...]
        all that must happen for it to be stable and hold these, without a word
    subscribe TOPIC,TOPIC | unsubscribe | poll | returned | close | wake | rejoin REASON
    positions TOPIC:PARTITION=OFFSET...     in answer to tell-positions; `-` for none
    commit QUESTION TOPIC:PARTITION=OFFSET...
    committed QUESTION TOPIC:0,1
    withdraw QUESTION
    seen TOPIC=COUNT...
    answer NAME ...       `answering.py` has the words for each request
    lose NAME unreachable|disconnected|timed-out
    show

The requests of each kind are numbered: join#1, join#2; `join` alone is the latest.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from kohort.client.assignors import get_assignor
from kohort.client.member import events
from kohort.client.member.effects import Send
from kohort.client.member.events import Event, Loss, Question
from kohort.client.member.machine import Member, MemberSettings
from kohort.types import GroupId, InstanceId, Millis, Topic
from tests.client.answering import answer
from tests.client.spelling import partitions, position, tell_partitions, tell_topics, topics
from tests.client.telling import KINDS, tell
from tests.client.words import Words
from tests.coordinator.spelling import millis
from tests.coordinator.tracing import Stanza, Trace

FOLDER = Path(__file__).parent / "traces"
_COLUMNS_MAX = 100
_NO_JITTER = 0.5


@dataclass
class Player:
    """Plays one trace. What is said piles up in `said` until the stanza is over."""

    now: Millis = Millis(0)
    said: list[str] = field(default_factory=list)
    requests: dict[str, Send] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.member = _made(Words())

    def play(self, trace: Trace) -> Trace:
        """The same trace, with what the member says now."""
        said = [Stanza(each.command, self.perform(each)) for each in trace.stanzas]
        return Trace(trace.head, said)

    def perform(self, stanza: Stanza) -> list[str]:
        self.said = []
        (line,) = [line for line in stanza.command if not line.startswith("#")]
        timed = re.match(r"at (\S+) (.*)", line)
        if timed is not None:
            self._advance(millis(timed[1]))
            line = timed[2]
        verb, _, rest = line.partition(" ")
        words = Words.of(rest)
        if verb == "member":
            self.member = _made(words)
        elif verb == "given":
            self._make_stable(words)
        elif verb == "advance":
            self._on_advance(words.next())
        elif verb == "show":
            self.said.append(self._shown())
        else:
            self.feed(self._event(verb, words))
        words.finish()
        return [part for line in self.said for part in _fold(line)]

    def _on_advance(self, text: str) -> None:
        until = millis(text.removeprefix("+"))
        self._advance(Millis(self.now + until) if text.startswith("+") else until)

    def _advance(self, until: Millis) -> None:
        assert until >= self.now, f"it is {self.now} already"
        while True:
            due = self.member.deadline()
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            before = len(self.said)
            self.feed(events.Woken())
            if len(self.said) > before:
                self.said.insert(before, f"woken @{self.now}")
            after = self.member.deadline()
            assert after is None or after > self.now, "it would never sleep again"
        self.now = until

    def feed(self, event: Event) -> None:
        before = self.member.state
        for effect in self.member.handle(event, self.now):
            name = ""
            if isinstance(effect, Send):
                kind = KINDS[type(effect.body)]
                number = sum(each.startswith(f"{kind}#") for each in self.requests) + 1
                name = f"{kind}#{number}"
                self.requests[name] = effect
            self.said.append(tell(effect, name))
        if self.member.state is not before:
            self.said.append(f"state {before} -> {self.member.state}")

    def _make_stable(self, words: Words) -> None:
        held, member_id = words.next(), words.option("member") or "m2"
        generation, protocol = words.option("gen") or "1", words.option("protocol") or "range"
        is_leader, wanted = "leader" in words.bare, tell_topics(at.topic for at in partitions(held))
        counts = [each for each in words.rest() if each != "leader"]
        joined = f"gen={generation} member={member_id} protocol={protocol}"
        others = f"{member_id}[{wanted}]" if is_leader else "leader=m1"
        for line in (
            f"subscribe {wanted}",
            "poll",
            "answer find b1",
            f"answer join {joined} {others}",
            *([f"seen {' '.join(counts)}"] if is_leader else []),
            f"answer sync {held}",
            "poll",
            "returned",
        ):
            self.perform(Stanza([line], []))
        self.said = []

    def _event(self, verb: str, words: Words) -> Event:
        plain: dict[str, Event] = {
            "unsubscribe": events.Unsubscribed(),
            "poll": events.Polled(),
            "returned": events.CallbackReturned(),
            "close": events.Closed(),
            "wake": events.Woken(),
        }
        if verb in plain:
            return plain[verb]
        if verb in ("answer", "lose"):
            return self._heard(verb, words)
        if verb in ("commit", "committed", "withdraw"):
            return _question(verb, words)
        match verb:
            case "subscribe":
                return events.Subscribed(topics=topics(words.next()))
            case "positions":
                told = [position(each) for each in words.rest() if each != "-"]
                return events.PositionsTold(positions=dict(told))
            case "rejoin":
                return events.RejoinAsked(reason=words.next())
            case "seen":
                counts = (each.partition("=") for each in words.rest() if each != "-")
                return events.TopicsSeen(partitions={Topic(t): int(n) for t, _, n in counts})
            case _:
                raise AssertionError(f"what is {verb!r}?")

    def _heard(self, verb: str, words: Words) -> Event:
        name = words.next()
        if "#" not in name:
            name = [each for each in self.requests if each.startswith(f"{name}#")][-1]
        send = self.requests[name]
        if verb == "lose":
            return events.Unanswered(number=send.number, loss=Loss(words.next()))
        return events.Answered(number=send.number, body=answer(send.body, words))

    def _shown(self) -> str:
        member = self.member
        found = "-" if member.coordinator is None else member.coordinator.host
        return (
            f"{member.state} gen={member.generation} member={member.member_id or '-'} "
            f"held={tell_partitions(member.held)} coordinator={found} deadline={member.deadline()}"
        )


def _question(verb: str, words: Words) -> Event:
    question = Question(int(words.next()))
    if verb == "commit":
        told = dict(position(each) for each in words.rest() if each != "-")
        return events.CommitAsked(question=question, positions=told)
    if verb == "committed":
        return events.CommittedAsked(question=question, partitions=partitions(words.next()))
    return events.Withdrawn(question=question)


def _made(words: Words) -> Member:
    instance, rack = words.option("instance"), words.option("rack")
    auto_commit = words.option("auto-commit")
    named = words.option("assignors") or "range"
    settings = MemberSettings(
        group_id=GroupId("g"),
        instance_id=None if instance is None else InstanceId(instance),
        client_rack=rack,
        assignors=tuple(get_assignor(name) for name in named.split(",")),
        enable_auto_commit=auto_commit is not None,
        auto_commit_interval_ms=millis(auto_commit or "5s"),
        session_timeout_ms=millis(words.option("session") or "45s"),
        heartbeat_interval_ms=millis(words.option("heartbeat") or "3s"),
        max_poll_interval_ms=millis(words.option("poll") or "5m"),
        request_timeout_ms=millis(words.option("timeout") or "30s"),
    )
    return Member(settings, lambda: _NO_JITTER)


def _fold(line: str) -> list[str]:
    """A line that is too long goes on below, further in."""
    return textwrap.wrap(
        line,
        _COLUMNS_MAX,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
