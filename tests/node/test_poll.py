"""Sockets on their poll: all are read before any is answered, and nobody is lost on the way."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from typing import Any

import pytest

from kohort.node.sockets import Sockets
from tests.waiting import let_it_turn, reach

PIECE = 1 << 20


class Guest:
    """Remembers what it is told; what it does about it is up to the test."""

    def __init__(self, heard: list[str]) -> None:
        self.heard = heard
        self.on_piece: Callable[[bytes], None] = lambda _: None
        self.late: Callable[[Callable[[], None]], None] = lambda _: None
        self.errors: list[Exception | None] = []

    def answer(self, _: bytes) -> None:
        self.transport.write(b"answer")
        self.late(lambda: self.heard.append("end"))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.peer = transport.get_extra_info("peername")
        self.heard.append("made")

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append("lost")
        self.errors.append(exc)

    def data_received(self, data: bytes | memoryview) -> None:
        piece = bytes(data)
        self.heard.append(piece.decode() if len(piece) < 20 else f"{len(piece)} bytes")
        self.on_piece(piece)

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")


class Inn:
    """Sockets that listen, who came, and what was heard in which order."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.guests: list[Guest] = []
        self.callers: list[socket.socket] = []
        self.sockets = Sockets(asyncio.get_running_loop(), self._welcome)
        self.port = self.sockets.listen("127.0.0.1", 0)

    def _welcome(self) -> Guest:
        self.guests.append(Guest(self.heard))
        return self.guests[-1]

    async def call(self) -> socket.socket:
        count = len(self.guests)
        caller = socket.create_connection(("127.0.0.1", self.port))
        self.callers.append(caller)
        await reach(lambda: len(self.guests) > count)
        return caller

    async def close(self) -> None:
        for caller in self.callers:
            caller.close()
        self.sockets.close()
        await let_it_turn()


def hosted(play: Callable[[Inn], Any]) -> None:
    async def host() -> None:
        inn = Inn()
        try:
            await play(inn)
        finally:
            await inn.close()

    asyncio.run(host())


def read(caller: socket.socket, count: int) -> bytes:
    caller.settimeout(20)
    return caller.recv(count, socket.MSG_WAITALL)


def test_all_that_came_is_taken_up_before_anybody_is_answered() -> None:
    async def play(inn: Inn) -> None:
        callers = [await inn.call() for _ in range(3)]
        assert [guest.peer for guest in inn.guests] == [each.getsockname() for each in callers]
        inn.heard.clear()
        for guest in inn.guests:
            guest.on_piece = guest.answer
            guest.late = inn.sockets.soon
        for caller in callers:
            caller.sendall(b"question")

        await reach(lambda: len(inn.heard) == 6)

        assert inn.heard == ["question"] * 3 + ["end"] * 3
        assert [read(caller, 6) for caller in callers] == [b"answer"] * 3

    hosted(play)


def test_an_error_over_what_one_says_ends_its_connection_and_no_other() -> None:
    async def play(inn: Inn) -> None:
        told: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        bad, *good = [await inn.call() for _ in range(3)]
        inn.guests[0].on_piece = break_over
        for guest in inn.guests[1:]:
            guest.on_piece = guest.answer
            guest.late = inn.sockets.soon
        inn.heard.clear()
        for caller in (bad, *good):
            caller.sendall(b"question")

        await reach(lambda: "lost" in inn.heard)

        assert [str(error) for error in told] == ["no way to take up question"]
        assert inn.heard == ["question"] * 3 + ["end"] * 2 + ["lost"]
        assert read(bad, 1) == b""
        assert [read(caller, 6) for caller in good] == [b"answer"] * 2

    hosted(play)


def break_over(piece: bytes) -> None:
    raise OSError(f"no way to take up {piece.decode()}")


def test_an_error_at_the_end_of_a_turn_keeps_nobody_from_an_answer() -> None:
    async def play(inn: Inn) -> None:
        told: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        caller = await inn.call()
        guest = inn.guests[0]

        def break_then_answer(piece: bytes) -> None:
            inn.sockets.soon(lambda: break_over(piece))
            inn.sockets.soon(lambda: guest.answer(piece))

        guest.on_piece = break_then_answer
        caller.sendall(b"question")

        await reach(lambda: bool(told))

        assert read(caller, 6) == b"answer"

    hosted(play)


def test_what_may_come_afterwards_is_done_when_the_answers_are_sent() -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        guest = inn.guests[0]
        received: list[bytes] = []

        def answer_and_listen(piece: bytes) -> None:
            inn.sockets.afterwards(lambda: received.append(read(caller, 6)))
            inn.sockets.soon(lambda: guest.answer(piece))

        guest.on_piece = answer_and_listen
        caller.sendall(b"question")

        await reach(lambda: bool(received))

        assert received == [b"answer"]

    hosted(play)


def test_what_is_written_between_turns_is_sent_too() -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        inn.guests[0].transport.write(b"by ")
        inn.guests[0].transport.write(b"itself")
        inn.sockets.soon(lambda: inn.heard.append("soon"))

        await reach(lambda: "soon" in inn.heard)

        assert read(caller, 9) == b"by itself"

    hosted(play)


def test_who_reads_slowly_is_waited_for_and_gets_everything() -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        guest = inn.guests[0]
        sent = 0
        while "pause" not in inn.heard:
            guest.transport.write(b"x" * PIECE)
            sent += PIECE
            await let_it_turn()
        # What is asked meanwhile is still heard, and what is written still waits its turn.
        caller.sendall(b"hello")
        await reach(lambda: "hello" in inn.heard)
        guest.transport.write(b"last")
        caller.settimeout(0)
        received = b""

        while len(received) < sent + 4:
            try:
                received += caller.recv(PIECE)
            except BlockingIOError:
                await let_it_turn()

        assert received == b"x" * sent + b"last"
        assert inn.heard == ["made", "pause", "hello", "resume"]

    hosted(play)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_what_was_written_before_the_end_arrives(*, is_aborted: bool) -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        guest = inn.guests[0]
        guest.transport.write(b"goodbye")
        end = guest.transport.abort if is_aborted else guest.transport.close

        end()
        end()
        guest.transport.write(b"too late")

        assert guest.transport.is_closing()
        await reach(lambda: "lost" in inn.heard)
        assert read(caller, 100) == b"goodbye"
        assert guest.errors == [None]
        assert inn.sockets.open == set()

    hosted(play)


def test_whoever_closes_gets_what_is_still_on_its_way_and_then_the_end() -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        guest = inn.guests[0]
        while "pause" not in inn.heard:
            guest.transport.write(b"x" * PIECE)
            await let_it_turn()
        guest.transport.close()
        assert "lost" not in inn.heard
        caller.settimeout(0)

        async with asyncio.timeout(20):
            while True:
                try:
                    if not caller.recv(PIECE):
                        break
                except BlockingIOError:
                    await let_it_turn()

        assert guest.errors == [None]

    hosted(play)


def test_a_caller_that_hangs_up_is_noticed() -> None:
    async def play(inn: Inn) -> None:
        polite, rude = await inn.call(), await inn.call()
        polite.close()
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        rude.close()

        await reach(lambda: inn.heard.count("lost") == 2)

        assert inn.guests[0].errors == [None]
        (reset,) = inn.guests[1].errors
        assert isinstance(reset, ConnectionResetError)

    hosted(play)


def test_nothing_is_read_from_whoever_is_paused() -> None:
    async def play(inn: Inn) -> None:
        caller, other = await inn.call(), await inn.call()
        inn.guests[0].transport.pause_reading()
        inn.heard.clear()
        caller.sendall(b"unheard")
        other.sendall(b"heard")
        await reach(lambda: bool(inn.heard))
        assert inn.heard == ["heard"]

        inn.guests[0].transport.resume_reading()
        await reach(lambda: len(inn.heard) == 2)

        assert inn.heard == ["heard", "unheard"]

    hosted(play)


def test_a_large_piece_arrives_whole() -> None:
    async def play(inn: Inn) -> None:
        caller = await inn.call()
        inn.heard.clear()
        pieces: list[bytes] = []
        inn.guests[0].on_piece = pieces.append
        sent = bytes(range(256)) * 4096
        caller.settimeout(0)
        left = memoryview(sent)

        while sum(map(len, pieces)) < len(sent):
            if left:
                with contextlib.suppress(BlockingIOError):
                    left = left[caller.send(left) :]
            await let_it_turn()

        assert b"".join(pieces) == sent

    hosted(play)


def test_without_room_for_more_connections_those_that_wait_are_let_in_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play(inn: Inn) -> None:
        accept = socket.socket.accept
        refusals = [OSError(errno.EMFILE, "Too many open files")]

        def refuse(listener: socket.socket) -> Any:
            if refusals:
                raise refusals.pop()
            return accept(listener)

        monkeypatch.setattr(socket.socket, "accept", refuse)
        monkeypatch.setattr("kohort.node.sockets._UNTIL_NEXT_TRY_S", 0.01)

        caller = await inn.call()

        caller.sendall(b"here")
        await reach(lambda: "here" in inn.heard)
        assert refusals == []

    hosted(play)


def test_a_port_that_is_taken_is_told() -> None:
    async def play(inn: Inn) -> None:
        other = Sockets(asyncio.get_running_loop(), lambda: Guest([]))
        with pytest.raises(OSError, match="in use"):
            other.listen("127.0.0.1", inn.port)
        other.close()

    hosted(play)


def test_nobody_is_let_in_once_it_no_longer_listens() -> None:
    async def play(inn: Inn) -> None:
        await inn.call()
        inn.sockets.stop_listening()

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", inn.port))

    hosted(play)
