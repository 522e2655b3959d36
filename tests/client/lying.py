"""Brokers that stand before a real one and lie, stall or hang up when they are told to.

Each listens at an address of its own and passes on what it hears, one request after the other as a
broker does. What comes back names these brokers as the cluster, so clients stay with them. A trick
is played on the next requests of an API, as often as was said.
"""

import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from kohort.node.broker import Address
from kohort.types import BrokerId
from kohort.wire.api.k03_metadata import MetadataResponse, MetadataResponseBroker
from kohort.wire.api.k10_find_coordinator import FindCoordinatorResponse
from kohort.wire.envelope import decode_request, decode_response, encode_response

FIRST_ID = 1
"""The real broker's number; the liars count on from it."""


class Silence(Exception):
    """The connection is to be closed."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request, and what the real broker says to it."""

    client: socket.socket
    request: Any
    correlation_id: int
    version: int
    answer: Any
    broker_id: int

    def frame(self) -> bytes:
        return encode_response(self.answer, self.version, self.correlation_id)


Trick = Callable[[Exchange], None]
"""Sends whatever it likes to the client."""


# Tricks


def tell(exchange: Exchange) -> None:
    """The truth."""
    exchange.client.sendall(exchange.frame())


def hang_up(_: Exchange) -> None:
    raise Silence


def cut(exchange: Exchange) -> None:
    """Half an answer."""
    frame = exchange.frame()
    exchange.client.sendall(frame[: len(frame) // 2])
    raise Silence


def garble(exchange: Exchange) -> None:
    """An answer of the right size that says nothing."""
    frame = exchange.frame()
    exchange.client.sendall(frame[:8] + b"\xa5" * (len(frame) - 8))


def misnumber(exchange: Exchange) -> None:
    """The answer to another question."""
    exchange.correlation_id += 1000
    tell(exchange)


def boast(exchange: Exchange) -> None:
    """More bytes than anybody would hold."""
    exchange.client.sendall(b"\x7f\xff\xff\xff" + exchange.frame())


def repeat(exchange: Exchange) -> None:
    """The answer twice."""
    exchange.client.sendall(exchange.frame() * 2)


def swallow(_: Exchange) -> None:
    """Nothing, though the connection stays."""


def alter(change: Callable[[Any], Any]) -> Trick:
    """Something else than the truth, well put."""

    def trick(exchange: Exchange) -> None:
        exchange.answer = change(exchange.answer)
        tell(exchange)

    return trick


def hold(gate: threading.Event) -> Trick:
    """The truth, but not before the gate opens."""

    def trick(exchange: Exchange) -> None:
        gate.wait(60)
        tell(exchange)

    return trick


class Liars:
    """One or more brokers in front of a real one."""

    def __init__(self, upstream: Address, count: int = 1) -> None:
        self._upstream = upstream
        self._tricks: dict[type, list[Trick]] = defaultdict(list)
        self._always: dict[type, Trick] = {}
        self._lock = threading.Lock()
        self.heard: list[tuple[int, Any]] = []
        """Which broker was asked what."""
        self._open: set[socket.socket] = set()
        self._is_closing = False
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.leads: Callable[[int], int] = lambda partition: FIRST_ID + partition % count
        """Which of them leads a partition."""
        self.leader_epoch: int | None = None
        """Of all partitions, if it is not the real one."""
        for number, listener in enumerate(self._listeners):
            self._spawn(self._accept, listener, FIRST_ID + number)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in self._listeners)

    def play(self, request: type, *tricks: Trick) -> None:
        """On the next requests of this kind, one each."""
        with self._lock:
            self._tricks[request] += tricks

    def always(self, request: type, trick: Trick) -> None:
        with self._lock:
            self._always[request] = trick

    def relent(self) -> None:
        """From now on, the truth."""
        with self._lock:
            self._tricks.clear()
            self._always.clear()

    @property
    def is_spent(self) -> bool:
        with self._lock:
            return not any(self._tricks.values())

    def asked(self, request: type) -> list[tuple[int, Any]]:
        with self._lock:
            return [(broker, body) for broker, body in self.heard if type(body) is request]

    def close(self) -> None:
        self._is_closing = True
        for each in (*self._listeners, *list(self._open)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    # Serving

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _accept(self, listener: socket.socket, broker_id: int) -> None:
        while not self._is_closing:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self._open.add(client)
            self._spawn(self._serve, client, broker_id)

    def _serve(self, client: socket.socket, broker_id: int) -> None:
        address = (self._upstream.host, self._upstream.port)
        with client, socket.create_connection(address) as upstream:
            self._open.add(upstream)
            with suppress(OSError, Silence, EOFError):
                while True:
                    self._pass_on(client, upstream, broker_id)
            self._open -= {client, upstream}

    def _pass_on(self, client: socket.socket, upstream: socket.socket, broker_id: int) -> None:
        frame = _receive(client)
        header, request = decode_request(frame)
        with self._lock:
            self.heard.append((broker_id, request))
        upstream.sendall(len(frame).to_bytes(4) + frame)
        version = header.request_api_version
        _, answer = decode_response(_receive(upstream), header.request_api_key, version)
        exchange = Exchange(
            client=client,
            request=request,
            correlation_id=header.correlation_id,
            version=version,
            answer=self._rename(answer),
            broker_id=broker_id,
        )
        self._choose(type(request))(exchange)

    def _choose(self, request: type) -> Trick:
        with self._lock:
            if self._tricks[request]:
                return self._tricks[request].pop(0)
            return self._always.get(request, tell)

    def _rename(self, answer: Any) -> Any:
        ports = [each.getsockname()[1] for each in self._listeners]
        if isinstance(answer, MetadataResponse):
            brokers = tuple(
                MetadataResponseBroker(node_id=BrokerId(FIRST_ID + n), host="127.0.0.1", port=port)
                for n, port in enumerate(ports)
            )
            topics = tuple(replace(each, partitions=self._led(each)) for each in answer.topics)
            return replace(answer, brokers=brokers, topics=topics)
        if isinstance(answer, FindCoordinatorResponse):
            named = tuple(
                replace(each, host="127.0.0.1", port=ports[0]) for each in answer.coordinators
            )
            return replace(answer, coordinators=named)
        return answer

    def _led(self, topic: Any) -> Any:
        return tuple(
            replace(
                each,
                leader_id=self.leads(each.partition_index),
                leader_epoch=each.leader_epoch if self.leader_epoch is None else self.leader_epoch,
            )
            for each in topic.partitions
        )


@contextmanager
def liars(upstream: Address, count: int = 1) -> Iterator[Liars]:
    brokers = Liars(upstream, count)
    try:
        yield brokers
    finally:
        brokers.close()


def _receive(source: socket.socket) -> bytes:
    return _exactly(source, int.from_bytes(_exactly(source, 4)))


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = source.recv(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
