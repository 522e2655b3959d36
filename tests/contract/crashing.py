"""A consumer as a process, to be killed: `python -m tests.contract.crashing NAME ...`."""

import sys

from tests.contract.clients.library import SHORT_SESSION_MS, Wanted
from tests.contract.libraries import library_named


def main(name: str, bootstrap_servers: str, topic: str, group: str, instance: str) -> None:
    wanted = Wanted(
        group=group,
        topics=(topic,),
        instance=instance or None,
        session_ms=SHORT_SESSION_MS,
    )
    member = library_named(name).join(bootstrap_servers, wanted)
    while True:
        member.poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
