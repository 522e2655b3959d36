"""Starts nodes on wildcard addresses and prints what a client observes, as JSON.

Run it only in a private network: see test_wildcard_address.
"""

import http.client
import json
import re
import sys
from pathlib import Path
from typing import Any

from kohort.node.broker import Address
from kohort.wire.api.k03_metadata import MetadataRequest
from tests.node.raw_client import RawClient
from tests.node.served_node import ServedNode
from tests.wait import wait_until

WILDCARD = "0.0.0.0"  # noqa: S104 - in a private network
OWN = "10.77.0.1"
HOSTS = (
    *("127.0.0.1", "localhost", OWN, "node.example", "allowed.example", "evil.example"),
    WILDCARD,
)


def observe(directory: Path, *arguments: str) -> dict[str, Any]:
    directory.mkdir()
    with ServedNode(directory, arguments=arguments) as served:
        ready = served.address
        host = ready.host.strip("[]")
        with RawClient(Address(host=host, port=ready.port)) as client:
            advertised = client.ask(MetadataRequest(topics=()), 9).brokers[0].host
        pages = observe_pages(served) if "--console" in arguments else {}
        assert served.stop() == 0
        return {"ready": host, "advertised": advertised, **pages, "log": served.log}


def observe_pages(served: ServedNode) -> dict[str, Any]:
    console = wait_until(
        lambda: re.search(r"console ready on http://(.*):(\d+)", served.said), 60, "the console"
    )
    assert console is not None
    metrics = re.search(r"metrics-served address=.*:(\d+)", served.log)
    assert metrics is not None
    return {
        "console_host": console[1],
        "console": statuses(int(console[2]), "/overview"),
        "metrics": statuses(int(metrics[1]), "/metrics"),
    }


def statuses(port: int, path: str) -> dict[str, int]:
    found = {}
    for host in HOSTS:
        asking = http.client.HTTPConnection(OWN, port, timeout=20)
        asking.request("GET", path, headers={"Host": f"{host}:{port}"})
        found[host] = asking.getresponse().status
        asking.close()
    return found


def main() -> None:
    directory = Path(sys.argv[1])
    found = {
        host: observe(directory / str(index), "--listen", f"{host}:0")
        for index, host in enumerate((WILDCARD, "0", "[::]", OWN))
    }
    pages = ("--metrics", f"{WILDCARD}:0", "--console", f"{WILDCARD}:0")
    found["advertise"] = observe(
        directory / "advertise",
        *("--listen", f"{WILDCARD}:0", "--advertise", "node.example", *pages),
        *("--allowed-host", "allowed.example"),
    )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
