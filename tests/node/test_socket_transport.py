"""Sockets on one selector: all ready ones are read before responses are sent."""

import asyncio
import contextlib
import errno
import select
import socket
from collections.abc import Callable
from typing import Any

import pytest

from kohort.node.socket_transport import Channel, SocketTransport
from tests.wait import run_loop_iteration, wait_until_async

PIECE = 1 << 20


class Peer:
    """A connection that records what it receives."""

    def __init__(
        self, received: list[str], channel: "Channel[Peer]", address: tuple[str, int]
    ) -> None:
        self.received = received
        self.transport = channel
        self.address = address
        self.on_piece: Callable[[bytes], None] = lambda _: None
        self.on_iteration: Callable[[], None] = lambda: None
        self.received.append("made")

    def feed(self, data: memoryview) -> None:
        piece = bytes(data)
        self.received.append(piece.decode() if len(piece) < 20 else f"{len(piece)} bytes")
        self.on_piece(piece)

    def fail(self, error: Exception) -> None:
        self.received.append(str(error))
        self.transport.abort()

    def close(self, reason: str) -> None:
        self.received.append(reason)
        self.transport.abort()

    def lost(self) -> None:
        self.received.append("lost")

    def pause_writing(self) -> None:
        self.received.append("pause")

    def resume_writing(self) -> None:
        self.received.append("resume")

    def respond(self) -> None:
        self.received.append("response")
        self.transport.write(b"answer")


class Inn:
    """Listening sockets, their connections, and the order of events.

    As the server does, it lets every batch of connections respond, then sends.
    """

    def __init__(self, unsent_bytes_max: int) -> None:
        self.received: list[str] = []
        self.peers: list[Peer] = []
        self.callers: list[socket.socket] = []
        loop = asyncio.get_running_loop()
        self.sockets: SocketTransport[Peer] = SocketTransport(loop, self._connect, unsent_bytes_max)
        self.port = self.sockets.listen("127.0.0.1", 0)
        self.is_full = False
        loop.add_reader(self.sockets.fileno(), self._on_ready)

    def _connect(self, channel: "Channel[Peer]", host: str, port: int) -> Peer | None:
        if self.is_full:
            return None
        self.peers.append(Peer(self.received, channel, (host, port)))
        return self.peers[-1]

    def _on_ready(self) -> None:
        for batch in self.sockets.read_ready():
            for peer in batch:
                peer.on_iteration()
            self.sockets.send()

    async def call(self) -> socket.socket:
        count = len(self.peers)
        client = socket.create_connection(("127.0.0.1", self.port))
        self.callers.append(client)
        await wait_until_async(lambda: len(self.peers) > count)
        return client

    async def close(self) -> None:
        for client in self.callers:
            client.close()
        asyncio.get_running_loop().remove_reader(self.sockets.fileno())
        self.sockets.close()
        await run_loop_iteration()


def hosted(play: Callable[[Inn], Any], *, unsent_bytes_max: int = 1 << 30) -> None:
    async def host() -> None:
        inn = Inn(unsent_bytes_max)
        try:
            await play(inn)
        finally:
            await inn.close()

    asyncio.run(host())


def read(client: socket.socket, count: int) -> bytes:
    client.settimeout(20)
    return client.recv(count, socket.MSG_WAITALL)


def test_all_ready_sockets_are_read_before_any_response_is_sent() -> None:
    async def play(inn: Inn) -> None:
        callers = [await inn.call() for _ in range(3)]
        assert [peer.address for peer in inn.peers] == [each.getsockname() for each in callers]
        inn.received.clear()
        for peer in inn.peers:
            peer.on_iteration = peer.respond
        for client in callers:
            client.sendall(b"question")

        await wait_until_async(lambda: len(inn.received) == 6)

        assert inn.received == ["question"] * 3 + ["response"] * 3
        assert [read(client, 6) for client in callers] == [b"answer"] * 3

    hosted(play)


def test_an_internal_error_in_one_connection_affects_no_other() -> None:
    async def play(inn: Inn) -> None:
        bad, *good = [await inn.call() for _ in range(3)]
        inn.peers[0].on_piece = break_over
        for peer in inn.peers[1:]:
            peer.on_iteration = peer.respond
        inn.received.clear()
        for client in (bad, *good):
            client.sendall(b"question")

        await wait_until_async(lambda: "lost" in inn.received)

        assert "no way to read question" in inn.received
        assert read(bad, 1) == b""
        assert [read(client, 6) for client in good] == [b"answer"] * 2

    hosted(play)


def break_over(piece: bytes) -> None:
    raise OSError(f"no way to read {piece.decode()}")


def test_a_connection_that_is_refused_is_closed() -> None:
    async def play(inn: Inn) -> None:
        inn.is_full = True
        client = socket.create_connection(("127.0.0.1", inn.port))
        inn.callers.append(client)

        await wait_until_async(
            lambda: not inn.sockets.channels and select.select([client], [], [], 0)[0]
        )

        assert read(client, 1) == b""

    hosted(play)


def test_data_written_between_iterations_is_sent_by_the_next_send() -> None:
    async def play(inn: Inn) -> None:
        client = await inn.call()
        inn.peers[0].transport.write(b"by ")
        inn.peers[0].transport.write(b"itself")

        inn.sockets.send()

        assert read(client, 9) == b"by itself"

    hosted(play)


def test_slow_reader_gets_everything() -> None:
    async def play(inn: Inn) -> None:
        client = await inn.call()
        peer = inn.peers[0]
        sent = 0
        while "pause" not in inn.received:
            peer.transport.write(b"x" * PIECE)
            inn.sockets.send()
            sent += PIECE
            await run_loop_iteration()
        # Requests are still read meanwhile, and writes wait.
        client.sendall(b"hello")
        await wait_until_async(lambda: "hello" in inn.received)
        peer.transport.write(b"last")
        inn.sockets.send()
        client.settimeout(0)
        received = b""

        while len(received) < sent + 4:
            try:
                received += client.recv(PIECE)
            except BlockingIOError:
                await run_loop_iteration()

        assert received == b"x" * sent + b"last"
        assert inn.received == ["made", "pause", "hello", "resume"]

    hosted(play)


@pytest.mark.parametrize("is_aborted", [False, True])
def test_data_written_before_close_arrives(*, is_aborted: bool) -> None:
    async def play(inn: Inn) -> None:
        client = await inn.call()
        peer = inn.peers[0]
        peer.transport.write(b"goodbye")
        end = peer.transport.abort if is_aborted else peer.transport.close

        end()
        end()
        peer.transport.write(b"too late")

        assert peer.transport.is_closing()
        await wait_until_async(lambda: "lost" in inn.received)
        assert read(client, 100) == b"goodbye"
        await wait_until_async(lambda: inn.received.count("lost") == 1)
        assert inn.sockets.channels == set()

    hosted(play)


def test_half_closed_client_gets_its_responses_and_then_eof() -> None:
    async def play(inn: Inn) -> None:
        client = await inn.call()
        peer = inn.peers[0]
        while "pause" not in inn.received:
            peer.transport.write(b"x" * PIECE)
            inn.sockets.send()
            await run_loop_iteration()
        peer.transport.close()
        assert "lost" not in inn.received
        client.settimeout(0)

        async with asyncio.timeout(20):
            while True:
                try:
                    if not client.recv(PIECE):
                        break
                except BlockingIOError:
                    await run_loop_iteration()

        await wait_until_async(lambda: inn.received.count("lost") == 1)

    hosted(play)


def test_disconnect_is_detected() -> None:
    async def play(inn: Inn) -> None:
        polite, rude = await inn.call(), await inn.call()
        polite.close()
        rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        rude.close()

        await wait_until_async(lambda: inn.received.count("lost") == 2)

    hosted(play)


def test_paused_connection_is_not_read() -> None:
    async def play(inn: Inn) -> None:
        client, other = await inn.call(), await inn.call()
        inn.peers[0].transport.pause_reading()
        inn.received.clear()
        client.sendall(b"unheard")
        other.sendall(b"received")
        await wait_until_async(lambda: bool(inn.received))
        assert inn.received == ["received"]

        inn.peers[0].transport.resume_reading()
        await wait_until_async(lambda: len(inn.received) == 2)

        assert inn.received == ["received", "unheard"]

    hosted(play)


def test_large_write_arrives_complete() -> None:
    async def play(inn: Inn) -> None:
        client = await inn.call()
        inn.received.clear()
        pieces: list[bytes] = []
        inn.peers[0].on_piece = pieces.append
        sent = bytes(range(256)) * 4096
        client.settimeout(0)
        left = memoryview(sent)

        while sum(map(len, pieces)) < len(sent):
            if left:
                with contextlib.suppress(BlockingIOError):
                    left = left[client.send(left) :]
            await run_loop_iteration()

        assert b"".join(pieces) == sent

    hosted(play)


def test_accept_is_retried_after_too_many_open_files(
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
        monkeypatch.setattr("kohort.node.socket_transport._ACCEPT_RETRY_S", 0.01)

        client = await inn.call()

        client.sendall(b"here")
        await wait_until_async(lambda: "here" in inn.received)
        assert refusals == []

    hosted(play)


def test_occupied_port_raises_an_error() -> None:
    async def play(inn: Inn) -> None:
        other: SocketTransport[Peer] = SocketTransport(asyncio.get_running_loop(), lambda *_: None)
        with pytest.raises(OSError, match="in use"):
            other.listen("127.0.0.1", inn.port)
        other.close()

    hosted(play)


def test_no_connection_is_accepted_after_stop_listening() -> None:
    async def play(inn: Inn) -> None:
        await inn.call()
        inn.sockets.stop_listening()

        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", inn.port))

    hosted(play)


def test_client_with_the_most_unread_bytes_is_disconnected() -> None:
    async def play(inn: Inn) -> None:
        await inn.call()
        await inn.call()
        slow, slower = inn.peers
        for peer, count in ((slow, 20), (slower, 30)):
            peer.transport.write(b"x" * count * PIECE)

        inn.sockets.send()
        await run_loop_iteration()

        assert [each.endswith("bytes are unsent") for each in inn.received].count(True) == 1
        assert slow.transport in inn.sockets.channels
        assert slower.transport not in inn.sockets.channels
        assert 0 < inn.sockets.unsent_bytes <= 20 * PIECE

    hosted(play, unsent_bytes_max=30 * PIECE)
