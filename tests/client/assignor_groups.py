"""Groups to assign partitions to: written by hand, drawn by a die, or invented by Hypothesis.

A topic is a letter and `a0` its first partition, as in the recorded groups. `python -m
tests.client.assignor_groups` prints what every assignor says of some drawn ones.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import strategies as st

from kohort.client.assignors import BUILT_IN, NO_GENERATION, STICKY, Assignment, Subscriber
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, InstanceId, MemberId, Partition, Topic

LETTERS = "abcde"


def names(text: str) -> tuple[TopicPartition, ...]:
    """`a0 b12` as partitions."""
    return tuple(TopicPartition(Topic(each[0]), Partition(int(each[1:]))) for each in text.split())


def spell(assignment: Mapping[MemberId, Iterable[TopicPartition]]) -> dict[str, str]:
    """An assignment as a table would have it."""
    return {
        member_id: " ".join(f"{each.topic}{each.partition}" for each in partitions)
        for member_id, partitions in assignment.items()
    }


def subscriber(
    member_id: str,
    topics: str,
    *,
    owned: Iterable[TopicPartition] = (),
    generation: int = NO_GENERATION,
    instance_id: str | None = None,
) -> Subscriber:
    """A member that claims the same to either sticky assignor, each in its own way."""
    claimed = tuple(owned)
    return Subscriber(
        member_id=MemberId(member_id),
        instance_id=None if instance_id is None else InstanceId(instance_id),
        topics=frozenset(Topic(each) for each in topics),
        owned=claimed,
        generation=Generation(generation),
        user_data=STICKY.user_data(claimed, Generation(generation)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a leader has before it."""

    partitions: dict[Topic, int]
    subscribers: tuple[Subscriber, ...]

    def assign(self, name: str) -> Assignment:
        return BUILT_IN[name].assign(self.partitions, self.subscribers)

    def rejoined(self, assignment: Assignment, generation: int = 9) -> "Group":
        """The same members once more, each with what it was assigned."""
        subscribers = tuple(
            subscriber(
                each.member_id,
                "".join(each.topics),
                owned=assignment[each.member_id],
                generation=generation,
                instance_id=each.instance_id,
            )
            for each in self.subscribers
        )
        return replace(self, subscribers=subscribers)

    def without(self, member_id: str) -> "Group":
        left = tuple(each for each in self.subscribers if each.member_id != member_id)
        return replace(self, subscribers=left)

    def joined_by(self, newcomer: Subscriber) -> "Group":
        return replace(self, subscribers=(*self.subscribers, newcomer))

    def everything(self) -> set[TopicPartition]:
        """Every partition that somebody wants."""
        wanted = {topic for each in self.subscribers for topic in each.topics}
        return {
            TopicPartition(topic, Partition(number))
            for topic, count in self.partitions.items()
            if topic in wanted
            for number in range(count)
        }

    def topics_of(self, member_id: MemberId) -> frozenset[Topic]:
        (found,) = (each.topics for each in self.subscribers if each.member_id == member_id)
        return found


def group(partitions: Mapping[str, int], *subscribers: Subscriber) -> Group:
    counts = {Topic(topic): count for topic, count in partitions.items()}
    return Group(partitions=counts, subscribers=subscribers)


def is_valid(group: Group, assignment: Assignment) -> bool:
    """Whether all members are named, and none has what it does not want or another has as well."""
    given = [each for partitions in assignment.values() for each in partitions]
    return (
        assignment.keys() == {each.member_id for each in group.subscribers}
        and len(given) == len(set(given))
        and all(
            each.topic in group.topics_of(member_id)
            for member_id, partitions in assignment.items()
            for each in partitions
        )
    )


def assigned(assignment: Assignment) -> set[TopicPartition]:
    """All that anyone has."""
    return {each for partitions in assignment.values() for each in partitions}


def lost(before: Group, after: Assignment) -> int:
    """How many partitions their owners could have kept, and did not."""
    return sum(
        each not in after[owner.member_id]
        for owner in before.subscribers
        for each in set(owner.owned)
        if each in before.everything() and each.topic in owner.topics
    )


def squares(assignment: Assignment) -> int:
    """The smaller, the more even: of two assignments of the same partitions, that is."""
    return sum(len(partitions) ** 2 for partitions in assignment.values())


# Drawn by a die


def draw_group(die: random.Random) -> Group:
    """A small group with unequal subscriptions that was assigned, and then changed."""
    topics = LETTERS[: die.randint(1, 4)]
    partitions = {topic: die.randint(1, 4) for topic in topics}
    members = [subscriber(f"m{number}", _some(topics, die)) for number in range(die.randint(2, 5))]
    before = group(partitions, *members)
    after = before.rejoined(before.assign("sticky"))
    match die.randrange(4):
        case 0:
            return after.without("m0")
        case 1:
            return after.joined_by(subscriber(die.choice(("l", "n")), _some(topics, die)))
        case 2:
            first, *others = after.subscribers
            changed = replace(first, topics=frozenset(map(Topic, _some(topics, die))))
            return replace(after, subscribers=(changed, *others))
        case _:
            return replace(after, partitions={**after.partitions, Topic("a"): die.randint(4, 7)})


def _some(topics: str, die: random.Random) -> str:
    return "".join(each for each in topics if die.random() < 0.6)


# Invented by Hypothesis

# Choices from lists: Hypothesis draws them much faster than it builds sets and texts.

TOPICS = st.sampled_from(
    ["".join(chosen) for size in range(4) for chosen in combinations(LETTERS, size)]
)
PARTITIONS = st.tuples(*[st.integers(0, 6)] * len(LETTERS)).map(
    lambda counts: dict(zip(LETTERS, counts, strict=True))
)
CLAIMS = st.lists(
    st.sampled_from([names(f"{topic}{number}")[0] for topic in LETTERS for number in range(-1, 7)]),
    max_size=6,
)
MEMBER_IDS = st.lists(
    st.sampled_from(["k", "kk", "m", "é", "\U0001f600"]),
    min_size=1,
    unique=True,
)
INSTANCE_IDS = st.sampled_from([None, None, "i", "ij", "j", "\U0001f600", ""])


@st.composite
def groups(
    draw: st.DrawFn,
    *,
    are_equal: bool = False,
    claims: st.SearchStrategy[list[TopicPartition]] = CLAIMS,
) -> Group:
    """Unless told otherwise, members claim what they like: what is another's, what is not."""
    topics = st.just(draw(TOPICS)) if are_equal else TOPICS
    members = [
        subscriber(
            each,
            draw(topics),
            owned=draw(claims),
            generation=draw(st.integers(NO_GENERATION, 3)),
            instance_id=draw(INSTANCE_IDS),
        )
        for each in draw(MEMBER_IDS)
    ]
    return group(draw(PARTITIONS), *members)


@st.composite
def settled_groups(draw: st.DrawFn, *, are_equal: bool = False) -> Group:
    """Members that have what the sticky assignor gave them."""
    fresh = draw(groups(are_equal=are_equal, claims=st.just([])))
    return fresh.rejoined(fresh.assign("sticky"))


def say_all(seed: int, count: int) -> Iterator[str]:
    die = random.Random(seed)  # noqa: S311  # groups, no secrets
    for _ in range(count):
        drawn = draw_group(die)
        for name in BUILT_IN:
            yield f"{name} {spell(drawn.assign(name))}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in say_all(seed=7, count=100))
