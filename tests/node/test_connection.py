"""A connection: answers in order, and a client that does not keep up is not listened to."""

import asyncio
from collections.abc import Callable

from kohort.node.connection import Connection
from kohort.node.metrics import Figures
from kohort.node.request import Request
from kohort.types import Generation, GroupId, MemberId
from kohort.wire.api.k03_metadata import MetadataResponse
from kohort.wire.api.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.wire.envelope import encode_request
from kohort.wire.frame import FrameReader
from tests.node.asking import fetch_request
from tests.node.wiring import Transport

BEAT = HeartbeatRequest(group_id=GroupId("g"), generation_id=Generation(1), member_id=MemberId("m"))


class Hub:
    """A node that answers when the test says so."""

    request_max_bytes = 1000
    inflight_max = 5

    def __init__(self) -> None:
        self.figures = Figures(10, ())
        self.taken: list[Request] = []
        self.on_request: Callable[[Request], None] = lambda _: None

    def handle(self, request: Request) -> None:
        self.taken.append(request)
        self.on_request(request)

    def handle_unsupported(self, frame: bytes) -> bytes | None:
        return b"refused" if frame[:2] == b"\0\x12" else None

    def joined(self, connection: Connection) -> bool:  # noqa: ARG002  # every one may
        return True

    def left(self, connection: Connection) -> None:
        """Nobody is counted."""


class Line:
    """A connection between a hub and somebody who asks."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.transport = Transport()
        self.connection = Connection(self.hub)
        self.connection.connection_made(self.transport)

    def ask(self, *bodies: object) -> None:
        """All of them in one piece, numbered from 0."""
        frames = [
            encode_request(body, 12 if body is not BEAT else 4, number, "c")
            for number, body in enumerate(bodies)
        ]
        self.connection.data_received(b"".join(frames))

    def answered(self) -> list[int]:
        """The numbers of the questions that were answered, in order."""
        frames = FrameReader().feed(self.transport.written)
        return [int.from_bytes(frame[:4]) for frame in frames]


def beat_back(request: Request) -> None:
    request.answer(HeartbeatResponse(error_code=0))


def test_answers_leave_in_the_order_of_the_questions() -> None:
    line = Line()
    line.ask(BEAT, BEAT, BEAT)
    first, second, third = line.hub.taken

    beat_back(third)
    beat_back(second)
    assert line.answered() == []

    beat_back(first)
    assert line.answered() == [0, 1, 2]


def test_no_more_is_taken_up_than_may_be_under_way() -> None:
    line = Line()
    line.ask(*[BEAT] * 8)
    assert len(line.hub.taken) == line.hub.inflight_max
    assert not line.transport.is_read_from

    for request in line.hub.taken[:3]:
        beat_back(request)
    assert len(line.hub.taken) == 8

    for request in line.hub.taken[3:]:
        beat_back(request)
    assert line.answered() == list(range(8))
    assert line.transport.is_read_from


def test_nothing_is_taken_up_behind_a_fetch() -> None:
    line = Line()
    line.ask(fetch_request(), fetch_request(), BEAT)
    assert len(line.hub.taken) == 1

    line.hub.taken[0].answer_nothing()
    assert len(line.hub.taken) == 2


def test_no_answer_is_made_for_a_client_that_does_not_read() -> None:
    line = Line()
    line.hub.on_request = beat_back
    line.connection.pause_writing()
    line.ask(*[BEAT] * 3)
    assert line.hub.taken == []
    assert not line.transport.is_read_from

    line.connection.resume_writing()
    assert line.answered() == [0, 1, 2]
    assert line.transport.is_read_from


def test_a_long_pipeline_lets_others_have_their_turn() -> None:
    async def play() -> None:
        line = Line()
        line.hub.on_request = beat_back
        line.ask(*[BEAT] * 1000)
        taken_at_first = len(line.hub.taken)
        for _ in range(10):
            turn = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turn.set_result, None)
            await turn

        assert taken_at_first < 1000
        assert line.answered() == list(range(1000))

    asyncio.run(play())


def test_a_refused_version_waits_for_its_turn_too() -> None:
    line = Line()
    tomorrow = b"\0\x12\0\x63" + bytes(4) + b"\xff\xff"
    frame = len(tomorrow).to_bytes(4) + tomorrow
    line.connection.data_received(encode_request(BEAT, 4, 0, "c") + frame)
    assert line.transport.written == b""

    beat_back(line.hub.taken[0])
    assert line.transport.written.endswith(b"refused")


def test_an_answer_that_cannot_be_written_ends_the_connection() -> None:
    line = Line()
    line.ask(BEAT)

    line.hub.taken[0].answer(HeartbeatResponse(error_code=2**40))
    assert line.transport.is_gone


def test_whoever_hangs_up_is_not_waited_for() -> None:
    line = Line()
    given_up: list[str] = []
    line.ask(BEAT, BEAT)
    answered, waiting = line.hub.taken
    answered.on_abandoned = lambda: given_up.append("answered")
    waiting.on_abandoned = lambda: given_up.append("waiting")
    beat_back(answered)

    line.connection.connection_lost(None)
    assert given_up == ["waiting"]
    beat_back(waiting)


def test_a_client_that_is_cut_off_is_answered_no_more() -> None:
    line = Line()
    line.ask(BEAT)
    line.connection.data_received(b"\xff\xff\xff\xff")
    assert line.transport.is_gone

    line.hub.taken[0].answer(MetadataResponse())
    assert line.transport.written == b""


def put(line: Line, piece: bytes) -> None:
    """Through room that is written over afterwards, as sockets do."""
    room = bytearray(piece)
    line.connection.data_received(memoryview(room))
    room[:] = bytes(len(piece))


def test_what_was_read_outlives_the_room_it_was_read_to() -> None:
    line = Line()
    frames = [encode_request(BEAT, 4, number, "c") for number in range(3)]

    for frame in frames:
        put(line, frame)
    for request in line.hub.taken:
        beat_back(request)

    assert [request.body for request in line.hub.taken] == [BEAT] * 3
    assert line.answered() == [0, 1, 2]


def test_large_pieces_outlive_the_room_too() -> None:
    line = Line()
    line.hub.on_request = beat_back
    frames = [encode_request(BEAT, 4, number, "c" * 400) for number in range(20)]
    stream = b"".join(frames)
    cut = len(stream) - 100
    assert cut > 4096

    put(line, stream[:cut])
    put(line, stream[cut:])

    assert line.answered() == list(range(20))
