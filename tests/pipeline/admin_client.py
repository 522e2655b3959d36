"""librdkafka's admin client, destroyed after use.

A client that outlives its broker reconnects to the broker's port for ever. Spark may use that port
for its Python workers, whose handshake then fails.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient


@contextmanager
def admin_client(bootstrap_servers: str) -> Iterator[AdminClient]:
    yield AdminClient({"bootstrap.servers": bootstrap_servers})
