"""Reads back what B has, and compares it with what was read from A: counts and checksums."""

from collections.abc import Iterable

from kohort.admin.migrating.packing import checksum, read_batch
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import State
from kohort.admin.migrating.wish import NotTheSame, Phase, Progress, Watch
from kohort.client.topic_partition import TopicPartition
from kohort.types import ProducerId, value
from kohort.wire.batch_header import split, verify_crc


@value
class Difference:
    partition: TopicPartition
    wanted: tuple[int, int]
    """How many records there should be, and their checksum."""
    found: tuple[int, int]

    def __str__(self) -> str:
        (wanted, wanted_sum), (found, found_sum) = self.wanted, self.found
        name = f"{self.partition.topic}:{self.partition.partition}"
        return (
            f"{name} has {found} records with checksum {found_sum:08x}, and should have "
            f"{wanted} with {wanted_sum:08x}"
        )


def verify(
    reader: Reader,
    state: State,
    producer_id: ProducerId,
    partitions: Iterable[TopicPartition],
    watch: Watch,
) -> None:
    """NotTheSame unless B has every record that was copied and not compared yet, as it was in A."""
    states = {each: state.get_partition(each) for each in partitions}
    states = {each: told for each, told in states.items() if told.copied > told.verified}
    found = {each: (told.verified, told.verified_checksum) for each, told in states.items()}
    total = sum(told.copied - told.verified for told in states.values())
    places = {each: told.verified_next for each, told in states.items()}
    goals = {each: told.target_next for each, told in states.items()}
    compared = size = 0
    for fetched in reader.read(places, goals):
        partition, so_far = fetched.partition, found[fetched.partition]
        for pos, header in split(fetched.content, truncated_ok=True):
            is_ours = header.producer_id == producer_id and not header.is_control
            if is_ours and header.base_offset < goals[partition]:
                verify_crc(fetched.content, pos, header)
                records = [
                    record
                    for record in read_batch(fetched.content, pos, header, partition)
                    if record.offset >= fetched.first
                ]
                so_far = so_far[0] + len(records), checksum(records, so_far[1])
                compared, size = compared + len(records), size + header.size_in_bytes
        found[partition] = so_far
        watch(_progress(compared, total, size))
    differences = [
        Difference(partition=each, wanted=(told.copied, told.checksum), found=found[each])
        for each, told in sorted(states.items())
        if found[each] != (told.copied, told.checksum)
    ]
    if differences:
        raise NotTheSame("B is not what A is: " + "; ".join(map(str, differences)))
    for partition in states:
        state.remember_verified(partition)


def _progress(done: int, total: int, size: int) -> Progress:
    return Progress(phase=Phase.VERIFYING, done=done, total=total, records=done, data_bytes=size)
