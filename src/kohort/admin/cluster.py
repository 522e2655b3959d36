"""A cluster that is asked and changed: where it is, how long it may take, and both ways to it.

What librdkafka can do goes through it; the rest through our own messages. One Cluster may be used
by many threads.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from kohort.admin.caller import Caller
from kohort.admin.connection import deadline_in, seconds_until
from kohort.admin.errors import (
    AdminError,
    ClusterUnreachable,
    NoLeader,
    NoSuchTopic,
    WrongWish,
    refusal,
)
from kohort.admin.options import TIMEOUT_MS, Settings, read_settings
from kohort.types import Millis

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_GRACE_S: Final = 5.0
"""librdkafka keeps time by itself; we give up only where it does not."""


_LOCAL_KINDS: Final[Mapping[int, type[AdminError]]] = {
    -156: NoLeader,  # _NOENT, where none of all that was asked for has a leader
    -186: WrongWish,  # _INVALID_ARG
    -188: NoSuchTopic,  # _UNKNOWN_TOPIC
    -190: NoSuchTopic,  # _UNKNOWN_PARTITION
}
"""By librdkafka's numbers, which are part of its interface."""


class Cluster:
    """Made by `open_cluster`."""

    def __init__(self, settings: Settings, timeout_ms: Millis) -> None:
        self.settings = settings
        self.timeout_ms = timeout_ms
        self.caller = Caller(settings.bootstrap, settings.client_id, timeout_ms)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap)

    @property
    def timeout_s(self) -> float:
        return self.timeout_ms / 1000

    @cached_property
    def client(self) -> "AdminClient":
        """librdkafka's. It is loaded when it is first needed: many questions need none of it."""
        from confluent_kafka import KafkaException  # noqa: PLC0415  # as said
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        given: dict[str, str | int | float | bool] = {
            **self.settings.librdkafka,
            "bootstrap.servers": self.bootstrap_servers,
            # Its own words about broken connections; ours are in the errors.
            "log_level": 0,
        }
        try:
            return AdminClient(given)
        except KafkaException as error:
            raise WrongWish(f"librdkafka refuses an option: {error.args[0].str()}") from None

    def begin(self, what: str, ask: Callable[[], Any], *texts: str) -> Any:
        """The futures of a call to librdkafka, whose binding refuses some things by itself.

        `texts` are the names in the question: those that cannot be written as bytes, which a shell
        may well give us, make the binding end the whole process.
        """
        for text in texts:
            if not text.isascii() and text != text.encode(errors="replace").decode():
                raise WrongWish(f"{what}: {text!r} is no text that can be sent")
        try:
            return ask()
        except (OverflowError, TypeError, ValueError) as error:
            raise WrongWish(f"{what}: {error}") from None

    def ask_one(self, what: str, ask: Callable[[], Any], *texts: str) -> Any:
        """What librdkafka has found about the one thing that it was asked about."""
        (future,) = self.begin(what, ask, *texts).values()
        return self.wait(future, what)

    def wait(self, future: "Future[Any]", what: str) -> Any:
        """What librdkafka has found; an AdminError about `what` where it has not."""
        from confluent_kafka import KafkaException  # noqa: PLC0415  # as above

        try:
            return future.result(seconds_until(deadline_in(self.timeout_ms)) + _GRACE_S)
        except KafkaException as error:
            raise error_of(error.args[0], what) from None
        except (FutureTimeout, TimeoutError):
            raise ClusterUnreachable(f"{what}: no answer within {self.timeout_ms} ms") from None

    def close(self) -> None:
        self.caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open_cluster(
    bootstrap: str,
    *,
    options: Mapping[str, str] | None = None,
    timeout_ms: Millis = TIMEOUT_MS,
) -> Cluster:
    """The cluster at HOST:PORT, or several with commas; ClusterUnreachable if none is there.

    `options` have the names of a properties file for Kafka's own tools; `timeout_ms` is how long
    one question may take.
    """
    cluster = Cluster(read_settings(bootstrap, options or {}), timeout_ms)
    try:
        cluster.caller.brokers()
    except BaseException:
        cluster.close()
        raise
    return cluster


def error_of(error: Any, what: str) -> AdminError:
    """Of a KafkaError; codes below zero are librdkafka's own, mostly about the way there."""
    code, said = error.code(), error.str().rstrip(".")
    if code >= 0:
        return refusal(code, what, _detail(error))
    kind = _LOCAL_KINDS.get(code, ClusterUnreachable)
    return kind(f"{what}: {said.removeprefix('Local: ')}")


def _detail(error: Any) -> str | None:
    """What the broker said, unless librdkafka had to find words itself."""
    said: str = error.str()
    return None if said.startswith("Broker: ") else said
