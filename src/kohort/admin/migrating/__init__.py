"""Moves topics and groups from one cluster to another: the way out of a single node, or into it.

    with open_cluster("a:9092") as source, open_cluster("b:9092") as target:
        summary = migrate(source, target, MigrationWish(state=Path("move.db")))

Records arrive in B as they are in A: keys, values, headers, timestamps, compression and partition.
Groups arrive at the record they would have read next. It may be killed at any moment and run again:
nothing is lost, and nothing is there twice.

- `planning` says what is to be done, and what forbids it; it changes nothing.
- `state` remembers, in a file, what was about to be sent before it is sent, and where it went.
- `reading`, `packing` and `writing` carry batches; `copying` is the loop around them.
- `verifying` reads B back; `moving` translates what groups have committed, and compares records.
"""

from kohort.admin.migrating.run import migrate
from kohort.admin.migrating.wish import MigrationWish

__all__ = ["MigrationWish", "migrate"]
