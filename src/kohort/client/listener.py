"""Who is told when partitions come and go."""

from collections.abc import Collection

from kohort.client.topic_partition import TopicPartition


class ConsumerRebalanceListener:
    """Overwrite what you need. All are called on the program's own thread, within `poll`.

    They may use the consumer: commit what was read, or seek to where to go on. An error that one of
    them raises comes out of `poll`; the rebalance goes on all the same.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These have come, perhaps none; nothing of them has been read yet."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These are about to go. They are still held: this is the moment to commit."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """These are gone, and may be another member's already: it is too late to commit.

        Does what `on_partitions_revoked` does, unless it is overwritten.
        """
        self.on_partitions_revoked(partitions)
