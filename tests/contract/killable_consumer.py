"""A consumer that tests kill: `python -m tests.contract.killable_consumer NAME ...`."""

import sys

from tests.contract.clients.client_library import SHORT_SESSION_MS, MemberOptions
from tests.contract.libraries import library_named


def main(name: str, bootstrap_servers: str, topic: str, group: str, instance: str) -> None:
    options = MemberOptions(
        group=group,
        topics=(topic,),
        instance=instance or None,
        session_ms=SHORT_SESSION_MS,
    )
    member = library_named(name).join(bootstrap_servers, options)
    while True:
        member.poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
