"""Starts an Apache Kafka: `python -m tests.apache [--set NAME=VALUE]` prints its address.

It runs until Ctrl-C, and deletes its data.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.apache.cluster import Kafka
from tests.apache.jars import VERSION
from tests.apache.unavailable import Unavailable


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/kafka", description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", type=_setting)
    settings = dict(parser.parse_args().set)
    try:
        return _run(settings)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1


def _run(settings: dict[str, str]) -> int:
    print(f"Starting Apache Kafka {VERSION}.", file=sys.stderr)
    # SIGTERM must stop the broker, too; otherwise it would keep running.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    with tempfile.TemporaryDirectory(prefix="kafka-") as name:
        try:
            with Kafka(Path(name), settings) as kafka:
                print(kafka.bootstrap_servers, flush=True)
                signal.pause()
        except KeyboardInterrupt:
            return 0
    return 0


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"not NAME=VALUE: {text}")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
