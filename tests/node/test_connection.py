"""One connection: order of responses, limits, errors and disconnects."""

from collections.abc import Callable

from kohort.node.connection import Connection
from kohort.node.metrics import Metrics
from kohort.node.request import NO_RESPONSE, Request, SlicedWork
from kohort.node.request_memory import RequestMemory
from kohort.types import Generation, GroupId, MemberId
from kohort.wire.api.k03_metadata import MetadataResponse
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.envelope import encode_request
from kohort.wire.frame import FrameReader
from tests.node.broker_harness import fetch_request
from tests.node.fake_transport import FakeTransport

BEAT = HeartbeatRequest(group_id=GroupId("g"), generation_id=Generation(1), member_id=MemberId("m"))


class Hub:
    """An event loop that answers requests on command of the test."""

    request_max_bytes = 1000
    inflight_max = 5
    is_long = False
    iteration_started_at = 0.0

    def __init__(self) -> None:
        self.metrics = Metrics(10, ())
        self.request_memory = RequestMemory(1000)
        self.taken: list[Request] = []
        self.abandoned: list[Request] = []
        self.errors: list[Exception] = []
        self.on_request: Callable[[Request], None] = lambda _: None
        self.to_flush: list[Connection] = []
        self.to_resume: list[Connection] = []

    def handle(self, request: Request) -> bool:
        self.taken.append(request)
        self.on_request(request)
        return self.is_long

    def continue_later(self, request: Request, work: SlicedWork) -> None: ...

    def hold_back(self, request: Request) -> None: ...

    def find_items_max(self, api_key: int) -> int:
        return 100 if api_key == 12 else 1000

    def refuse_version(self, frame: bytes) -> bytes | None:
        return b"refused" if frame[:2] == b"\0\x12" else None

    def count_large_response(self, size: int) -> None: ...

    def flush_later(self, connection: Connection) -> None:
        self.to_flush.append(connection)

    def resume_later(self, connection: Connection) -> None:
        self.to_resume.append(connection)

    def abandon(self, request: Request) -> None:
        self.abandoned.append(request)

    def disconnected(self, connection: Connection) -> None: ...

    def report_internal_error(self, error: Exception, peer: str) -> None:
        assert peer == "127.0.0.1:1234"
        self.errors.append(error)


class Line:
    """A connection on a hub, and its client."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.transport = FakeTransport()
        self.connection = Connection(self.hub, self.transport, "127.0.0.1", 1234)

    def ask(self, *bodies: object) -> None:
        """All of them in one piece, numbered from 0, received in one iteration."""
        frames = [
            encode_request(body, 12 if body is not BEAT else 4, number, "c")
            for number, body in enumerate(bodies)
        ]
        self.receive(b"".join(frames))

    def receive(self, data: bytes | memoryview) -> None:
        self.connection.feed(data)
        self.connection.handle_requests()
        self.flush()

    def flush(self) -> None:
        to_flush, self.hub.to_flush = self.hub.to_flush, []
        for connection in to_flush:
            connection.flush(0.0)

    def iterate(self) -> None:
        """As the event loop: resume, then flush, until nothing is left to do."""
        self.flush()
        while self.hub.to_resume:
            to_resume, self.hub.to_resume = self.hub.to_resume, []
            for connection in to_resume:
                connection.handle_requests()
            self.flush()

    def answered(self) -> list[int]:
        """The correlation ids of the responses that were sent, in order."""
        frames = FrameReader().feed(self.transport.written)
        return [int.from_bytes(frame[:4]) for frame in frames]


def beat_back(request: Request) -> None:
    request.answer(HeartbeatResponse(error_code=0))


def test_responses_are_sent_in_the_order_of_their_requests() -> None:
    line = Line()
    line.ask(BEAT, BEAT, BEAT)
    first, second, third = line.hub.taken

    beat_back(third)
    beat_back(second)
    line.iterate()
    assert line.answered() == []

    beat_back(first)
    line.iterate()
    assert line.answered() == [0, 1, 2]


def test_response_is_sent_only_by_flush() -> None:
    line = Line()
    line.ask(BEAT)

    beat_back(line.hub.taken[0])

    assert line.answered() == []
    line.flush()
    assert line.answered() == [0]


def test_in_flight_requests_are_bounded() -> None:
    line = Line()
    line.ask(*[BEAT] * 8)
    assert len(line.hub.taken) == line.hub.inflight_max
    assert not line.transport.is_read_from

    for request in line.hub.taken[:3]:
        beat_back(request)
    line.iterate()
    assert len(line.hub.taken) == 8

    for request in line.hub.taken[3:]:
        beat_back(request)
    line.iterate()
    assert line.answered() == list(range(8))
    assert line.transport.is_read_from


def test_a_request_behind_a_fetch_is_handled_in_the_iteration_after_its_response() -> None:
    line = Line()
    line.ask(fetch_request(), fetch_request(), BEAT)
    assert len(line.hub.taken) == 1

    line.hub.taken[0].answer(NO_RESPONSE)
    assert len(line.hub.taken) == 1
    line.flush()
    assert len(line.hub.taken) == 1
    assert line.hub.to_resume == [line.connection]

    line.iterate()
    assert len(line.hub.taken) == 2


def test_requests_of_a_client_that_does_not_read_are_not_handled() -> None:
    line = Line()
    line.hub.on_request = beat_back
    line.connection.pause_writing()
    line.ask(*[BEAT] * 3)
    assert line.hub.taken == []
    assert not line.transport.is_read_from

    line.connection.resume_writing()
    line.iterate()
    assert line.answered() == [0, 1, 2]
    assert line.transport.is_read_from


def test_a_long_pipeline_is_handled_over_several_iterations() -> None:
    line = Line()
    line.hub.inflight_max = 10_000
    line.hub.on_request = beat_back

    line.ask(*[BEAT] * 1000)
    handled_at_first = len(line.hub.taken)
    line.iterate()

    assert handled_at_first < 1000
    assert line.answered() == list(range(1000))


def test_unsupported_version_is_answered_in_order() -> None:
    line = Line()
    tomorrow = b"\0\x12\0\x63" + bytes(4) + b"\xff\xff"
    frame = len(tomorrow).to_bytes(4) + tomorrow
    line.receive(encode_request(BEAT, 4, 0, "c") + frame)
    assert line.transport.written == b""

    beat_back(line.hub.taken[0])
    line.iterate()
    assert line.transport.written.endswith(b"refused")


def test_a_response_that_cannot_be_encoded_closes_the_connection() -> None:
    line = Line()
    line.ask(BEAT)

    line.hub.taken[0].answer(HeartbeatResponse(error_code=2**40))
    line.iterate()
    assert line.transport.is_gone


def test_an_internal_error_is_reported_and_closes_the_connection() -> None:
    line = Line()
    line.ask(BEAT)
    error = KeyError(3)

    line.connection.fail(error)

    assert line.hub.errors == [error]
    assert line.transport.is_gone


def test_a_client_that_disconnects_abandons_what_is_in_flight() -> None:
    line = Line()
    line.ask(BEAT, BEAT)
    answered, waiting = line.hub.taken
    beat_back(answered)
    line.iterate()

    line.connection.lost()

    assert line.hub.abandoned == [waiting]
    beat_back(waiting)
    line.iterate()
    assert line.answered() == [0]


def test_malformed_frame_stops_all_responses() -> None:
    line = Line()
    line.ask(BEAT)
    line.receive(b"\xff\xff\xff\xff")
    assert line.transport.is_gone

    line.hub.taken[0].answer(MetadataResponse())
    line.iterate()
    assert line.transport.written == b""


def feed_and_reuse(line: Line, piece: bytes) -> None:
    """Through a buffer that is used again afterwards, as sockets do."""
    buffer = bytearray(piece)
    line.connection.feed(memoryview(buffer))
    buffer[:] = bytes(len(piece))
    line.connection.handle_requests()


def test_requests_do_not_reference_the_read_buffer() -> None:
    line = Line()
    frames = [encode_request(BEAT, 4, number, "c") for number in range(3)]

    for frame in frames:
        feed_and_reuse(line, frame)
    for request in line.hub.taken:
        beat_back(request)
    line.iterate()

    assert [request.body for request in line.hub.taken] == [BEAT] * 3
    assert line.answered() == [0, 1, 2]


def test_partial_frames_do_not_reference_the_read_buffer() -> None:
    line = Line()
    line.hub.inflight_max = 100
    line.hub.on_request = beat_back
    frames = [encode_request(BEAT, 4, number, "c" * 400) for number in range(20)]
    stream = b"".join(frames)
    cut = len(stream) - 100

    feed_and_reuse(line, stream[:cut])
    feed_and_reuse(line, stream[cut:])
    line.iterate()

    assert line.answered() == list(range(20))
