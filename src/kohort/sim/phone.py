"""One client's connection to the node: questions go out, answers come back in their order.

A connection is made when there is something to say. Whoever waits too long hangs up, as Kafka's
clients do, and everything that was under way is lost with it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from kohort.sim.life import Life, Reminder
from kohort.sim.network import Link, Network
from kohort.wire.api.k00_produce import ProduceRequest
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k19_create_topics import CreateTopicsRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest
from kohort.wire.api.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of

_VERSIONS: Final[dict[type, tuple[int, int]]] = {
    ProduceRequest: (3, 12),
    FetchRequest: (4, 12),
    ListOffsetsRequest: (1, 11),
    MetadataRequest: (4, 13),
    OffsetCommitRequest: (7, 9),
    OffsetFetchRequest: (8, 9),
    FindCoordinatorRequest: (4, 6),
    JoinGroupRequest: (5, 9),
    HeartbeatRequest: (3, 4),
    LeaveGroupRequest: (3, 5),
    SyncGroupRequest: (3, 5),
    CreateTopicsRequest: (2, 7),
    InitProducerIdRequest: (0, 6),
    CreatePartitionsRequest: (0, 3),
    IncrementalAlterConfigsRequest: (0, 1),
}
"""The oldest and the newest version a client here speaks: topics by name, members with reasons."""


class Loss(StrEnum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"
    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed-out"


OnAnswer = Callable[[Any], None]
OnLoss = Callable[[Loss], None]


class Listener(Protocol):
    """Whoever checks that answers match questions."""

    def asked(self, link: Link, correlation_id: int) -> None: ...

    def answered(self, link: Link, correlation_id: int) -> None: ...

    def unanswered(self, link: Link) -> None: ...


@dataclass(slots=True, eq=False, kw_only=True)
class _Call:
    api_key: int
    version: int
    correlation_id: int
    payload: bytes
    on_answer: OnAnswer
    on_loss: OnLoss
    timer: Reminder | None = None


class Phone:
    def __init__(
        self,
        life: Life,
        network: Network,
        listener: Listener,
        *,
        owner: str,
        client_id: str,
        is_old: bool = False,
    ) -> None:
        self._life = life
        self._network = network
        self._listener = listener
        self._owner = owner
        self._client_id = client_id
        self._version_at = 0 if is_old else 1
        self._link: Link | None = None
        self._receiver: _Receiver | None = None
        self._reader = FrameReader()
        self._is_connected = False
        self._calls: deque[_Call] = deque()
        self._last_correlation_id = 0

    @property
    def is_idle(self) -> bool:
        return not self._calls

    def ask(self, body: object, timeout_ms: int, on_answer: OnAnswer, on_loss: OnLoss) -> None:
        """Exactly one of the two is called, later; unless the process ends before."""
        self._last_correlation_id += 1
        version = _VERSIONS[type(body)][self._version_at]
        payload = encode_request(body, version, self._last_correlation_id, self._client_id)
        call = _Call(
            api_key=schema_of(type(body)).api_key or 0,
            version=version,
            correlation_id=self._last_correlation_id,
            payload=payload,
            on_answer=on_answer,
            on_loss=on_loss,
        )
        call.timer = self._life.later(timeout_ms, lambda: self._give_up(call))
        self._calls.append(call)
        if self._link is None:
            self._reader = FrameReader()
            self._receiver = _Receiver(self, self._life)
            self._link = self._network.connect(self._owner, self._receiver)
        elif self._is_connected:
            self._say(self._link, call)

    def hang_up(self) -> None:
        """Nobody waits for anything any more."""
        for call in self._calls:
            _stop(call)
        self._calls.clear()
        if self._link is not None:
            self._drop(self._link).hang_up()

    def vanish(self) -> None:
        if self._link is not None:
            self._drop(self._link).vanish()

    # What the network says

    def connected(self, receiver: "_Receiver") -> None:
        if receiver is not self._receiver or self._link is None:
            return
        self._is_connected = True
        for call in tuple(self._calls):
            self._say(self._link, call)

    def data_received(self, receiver: "_Receiver", data: bytes) -> None:
        if receiver is not self._receiver:
            return
        for frame in self._reader.feed(data):
            # An answer may lead to hanging up; what else has arrived is then nobody's.
            if self._link is not None and receiver is self._receiver:
                self._take(self._link, frame)

    def lost(self, receiver: "_Receiver") -> None:
        link = self._link
        if receiver is self._receiver and link is not None:
            was_connected = self._is_connected
            self._drop(link)
            self._lose_all(Loss.DISCONNECTED if was_connected else Loss.UNREACHABLE)

    def _say(self, link: Link, call: _Call) -> None:
        self._listener.asked(link, call.correlation_id)
        link.call(call.payload)

    def _take(self, link: Link, frame: bytes) -> None:
        self._listener.answered(link, int.from_bytes(frame[:4], "big"))
        call = self._calls.popleft()
        _stop(call)
        _, body = decode_response(frame, call.api_key, call.version)
        call.on_answer(body)

    def _give_up(self, late: _Call) -> None:
        if late not in self._calls:
            return
        was_connected = self._is_connected
        if self._link is not None:
            self._drop(self._link).hang_up()
        self._calls.remove(late)
        rest, self._calls = self._calls, deque()
        late.on_loss(Loss.TIMED_OUT if was_connected else Loss.UNREACHABLE)
        self._lose(rest, Loss.DISCONNECTED)

    def _lose_all(self, loss: Loss) -> None:
        lost, self._calls = self._calls, deque()
        self._lose(lost, loss)

    def _lose(self, calls: deque[_Call], loss: Loss) -> None:
        for call in calls:
            _stop(call)
            call.on_loss(loss)

    def _drop(self, link: Link) -> Link:
        self._listener.unanswered(link)
        self._link = self._receiver = None
        self._is_connected = False
        return link


class _Receiver:
    """The phone's end of one link: what an older link still has to say is not heard."""

    def __init__(self, phone: Phone, life: Life) -> None:
        self._phone = phone
        self._life = life

    def connected(self) -> None:
        self._life.enter(lambda: self._phone.connected(self))

    def data_received(self, data: bytes) -> None:
        self._life.enter(lambda: self._phone.data_received(self, data))

    def connection_lost(self) -> None:
        self._life.enter(lambda: self._phone.lost(self))


def _stop(call: _Call) -> None:
    if call.timer is not None:
        call.timer.cancel()
