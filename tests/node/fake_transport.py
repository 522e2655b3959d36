"""Connections without sockets, for tests of the event loop."""

from kohort.node.connection import Connection
from kohort.node.deadline_clock import TICK_MS
from kohort.node.loop import NodeLoop
from kohort.node.request import Request
from kohort.types import Millis
from kohort.wire.frame import FrameReader
from tests.node.broker_harness import BrokerHarness, HarnessClock


class FakeTransport:
    """A transport that records the written bytes."""

    def __init__(self) -> None:
        self.written = b""
        self.is_read_from = True
        self.is_gone = False

    def write(self, data: bytes) -> None:
        self.written += bytes(data)

    def pause_reading(self) -> None:
        self.is_read_from = False

    def resume_reading(self) -> None:
        self.is_read_from = True

    def is_closing(self) -> bool:
        return self.is_gone

    def close(self) -> None:
        self.is_gone = True

    abort = close


class FakeNodeTransport:
    """Sends nothing, because a FakeTransport has no buffer."""

    def send(self) -> None: ...


class RecordingLoop(NodeLoop):
    """The event loop of a harness; it records the handled requests."""

    def __init__(self, harness: BrokerHarness) -> None:
        super().__init__(harness.broker, FakeNodeTransport(), HarnessClock(harness))
        self._harness = harness
        self.taken: list[Request] = []

    def handle(self, request: Request) -> bool:
        self.taken.append(request)
        return super().handle(request)

    def run(self, ms: int) -> None:
        """Advance the clock of the harness, with a tick of the loop at least every 250 ms."""
        for passed in range(0, ms, TICK_MS):
            self._harness.now = Millis(self._harness.now + min(TICK_MS, ms - passed))
            self.timers_due()
            self.iterate()


class FakeClient:
    """A client with one connection."""

    def __init__(self, door: RecordingLoop) -> None:
        self._door = door
        self._transport = FakeTransport()
        connection = door.connect(self._transport, "127.0.0.1", 1234)
        assert connection is not None
        self._connection: Connection = connection

    def ask(self, frame: bytes) -> bytes:
        """Feed a frame, run one iteration, and return the written bytes."""
        self._transport.written = b""
        self._connection.feed(frame)
        self._door.iterate([self._connection])
        assert not self._transport.is_gone, "disconnected"
        return self._transport.written

    def frames(self) -> list[bytes]:
        """Return the response frames since the last call."""
        return FrameReader().feed(self._transport.written)
