"""Where every partition goes, given whose it is: as evenly as can be, then with little moved.

Equal subscriptions are common, and simple. Unequal ones are a question about flows.
"""

from collections.abc import Mapping, Sequence

from kohort.client.assignors.assignor import Assignment, Subscriber, in_line
from kohort.client.assignors.claims import Owners
from kohort.client.assignors.even import spread_evenly
from kohort.client.assignors.uneven import spread_unevenly
from kohort.types import Topic


def place(
    partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber], owners: Owners
) -> Assignment:
    known = frozenset(partitions)
    line = in_line(subscribers)
    wanted = {each.member_id: topics for each in line if (topics := each.topics & known)}
    kept: Assignment = {member_id: [] for member_id in wanted}
    for claimed in sorted(owners):
        owner = owners[claimed]
        exists = 0 <= claimed.partition < partitions.get(claimed.topic, 0)
        if exists and owner in wanted and claimed.topic in wanted[owner]:
            kept[owner].append(claimed)
    subscriptions = set(wanted.values())
    if len(subscriptions) == 1:
        (topics,) = subscriptions
        placed = spread_evenly({topic: partitions[topic] for topic in sorted(topics)}, kept)
    else:
        placed = spread_unevenly(partitions, wanted, kept)
    return {each.member_id: sorted(placed.get(each.member_id, ())) for each in line}
