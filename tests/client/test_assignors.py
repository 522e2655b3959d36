"""How assignors are found, what members write for them, and what they refuse."""

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from kohort.client.assignors import (
    BUILT_IN,
    COOPERATIVE_STICKY,
    NO_GENERATION,
    RANGE,
    ROUNDROBIN,
    STICKY,
    Assignment,
    Assignor,
    RebalanceProtocol,
    Subscriber,
    get_assignor,
)
from kohort.client.errors import BadOption
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, MemberId, Topic
from tests.client.assignor_groups import CLAIMS, group, names, spell, subscriber

every_assignor = pytest.mark.parametrize("name", BUILT_IN)


def test_assignors_have_the_names_that_kafkas_clients_know() -> None:
    assert list(BUILT_IN) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert all(get_assignor(name).name == name for name in BUILT_IN)


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(BadOption, match="'uniform'; there are range, roundrobin, sticky, coop"):
        get_assignor("uniform")


def test_only_the_cooperative_one_is_safe_without_giving_everything_up() -> None:
    cooperative = [
        name for name in BUILT_IN if RebalanceProtocol.COOPERATIVE in BUILT_IN[name].protocols
    ]

    assert cooperative == ["cooperative-sticky"]
    assert all(RebalanceProtocol.EAGER in each.protocols for each in BUILT_IN.values())


def test_a_program_may_bring_an_assignor_of_its_own() -> None:
    class FirstTakesAll:
        name = "first-takes-all"
        protocols = frozenset({RebalanceProtocol.EAGER})

        def user_data(self, assigned: Iterable[TopicPartition], generation: Generation) -> None:
            """Nothing."""

        def assign(
            self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
        ) -> Assignment:
            everything = RANGE.assign(partitions, subscribers[:1])
            return {each.member_id: everything.get(each.member_id, []) for each in subscribers}

    assignor: Assignor = FirstTakesAll()

    assignment = assignor.assign({Topic("a"): 2}, [subscriber("m1", "a"), subscriber("m2", "a")])

    assert spell(assignment) == {"m1": "a0 a1", "m2": ""}


@every_assignor
def test_a_negative_number_of_partitions_is_refused(name: str) -> None:
    here = group({"a": -1}, subscriber("m1", "a"))

    with pytest.raises(ValueError, match="topic 'a' cannot have -1 partitions"):
        here.assign(name)


@every_assignor
def test_a_member_that_is_told_twice_is_refused(name: str) -> None:
    here = group({"a": 1}, subscriber("m1", "a"), subscriber("m1", "b"))

    with pytest.raises(ValueError, match="member 'm1' subscribes twice"):
        here.assign(name)


# What members write


@pytest.mark.parametrize("assignor", [RANGE, ROUNDROBIN])
def test_members_have_nothing_to_tell_an_assignor_that_does_not_look_back(
    assignor: Assignor,
) -> None:
    assert assignor.user_data(names("a0"), Generation(1)) is None


def test_a_member_that_was_never_assigned_anything_tells_nothing() -> None:
    assert STICKY.user_data((), NO_GENERATION) is None
    assert COOPERATIVE_STICKY.user_data((), NO_GENERATION) == b"\xff\xff\xff\xff"


@given(assigned=CLAIMS, generation=st.integers(0, 2**31 - 1))
def test_kafka_python_reads_what_sticky_members_write(
    assigned: list[TopicPartition], generation: int
) -> None:
    data = STICKY.user_data(assigned, Generation(generation))

    told = StickyAssignorUserData.decode(data, version=1, header=False)
    assert told.generation == generation
    assert [(topic, number) for topic, numbers in _pairs(told) for number in numbers] == sorted(
        assigned
    )


def _pairs(told: StickyAssignorUserData) -> list[tuple[str, list[int]]]:
    return [(each.topic, each.partitions) for each in told.previous_assignment]


def test_user_data_without_a_generation_is_read_as_older_members_wrote_it() -> None:
    a2 = b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x02"
    members = [
        Subscriber(member_id=MemberId("m1"), topics=frozenset({Topic("a")}), user_data=a2),
        Subscriber(member_id=MemberId("m2"), topics=frozenset({Topic("a")})),
        Subscriber(member_id=MemberId("m3"), topics=frozenset({Topic("a")})),
    ]

    assignment = STICKY.assign({Topic("a"): 3}, members)

    assert spell(assignment) == {"m1": "a2", "m2": "a0", "m3": "a1"}


@pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY])
@given(data=st.binary(max_size=30))
def test_user_data_that_cannot_be_read_is_no_claim(assignor: Assignor, data: bytes) -> None:
    members = [
        Subscriber(member_id=MemberId(each), topics=frozenset({Topic("a")}), user_data=data)
        for each in ("m1", "m2")
    ]

    assignment = assignor.assign({Topic("a"): 2}, members)

    assert spell(assignment) == {"m1": "a0", "m2": "a1"}


def test_a_cooperative_claim_without_a_generation_has_the_one_in_its_user_data() -> None:
    members = [
        Subscriber(
            member_id=MemberId(member_id),
            topics=frozenset({Topic("a")}),
            owned=names("a0"),
            user_data=COOPERATIVE_STICKY.user_data((), Generation(generation)),
        )
        for member_id, generation in (("m1", 3), ("m2", 4))
    ]

    assignment = COOPERATIVE_STICKY.assign({Topic("a"): 2}, members)

    assert spell(assignment) == {"m1": "a1", "m2": "a0"}
