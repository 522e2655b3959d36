"""What the two sticky assignors share: a balanced assignment that moves few partitions.

Equal subscriptions use the uniform algorithm, unequal ones the general algorithm.
"""

from collections.abc import Mapping, Sequence

from kohort.assignors.assignor import Assignment, Subscriber, in_kafka_order
from kohort.assignors.owned_partitions import Owners
from kohort.assignors.sticky_general import assign_general
from kohort.assignors.sticky_uniform import assign_uniform
from kohort.types import Topic


def assign_sticky(
    partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber], owners: Owners
) -> Assignment:
    """Assign all partitions; `owners` says which member has each one now."""
    known = frozenset(partitions)
    members = in_kafka_order(subscribers)
    wanted = {each.member_id: topics for each in members if (topics := each.topics & known)}
    kept: Assignment = {member_id: [] for member_id in wanted}
    for claimed in sorted(owners):
        owner = owners[claimed]
        exists = 0 <= claimed.partition < partitions.get(claimed.topic, 0)
        if exists and owner in wanted and claimed.topic in wanted[owner]:
            kept[owner].append(claimed)
    subscriptions = set(wanted.values())
    if len(subscriptions) == 1:
        (topics,) = subscriptions
        assigned = assign_uniform({topic: partitions[topic] for topic in sorted(topics)}, kept)
    else:
        assigned = assign_general(partitions, wanted, kept)
    return {each.member_id: sorted(assigned.get(each.member_id, ())) for each in members}
