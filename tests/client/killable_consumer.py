"""A consumer in a separate process, which a test kills.

`python -m tests.client.killable_consumer SERVERS TOPIC GROUP`
"""

import sys

import kohort
from tests.client.node_cluster import QUICK


def main(bootstrap_servers: str, topic: str, group: str) -> None:
    given = {**QUICK, "group_id": group}
    consumer = kohort.Consumer(bootstrap_servers=bootstrap_servers, **given)
    consumer.subscribe([topic])
    for record in consumer:
        sys.stdout.write(f"{record.partition} {record.offset}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
