"""Migrates topics and groups from a source cluster to a target cluster.

    with open_cluster("a:9092") as source, open_cluster("b:9092") as target:
        summary = migrate(source, target, MigrationOptions(state=Path("move.db")))

Records keep their key, value, headers, timestamp, compression and partition. Groups continue with
the record that they would have read next. A migration can be killed at any time and run again:
each record is copied exactly once.

- `migration_plan` computes the steps, and the reasons against a migration. It changes nothing.
- `migration_state` is the checkpoint file: intents before each write, the offset map after it.
- `copier` is the loop of `cluster_reader`, `rebatch` and `idempotent_writer`.
- `verify` compares checksums; `offset_mover` translates and commits the groups' offsets.
"""

from kohort.admin.migration.migration_types import MigrationOptions
from kohort.admin.migration.run import migrate

__all__ = ["MigrationOptions", "migrate"]
