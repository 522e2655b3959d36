"""Carries out the rules of faults: on requests, before they are handled, and on their responses.

`dispatch` asks the table for each request while it has a rule about requests. A request that a rule
has chosen gets another handler, another responder, or both. The newest rule comes first, and only
one rule acts on a request.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from errno import ENOSPC
from os import strerror
from types import GeneratorType
from typing import Final, Protocol, assert_never
from uuid import uuid4

from kohort.log.os_disk import OsDisk
from kohort.node import dispatch
from kohort.node.broker import Broker, Handler
from kohort.node.control import fault_rules as rules
from kohort.node.control.fault_rules import FaultRule
from kohort.node.control.request_scope import plain_body
from kohort.node.request import PARKED, Disconnect, Request, Responder, SlicedWork
from kohort.types import GroupId, Millis

_REMOVED_MAX: Final = 1_000
"""Removed rules whose count can still be read; bounds memory."""

DelayWork = Callable[[float, Request, SlicedWork], None]
"""Continues the work of a request after that many seconds of real time."""


class SlowSyncs(Protocol):
    take_delay: Callable[[], float] | None
    """Returns how many seconds longer the next sync takes."""


class FaultTable:
    """The rules of one node. They are not stored."""

    def __init__(
        self, broker: Broker, disk: OsDisk, delay_work: DelayWork, syncs: SlowSyncs | None
    ) -> None:
        """Without `syncs`, nothing that clients wait for is synced."""
        self._broker = broker
        self._disk = disk
        self._write = disk.write
        self._delay_work = delay_work
        self._syncs = syncs
        self._rules: dict[str, FaultRule] = {}
        self._removed: dict[str, FaultRule] = {}
        self._node_token = uuid4().hex[:8]
        """Ids differ from those before a restart, so that no client removes another rule."""
        self._last_number = 0

    # Rules

    @property
    def has_syncs(self) -> bool:
        return self._syncs is not None

    def __iter__(self) -> Iterator[FaultRule]:
        return iter(self._rules.values())

    def next_id(self) -> str:
        self._last_number += 1
        return f"{self._last_number}-{self._node_token}"

    def add(self, rule: FaultRule) -> None:
        self._rules[rule.rule_id] = rule
        self._update()

    def find(self, rule_id: str) -> FaultRule | None:
        """Also a rule that was removed."""
        return self._rules.get(rule_id) or self._removed.get(rule_id)

    def remove(self, rule_id: str) -> None:
        rule = self._rules.pop(rule_id, None)
        if rule is None:
            return
        rule.deactivate()
        self._removed[rule_id] = rule
        while len(self._removed) > _REMOVED_MAX:
            del self._removed[next(iter(self._removed))]
        self._update()

    def clear(self) -> None:
        for rule_id in tuple(self._rules):
            self.remove(rule_id)

    def _update(self) -> None:
        """Install what the rules need, and nothing where there is no rule."""
        active = self._rules.values()
        self._broker.faults = self if any(rule.match is not None for rule in active) else None
        full = [rule for rule in active if isinstance(rule.action, rules.FillDisk)]
        self._disk.write = _FullDiskWrite(full[-1]) if full else self._write
        is_slow = any(isinstance(rule.action, rules.SlowSync) for rule in active)
        if self._syncs is not None:
            self._syncs.take_delay = self._take_sync_delay if is_slow else None

    def _take_sync_delay(self) -> float:
        seconds = 0.0
        for rule in self._rules.values():
            if isinstance(rule.action, rules.SlowSync):
                rule.note()
                seconds += rule.action.seconds
        return seconds

    # Requests

    def replace_handler(self, request: Request, handler: Handler) -> Handler:
        """The handler of a request, or what a rule puts in its place."""
        rule = self._find_rule(request)
        if rule is None:
            return handler
        action = rule.action
        match action:
            case rules.AnswerError():
                rule.note()
                return _ErrorHandler(rule, action)
            case rules.Delay():
                rule.note()
                return _LateHandler(handler, action.seconds, self._delay_work)
            case rules.Drop(is_after=False):
                rule.note()
                return _DropHandler(rule)
            case rules.Silence(is_after=False):
                rule.note()
                request.connection.hold_back(request)
                return _ignore
            case rules.Silence():
                request.connection.hold_back(request)
                request.connection = _FaultyResponder(rule, request.connection)
                return handler
            case rules.Drop() | rules.Truncate():
                request.connection = _FaultyResponder(rule, request.connection)
                return handler
            case rules.FillDisk() | rules.SlowSync():
                raise AssertionError(f"{rule.name} matches no request")
            case _:
                assert_never(action)

    def _find_rule(self, request: Request) -> FaultRule | None:
        api_key, body = request.header.request_api_key, plain_body(request.body)
        topics = self._broker.topics
        for rule in reversed(self._rules.values()):
            match = rule.match
            if match is None:
                continue
            is_match = match.matches(api_key, request.client_id, body, topics, self._find_leader)
            if is_match and rule.choose():
                return rule
        return None

    def _find_leader(self, group_id: str) -> str | None:
        group = self._broker.coordinator.groups.get(GroupId(group_id))
        return None if group is None else group.leader


class _FullDiskWrite:
    """In place of `os.write`."""

    def __init__(self, rule: FaultRule) -> None:
        self._rule = rule

    def __call__(self, _: int, __: object) -> int:
        self._rule.note()
        raise OSError(ENOSPC, strerror(ENOSPC))


# In place of handlers


class _ErrorHandler:
    def __init__(self, rule: FaultRule, action: rules.AnswerError) -> None:
        self._rule = rule
        self._action = action

    def __call__(self, broker: Broker, request: Request, _: Millis) -> object:
        # It imports the messages of all APIs.
        from kohort.node.error_responses import make_error_response  # noqa: PLC0415
        from kohort.node.handlers.k03_metadata import describe_brokers  # noqa: PLC0415
        from kohort.wire.api.k03_metadata import MetadataResponse  # noqa: PLC0415

        key = request.header.request_api_key
        error = self._action.error_by_api.get(key, self._action.error)
        response = make_error_response(
            key, plain_body(request.body), request.version, error, f"injected by {self._rule.name}"
        )
        if response is None:
            return Disconnect(self._rule.name)
        if isinstance(response, MetadataResponse):
            # Clients ignore metadata without brokers, and so would not see the error.
            return replace(response, brokers=describe_brokers(broker), controller_id=broker.node_id)
        return response


class _LateHandler:
    """Handles the request later, also if its client has disconnected by then, as Kafka does with a
    request that it has received."""

    def __init__(self, handler: Handler, seconds: float, delay_work: DelayWork) -> None:
        self._handler = handler
        self._seconds = seconds
        self._delay_work = delay_work

    def __call__(self, broker: Broker, request: Request, _: Millis) -> object:
        request.must_finish = True
        request.connection.hold_back(request)
        work = self._handle(broker, request)
        next(work)
        self._delay_work(self._seconds, request, work)
        return PARKED

    def _handle(self, broker: Broker, request: Request) -> SlicedWork:
        now = yield
        answer = self._handler(broker, request, now)
        if type(answer) is GeneratorType:
            answer = yield from dispatch.encode_at_end(request, answer)
        return answer


class _DropHandler:
    def __init__(self, rule: FaultRule) -> None:
        self._rule = rule

    def __call__(self, _: Broker, __: Request, ___: Millis) -> object:
        return Disconnect(self._rule.name)


def _ignore(_: Broker, __: Request, ___: Millis) -> object:
    return PARKED


# In place of the connection that is answered


class _FaultyResponder:
    """Changes the response of one request, now or when it is no longer parked."""

    def __init__(self, rule: FaultRule, connection: Responder) -> None:
        self._rule = rule
        self._connection = connection
        self.close = connection.close
        self.continue_later = connection.continue_later
        self.fail = connection.fail
        self.hold_back = connection.hold_back

    def answered(self, request: Request) -> None:
        request.connection = self._connection
        rule = self._rule
        if not rule.is_active:
            self._connection.answered(request)
            return
        rule.note()
        if isinstance(rule.action, rules.Silence):
            request.is_answered = False
            return
        size = rule.action.size if isinstance(rule.action, rules.Truncate) else 0
        request.payload = request.payload[:size]
        request.disconnect_reason = rule.name
        self._connection.answered(request)
