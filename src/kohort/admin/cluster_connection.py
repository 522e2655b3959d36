"""A handle to a cluster: the client settings and the router to its brokers.

Thread-safe.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from kohort.admin.options import TIMEOUT_MS, AdminSettings, read_admin_settings
from kohort.admin.router import Router
from kohort.types import Millis


class Cluster:
    """Created by `open_cluster`."""

    def __init__(self, settings: AdminSettings, timeout_ms: Millis) -> None:
        self.settings = settings
        self.timeout_ms = timeout_ms
        self.router = Router(settings, timeout_ms)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap)

    @property
    def timeout_s(self) -> float:
        return self.timeout_ms / 1000

    def close(self) -> None:
        self.router.close()

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
    """Connect to HOST:PORT[,HOST:PORT...]. Raises ClusterUnreachable if no broker responds.

    `options` has the keys of a properties file for Kafka's tools. `timeout_ms` limits each call.
    """
    cluster = Cluster(read_admin_settings(bootstrap, options or {}), timeout_ms)
    try:
        cluster.router.brokers()
    except BaseException:
        cluster.close()
        raise
    return cluster
