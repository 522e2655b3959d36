"""A client's connection to the node: the real protocol session over a simulated link.

It connects when there is a request to send. A request without a response by its deadline closes the
connection, and all requests that are in flight fail with it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from kohort.protocol.errors import Disconnected, ProtocolError, RequestTimedOut
from kohort.protocol.session import PendingRequest, Session
from kohort.protocol.versions import VERSIONS, VersionRange
from kohort.sim.network import Link, SimulatedNetwork
from kohort.sim.process import ClientProcess, ProcessTimer
from kohort.types import Millis, value
from kohort.wire.batch import iter_records, split
from kohort.wire.frame import FrameReader

OLDEST_VERSIONS: Final[Mapping[int, VersionRange]] = {
    key: (oldest, oldest) for key, (oldest, _) in VERSIONS.items()
}

FETCH_BY_NAME: Final = 12
"""From version 13 on, Fetch has topic ids."""

OnResponse = Callable[[Any], None]
OnFailure = Callable[[ProtocolError], None]


class RequestObserver(Protocol):
    """Checks at the wire that responses match requests."""

    def request_sent(self, link: Link, correlation_id: int) -> None: ...

    def response_received(self, link: Link, correlation_id: int) -> None: ...

    def connection_closed(self, link: Link) -> None: ...


@value
class _Callbacks:
    on_response: OnResponse
    on_failure: OnFailure


class ClientConnection:
    def __init__(
        self,
        process: ClientProcess,
        network: SimulatedNetwork,
        listener: RequestObserver,
        *,
        owner: str,
        is_old: bool = False,
    ) -> None:
        self._process = process
        self._network = network
        self._listener = listener
        self._owner = owner
        self._versions = OLDEST_VERSIONS if is_old else VERSIONS
        self._attached: _Attached | None = None
        self._timer: tuple[Millis, ProcessTimer] | None = None

    def send(
        self,
        body: object,
        timeout_ms: int,
        on_response: OnResponse,
        on_failure: OnFailure,
        *,
        version_max: int | None = None,
    ) -> None:
        """Exactly one callback is called later; none if the process ends before."""
        deadline = Millis(self._now + timeout_ms)
        if self._attached is None:
            session = Session(self._owner, ready_by=deadline, versions=self._versions)
            self._attached = _Attached(self, self._process, session)
            self._attached.link = self._network.connect(self._owner, self._attached)
        self._attached.session.send(
            PendingRequest(
                body=body,
                deadline=deadline,
                version_max=version_max,
                context=_Callbacks(on_response=on_response, on_failure=on_failure),
            )
        )
        self._flush(self._attached)

    def close(self) -> None:
        """Close the connection; no callback is called any more."""
        if self._attached is not None:
            self._detach(self._attached).close()

    def vanish(self) -> None:
        """The host is gone without closing the connection."""
        if self._attached is not None:
            self._detach(self._attached).vanish()

    # Events of the link

    def connected(self, attached: "_Attached") -> None:
        if attached is self._attached:
            attached.session.connected()
            self._flush(attached)

    def data_received(self, attached: "_Attached", data: bytes) -> None:
        if attached is not self._attached:
            return
        for frame in attached.frames.feed(data):
            self._listener.response_received(attached.link, int.from_bytes(frame[:4]))
        try:
            for request, response in _receive(attached.session, data):
                # A callback may close the connection; ignore the rest of the data then.
                if attached is self._attached:
                    _complete(request, response)
        except ProtocolError as error:
            self._fail(attached, [], error, is_closing=True)
        if attached is self._attached:
            self._flush(attached)

    def lost(self, attached: "_Attached") -> None:
        if attached is self._attached:
            self._fail(attached, [], attached.session.failure("connection lost"))

    # Sending and deadlines

    @property
    def _now(self) -> Millis:
        return Millis(self._network.scheduler.now_ms)

    def _flush(self, attached: "_Attached") -> None:
        data = bytes(attached.session.outgoing)
        attached.session.outgoing.clear()
        for frame in FrameReader().feed(data) if data else ():
            self._listener.request_sent(attached.link, int.from_bytes(frame[4:8]))
        if data:
            attached.link.send_to_server(data)
        self._arm(attached)

    def _arm(self, attached: "_Attached") -> None:
        deadline = attached.session.next_deadline()
        if self._timer is not None and self._timer[0] != deadline:
            self._timer[1].cancel()
            self._timer = None
        if deadline is not None and self._timer is None:
            delay_ms = deadline - self._now
            self._timer = deadline, self._process.later(delay_ms, lambda: self._expire(attached))

    def _expire(self, attached: "_Attached") -> None:
        self._timer = None
        if attached is not self._attached:
            return
        try:
            late = attached.session.expired(self._now)
        except ProtocolError as error:
            self._fail(attached, [], error, is_closing=True)
            return
        if late:
            rest = Disconnected("an earlier request on the connection timed out")
            self._fail(attached, late, rest, is_closing=True)
        else:
            self._arm(attached)

    def _fail(
        self,
        attached: "_Attached",
        late: list[PendingRequest],
        error: ProtocolError,
        *,
        is_closing: bool = False,
    ) -> None:
        requests = attached.session.pending()
        link = self._detach(attached)
        if is_closing:
            link.close()
        for request in requests:
            request.context.on_failure(
                RequestTimedOut("no response in time") if request in late else error
            )

    def _detach(self, attached: "_Attached") -> Link:
        self._listener.connection_closed(attached.link)
        attached.session.close()
        self._attached = None
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None
        return attached.link


class _Attached:
    """The connection's end of one link; events of an older link are ignored."""

    link: Link

    def __init__(
        self, connection: ClientConnection, process: ClientProcess, session: Session
    ) -> None:
        self._connection = connection
        self._process = process
        self.session = session
        self.frames = FrameReader()

    def connected(self) -> None:
        self._process.enter(lambda: self._connection.connected(self))

    def data_received(self, data: bytes) -> None:
        self._process.enter(lambda: self._connection.data_received(self, data))

    def connection_lost(self) -> None:
        self._process.enter(lambda: self._connection.lost(self))


def _receive(session: Session, data: bytes) -> Any:
    while data:
        with session.receive_space() as space:
            count = min(len(space), len(data))
            space[:count] = data[:count]
        data = data[count:]
        yield from session.received(count)


def _complete(request: PendingRequest, response: Any) -> None:
    if isinstance(response, ProtocolError):
        request.context.on_failure(response)
    else:
        request.context.on_response(response)


def read_records(data: bytes) -> list[tuple[int, str]]:
    """Offsets and values of a fetch response, decoded without the consumer's code."""
    return [
        (record.offset, (record.value or b"").decode())
        for position, _ in split(data, truncated_ok=True)
        for record in iter_records(data, position)
    ]
