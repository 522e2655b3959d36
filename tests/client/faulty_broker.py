"""Proxies in front of a real broker that corrupt, delay or drop responses on request.

Each has its own address and forwards requests one by one, as a broker does. Responses name the
proxies as the cluster, so clients stay with them. A fault applies to the next requests of an API.
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
"""The id of the real broker; proxies get the next ids."""


class CloseConnection(Exception):
    """Close the connection."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and the real response to it."""

    client: socket.socket
    request: Any
    correlation_id: int
    version: int
    answer: Any
    broker_id: int

    def frame(self) -> bytes:
        return encode_response(self.answer, self.version, self.correlation_id)


Fault = Callable[[Exchange], None]
"""Sends anything to the client."""


# Faults


def pass_through(exchange: Exchange) -> None:
    """The real response."""
    exchange.client.sendall(exchange.frame())


def disconnect(_: Exchange) -> None:
    raise CloseConnection


def truncate(exchange: Exchange) -> None:
    """Half of the response, then disconnect."""
    frame = exchange.frame()
    exchange.client.sendall(frame[: len(frame) // 2])
    raise CloseConnection


def garble(exchange: Exchange) -> None:
    """A response of the right size filled with zeros."""
    frame = exchange.frame()
    exchange.client.sendall(frame[:8] + b"\xa5" * (len(frame) - 8))


def wrong_correlation_id(exchange: Exchange) -> None:
    """The response with a wrong correlation id."""
    exchange.correlation_id += 1000
    pass_through(exchange)


def oversized_frame(exchange: Exchange) -> None:
    """A frame size above every limit."""
    exchange.client.sendall(b"\x7f\xff\xff\xff" + exchange.frame())


def repeat(exchange: Exchange) -> None:
    """The response twice."""
    exchange.client.sendall(exchange.frame() * 2)


def no_response(_: Exchange) -> None:
    """No response; the connection stays open."""


def alter(change: Callable[[Any], Any]) -> Fault:
    """A changed response."""

    def fault(exchange: Exchange) -> None:
        exchange.answer = change(exchange.answer)
        pass_through(exchange)

    return fault


def hold(gate: threading.Event) -> Fault:
    """The real response after the event is set."""

    def fault(exchange: Exchange) -> None:
        gate.wait(60)
        pass_through(exchange)

    return fault


class FaultyBrokers:
    """One or more proxies in front of a real broker."""

    def __init__(self, upstream: Address, count: int = 1) -> None:
        self._upstream = upstream
        self._faults: dict[type, list[Fault]] = defaultdict(list)
        self._always: dict[type, Fault] = {}
        self._lock = threading.Lock()
        self.heard: list[tuple[int, Any]] = []
        """Requests by broker."""
        self._open: set[socket.socket] = set()
        self._is_closing = False
        self._listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.leads: Callable[[int], int] = lambda partition: FIRST_ID + partition % count
        """The leader of each partition."""
        self.leader_epoch: int | None = None
        """The leader epoch of all partitions, if it is not the real one."""
        for number, listener in enumerate(self._listeners):
            self._spawn(self._accept, listener, FIRST_ID + number)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in self._listeners)

    def play(self, request: type, *faults: Fault) -> None:
        """Apply these faults to the next requests of this type, one each."""
        with self._lock:
            self._faults[request] += faults

    def always(self, request: type, fault: Fault) -> None:
        with self._lock:
            self._always[request] = fault

    def relent(self) -> None:
        """Stop all faults."""
        with self._lock:
            self._faults.clear()
            self._always.clear()

    @property
    def is_spent(self) -> bool:
        with self._lock:
            return not any(self._faults.values())

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
            with suppress(OSError, CloseConnection, EOFError):
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

    def _choose(self, request: type) -> Fault:
        with self._lock:
            if self._faults[request]:
                return self._faults[request].pop(0)
            return self._always.get(request, pass_through)

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
def faulty_brokers(upstream: Address, count: int = 1) -> Iterator[FaultyBrokers]:
    brokers = FaultyBrokers(upstream, count)
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
