"""The consumer's background thread: it sends requests and heartbeats while the application is busy.

It owns the network client. The core holds everything else, and both threads use it under one lock:
the application's thread changes it and waits for the condition; this thread sends its requests and
delivers the responses.
"""

import threading
import time
from collections.abc import Callable
from random import Random
from typing import Final

from kohort.client import log_events
from kohort.client.consumer_core import ConsumerCore
from kohort.client.errors import ConsumerError, UnsupportedVersionError
from kohort.client.member.member_events import RequestFailure
from kohort.client.network.send_queue import ClientRequest, Lane, failure_of
from kohort.client.options import Options
from kohort.protocol.backoff import Backoff
from kohort.protocol.errors import ProtocolError, RequestNotSent
from kohort.protocol.selector import NetworkClient, Result
from kohort.protocol.sockets import Address, ConnectionSettings
from kohort.types import Millis
from kohort.wire.frame import FRAME_BYTES_MAX

_NEVER: Final = Millis(2**62)
_STOP_S: Final = 2.0
"""How long stop() waits for the thread, which normally ends at once."""


class BackgroundThread:
    def __init__(self, options: Options) -> None:
        self._started_ns = time.time_ns() - time.monotonic_ns()
        self._condition = threading.Condition()
        # Not the global random source: an application may have seeded it.
        rng = Random()  # noqa: S311  # for backoff, not for secrets
        self._core = ConsumerCore(options, rng.random)
        self._network = _network_client(options, rng, self._core.metadata.addresses)
        self._sleeps_until = _NEVER
        self._change_count = 0
        self._is_stopping = False
        self._crash: BaseException | None = None
        name = f"kohort-consumer-{options.group_id or options.client_id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close all connections without sending anything."""
        self._is_stopping = True
        self._network.wake()
        # The garbage collector may finalize an unclosed consumer on this thread.
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_S)

    def now(self) -> Millis:
        """Milliseconds since the epoch; monotonic."""
        return Millis((self._started_ns + time.monotonic_ns()) // 1_000_000)

    # For the application's thread

    def check(self) -> None:
        if self._crash is not None:
            raise ConsumerError(
                "the consumer's background thread has died; this is a bug, please report it"
            ) from self._crash

    def __enter__(self) -> ConsumerCore:
        """The core, under the lock. Its new requests are sent when the lock is released."""
        self._condition.acquire()
        if self._crash is not None:
            self._condition.release()
            self.check()
        return self._core

    def __exit__(self, *_: object) -> None:
        try:
            self._wake_if_needed()
        finally:
            self._condition.release()

    def _wake_if_needed(self) -> None:
        """Wake the background thread if it has something to do before its deadline."""
        core = self._core
        if not core.send_queue.is_empty:
            self._network.wake()
        elif core.change_count != self._change_count:
            self._change_count = core.change_count
            deadline = core.deadline()
            if deadline is not None and deadline < self._sleeps_until:
                self._network.wake()

    def wait(self, until: Millis) -> None:
        """Wait, under the lock, for a change or until the given time."""
        self._wake_if_needed()
        self._condition.wait(min(max(0, until - self.now()) / 1000, threading.TIMEOUT_MAX))
        self.check()

    # The loop

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._run_once()
        except BaseException as error:  # raised by the application's next call
            with self._condition:
                self._crash = error
                self._condition.notify_all()
        finally:
            self._network.close()

    def _run_once(self) -> None:
        network = self._network
        with self._condition:
            now = self.now()
            change_count = self._core.change_count
            self._core.advance(now)
            if self._core.change_count > change_count + 1:  # more than this advance() itself
                self._condition.notify_all()
            requests = self._core.send_queue.take()
            core_deadline = self._core.deadline()
            self._sleeps_until = _NEVER if core_deadline is None else core_deadline
        for request in requests:
            self._send(request, now)
        deadlines = (core_deadline, network.next_deadline())
        until = min((each for each in deadlines if each is not None), default=None)
        ready = network.wait(None if until is None else Millis(max(0, until - self.now())))
        results = network.process(ready, self.now())
        if results:
            with self._condition:
                self._deliver(results)
                self._condition.notify_all()

    def _send(self, request: ClientRequest, now: Millis) -> None:
        broker = request.broker
        self._network.send(
            request.body,
            now,
            address=None if broker is None else (broker.host, broker.port),
            lane=request.lane,
            timeout_ms=request.timeout_ms,
            context=request,
            version_max=request.version_max,
        )

    def _deliver(self, results: list[Result]) -> None:
        now = self.now()
        for request, response in results:
            if isinstance(response, RequestNotSent):
                self._core.unsupported = UnsupportedVersionError(str(response))
                request.callback(RequestFailure.UNREACHABLE, now)
            elif isinstance(response, ProtocolError):
                request.callback(failure_of(response), now)
            else:
                request.callback(response, now)


def _network_client(
    options: Options, rng: Random, addresses: Callable[[], list[Address]]
) -> NetworkClient:
    settings = ConnectionSettings(
        client_id=options.client_id,
        setup_timeout_ms=options.socket_connection_setup_timeout_ms,
        receive_buffer_bytes=options.receive_buffer_bytes,
        send_buffer_bytes=options.send_buffer_bytes,
        # A broker exceeds fetch.max.bytes if the first batch is larger.
        response_bytes_max=max(FRAME_BYTES_MAX, 2 * options.fetch_max_bytes),
    )
    return NetworkClient(
        settings,
        max_idle_ms=options.connections_max_idle_ms,
        reconnect_backoff=Backoff(
            options.reconnect_backoff_ms, options.reconnect_backoff_max_ms, rng.random
        ),
        addresses=addresses,
        any_lane=Lane.CALL,
        on_failure=_log_failure,
    )


def _log_failure(address: Address, reason: str) -> None:
    host, port = address
    log_events.warn("broker-lost", address=f"{host}:{port}", reason=reason)
