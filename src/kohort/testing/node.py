"""A broker inside your process, for tests and notebooks.

with kohort.Node() as node:
    consumer = SomeKafkaClient(bootstrap_servers=node.bootstrap_servers)
"""

from pathlib import Path

from kohort.node.broker_thread import BrokerThread
from kohort.testing.local_node import LocalNode
from kohort.testing.process_node import ProcessNode


class Node(LocalNode[BrokerThread]):
    """Runs a broker on a thread of this process. `Node.process(...)` runs one as a process.

    Settings have defaults for tests; with `like_kafka` they have those of Kafka. Explicit
    `settings` have precedence over both.

    Without `data` it uses a temporary directory, which survives `stop`, `kill` and `start` of the
    same object. `close`, the end of the `with` statement, the garbage collector and the end of the
    program remove it.

    `advertise` is the HOST[:PORT] that clients are told to connect to, by default the address it
    listens on. `metrics` is the HOST:PORT of the Prometheus metrics page, `control` that of the
    control operations; port 0 selects a free port. Both answer to `allowed_hosts` too. With
    `clock="manual"` time passes only when a test says so.

    Any thread may call any method; start, stop, restart, kill and close exclude each other. A
    forked child has no broker, because it has no copy of the thread. There `bootstrap_servers`
    works, `close` does nothing, and the other methods raise an error.
    """

    process = ProcessNode
    """Takes the same arguments."""

    def _make_runner(self, data: Path) -> BrokerThread:
        return BrokerThread(self._settings, data, metrics=self._metrics, control=self._control)
