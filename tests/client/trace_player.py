"""Reads a trace, plays it to a member, and writes down the effects.

A file opens with one sentence, which is also its name. Then come stanzas: a command, `----`, the
effects, an empty line. `pytest tests/client --rewrite` updates the effects.

    # A member that polls for the first time searches its coordinator.

    subscribe t1
    ----
    watch t1

    at 5s poll
    ----
    send find#1 to any g
    state unjoined -> preparing

Time passes only with `at TIME command` and `advance TIME` or `advance +TIME`. The member gets
DeadlineReached at its deadline; the effects follow `deadline @TIME`.

    member [assignors=range,cooperative-sticky] [instance=] [rack=] [auto-commit=5s] [session=]
        [heartbeat=] [poll=] [timeout=]     settings; default: range, no auto-commit
    given PARTITIONS [member=m2] [gen=1] [protocol=range] [leader TOPIC=COUNT...]
        make the member stable with these partitions, without printing effects
    subscribe TOPIC,TOPIC | unsubscribe | poll | returned | close | deadline | rejoin REASON
    positions TOPIC:PARTITION=OFFSET...     the reply to request-positions; `-` for none
    commit CALL TOPIC:PARTITION=OFFSET...
    fetch-committed CALL TOPIC:0,1
    cancel CALL
    topics TOPIC=COUNT...
    response NAME ...       trace_responses.py describes the words of each response
    fail NAME unreachable|disconnected|timed-out
    show

The requests of each kind are numbered: join#1, join#2; `join` alone is the latest.
"""

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from kohort.assignors import get_assignor
from kohort.client.member import member_events
from kohort.client.member.effects import SendRequest
from kohort.client.member.member import Member, MemberSettings
from kohort.client.member.member_events import CallId, MemberEvent, RequestFailure
from kohort.types import GroupId, InstanceId, Millis, Topic
from tests.client.trace_effects import KINDS, format_effect
from tests.client.trace_line import TraceWords
from tests.client.trace_responses import response
from tests.client.trace_syntax import format_partitions, format_topics, partitions, position, topics
from tests.coordinator.trace_player import Stanza, Trace
from tests.coordinator.trace_syntax import millis

FOLDER = Path(__file__).parent / "traces"
_COLUMNS_MAX = 100
_NO_JITTER = 0.5


@dataclass
class Player:
    """Plays one trace. `lines` collects the effects of the current stanza."""

    now: Millis = Millis(0)
    lines: list[str] = field(default_factory=list)
    requests: dict[str, SendRequest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.member = _new_member(TraceWords())

    def play(self, trace: Trace) -> Trace:
        """The same trace with the current effects."""
        played = [Stanza(each.command, self.perform(each)) for each in trace.stanzas]
        return Trace(trace.head, played)

    def perform(self, stanza: Stanza) -> list[str]:
        self.lines = []
        (line,) = [line for line in stanza.command if not line.startswith("#")]
        timed = re.match(r"at (\S+) (.*)", line)
        if timed is not None:
            self._advance(millis(timed[1]))
            line = timed[2]
        verb, _, rest = line.partition(" ")
        words = TraceWords.of(rest)
        if verb == "member":
            self.member = _new_member(words)
        elif verb == "given":
            self._make_stable(words)
        elif verb == "advance":
            self._on_advance(words.next())
        elif verb == "show":
            self.lines.append(self._show())
        else:
            self.feed(self._event(verb, words))
        words.finish()
        return [part for line in self.lines for part in _fold(line)]

    def _on_advance(self, text: str) -> None:
        until = millis(text.removeprefix("+"))
        self._advance(Millis(self.now + until) if text.startswith("+") else until)

    def _advance(self, until: Millis) -> None:
        assert until >= self.now, f"the time is {self.now} already"
        while True:
            due = self.member.deadline()
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            before = len(self.lines)
            self.feed(member_events.DeadlineReached())
            if len(self.lines) > before:
                self.lines.insert(before, f"deadline @{self.now}")
            after = self.member.deadline()
            assert after is None or after > self.now, "the deadline must move forward"
        self.now = until

    def feed(self, event: MemberEvent) -> None:
        before = self.member.state
        for effect in self.member.handle(event, self.now):
            name = ""
            if isinstance(effect, SendRequest):
                kind = KINDS[type(effect.body)]
                number = sum(each.startswith(f"{kind}#") for each in self.requests) + 1
                name = f"{kind}#{number}"
                self.requests[name] = effect
            self.lines.append(format_effect(effect, name))
        if self.member.state is not before:
            self.lines.append(f"state {before} -> {self.member.state}")

    def _make_stable(self, words: TraceWords) -> None:
        owned, member_id = words.next(), words.option("member") or "m2"
        generation, protocol = words.option("gen") or "1", words.option("protocol") or "range"
        is_leader, wanted = (
            "leader" in words.bare,
            format_topics(at.topic for at in partitions(owned)),
        )
        counts = [each for each in words.rest() if each != "leader"]
        joined = f"gen={generation} member={member_id} protocol={protocol}"
        others = f"{member_id}[{wanted}]" if is_leader else "leader=m1"
        for line in (
            f"subscribe {wanted}",
            "poll",
            "response find b1",
            f"response join {joined} {others}",
            *([f"topics {' '.join(counts)}"] if is_leader else []),
            f"response sync {owned}",
            "poll",
            "returned",
        ):
            self.perform(Stanza([line], []))
        self.lines = []

    def _event(self, verb: str, words: TraceWords) -> MemberEvent:
        plain: dict[str, MemberEvent] = {
            "unsubscribe": member_events.Unsubscribed(),
            "poll": member_events.Polled(),
            "returned": member_events.CallbackReturned(),
            "close": member_events.CloseRequested(),
            "deadline": member_events.DeadlineReached(),
        }
        if verb in plain:
            return plain[verb]
        if verb in ("response", "fail"):
            return self._response(verb, words)
        if verb in ("commit", "fetch-committed", "cancel"):
            return _call(verb, words)
        match verb:
            case "subscribe":
                return member_events.Subscribed(topics=topics(words.next()))
            case "positions":
                offsets = [position(each) for each in words.rest() if each != "-"]
                return member_events.PositionsReported(positions=dict(offsets))
            case "rejoin":
                return member_events.RejoinRequested(reason=words.next())
            case "topics":
                counts = (each.partition("=") for each in words.rest() if each != "-")
                return member_events.TopicsUpdated(
                    partitions={Topic(t): int(n) for t, _, n in counts}
                )
            case _:
                raise AssertionError(f"unknown command {verb!r}")

    def _response(self, verb: str, words: TraceWords) -> MemberEvent:
        name = words.next()
        if "#" not in name:
            name = [each for each in self.requests if each.startswith(f"{name}#")][-1]
        send = self.requests[name]
        if verb == "fail":
            return member_events.RequestFailed(
                request_id=send.request_id, failure=RequestFailure(words.next())
            )
        return member_events.ResponseReceived(
            request_id=send.request_id, body=response(send.body, words)
        )

    def _show(self) -> str:
        member = self.member
        found = "-" if member.coordinator is None else member.coordinator.host
        return (
            f"{member.state} gen={member.generation} member={member.member_id or '-'} "
            f"owned={format_partitions(member.owned)} coordinator={found} "
            f"deadline={member.deadline()}"
        )


def _call(verb: str, words: TraceWords) -> MemberEvent:
    call_id = CallId(int(words.next()))
    if verb == "commit":
        offsets = dict(position(each) for each in words.rest() if each != "-")
        return member_events.CommitRequested(call_id=call_id, positions=offsets)
    if verb == "fetch-committed":
        return member_events.CommittedRequested(
            call_id=call_id, partitions=partitions(words.next())
        )
    return member_events.CallCancelled(call_id=call_id)


def _new_member(words: TraceWords) -> Member:
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
    """Wrap a long line; continuation lines are indented."""
    return textwrap.wrap(
        line,
        _COLUMNS_MAX,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
