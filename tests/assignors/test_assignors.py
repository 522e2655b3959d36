"""Lookup by name, user data, and invalid input."""

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from kohort.assignors import (
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
from kohort.types import Generation, MemberId, Topic, TopicPartition
from tests.assignors.group_samples import CLAIMS, format_assignment, group, names, subscriber

every_assignor = pytest.mark.parametrize("name", BUILT_IN)


def test_assignor_names_match_kafka() -> None:
    assert list(BUILT_IN) == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert all(get_assignor(name).name == name for name in BUILT_IN)


def test_unknown_assignor_name_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'uniform'; there are range, roundrobin, sticky, coop"):
        get_assignor("uniform")


def test_only_cooperative_sticky_supports_the_cooperative_protocol() -> None:
    cooperative = [
        name for name in BUILT_IN if RebalanceProtocol.COOPERATIVE in BUILT_IN[name].protocols
    ]

    assert cooperative == ["cooperative-sticky"]
    assert all(RebalanceProtocol.EAGER in each.protocols for each in BUILT_IN.values())


def test_custom_assignor_can_be_registered() -> None:
    class FirstTakesAll:
        name = "first-takes-all"
        protocols = frozenset({RebalanceProtocol.EAGER})

        def user_data(self, assigned: Iterable[TopicPartition], generation: Generation) -> None:
            """None."""

        def assign(
            self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
        ) -> Assignment:
            everything = RANGE.assign(partitions, subscribers[:1])
            return {each.member_id: everything.get(each.member_id, []) for each in subscribers}

    assignor: Assignor = FirstTakesAll()

    assignment = assignor.assign({Topic("a"): 2}, [subscriber("m1", "a"), subscriber("m2", "a")])

    assert format_assignment(assignment) == {"m1": "a0 a1", "m2": ""}


@every_assignor
def test_negative_partition_count_is_rejected(name: str) -> None:
    here = group({"a": -1}, subscriber("m1", "a"))

    with pytest.raises(ValueError, match="topic 'a' cannot have -1 partitions"):
        here.assign(name)


@every_assignor
def test_duplicate_member_is_rejected(name: str) -> None:
    here = group({"a": 1}, subscriber("m1", "a"), subscriber("m1", "b"))

    with pytest.raises(ValueError, match="member 'm1' subscribes twice"):
        here.assign(name)


# User data


@pytest.mark.parametrize("assignor", [RANGE, ROUNDROBIN])
def test_range_and_roundrobin_have_no_user_data(
    assignor: Assignor,
) -> None:
    assert assignor.user_data(names("a0"), Generation(1)) is None


def test_new_member_has_no_user_data() -> None:
    assert STICKY.user_data((), NO_GENERATION) is None
    assert COOPERATIVE_STICKY.user_data((), NO_GENERATION) == b"\xff\xff\xff\xff"


@given(assigned=CLAIMS, generation=st.integers(0, 2**31 - 1))
def test_kafka_python_decodes_sticky_user_data(
    assigned: list[TopicPartition], generation: int
) -> None:
    data = STICKY.user_data(assigned, Generation(generation))

    decoded = StickyAssignorUserData.decode(data, version=1, header=False)
    assert decoded.generation == generation
    assert [(topic, number) for topic, numbers in _pairs(decoded) for number in numbers] == sorted(
        assigned
    )


def _pairs(decoded: StickyAssignorUserData) -> list[tuple[str, list[int]]]:
    return [(each.topic, each.partitions) for each in decoded.previous_assignment]


def test_user_data_version_0_has_no_generation() -> None:
    a2 = b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x02"
    members = [
        Subscriber(member_id=MemberId("m1"), topics=frozenset({Topic("a")}), user_data=a2),
        Subscriber(member_id=MemberId("m2"), topics=frozenset({Topic("a")})),
        Subscriber(member_id=MemberId("m3"), topics=frozenset({Topic("a")})),
    ]

    assignment = STICKY.assign({Topic("a"): 3}, members)

    assert format_assignment(assignment) == {"m1": "a2", "m2": "a0", "m3": "a1"}


@pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY])
@given(data=st.binary(max_size=30))
def test_invalid_user_data_claims_nothing(assignor: Assignor, data: bytes) -> None:
    members = [
        Subscriber(member_id=MemberId(each), topics=frozenset({Topic("a")}), user_data=data)
        for each in ("m1", "m2")
    ]

    assignment = assignor.assign({Topic("a"): 2}, members)

    assert format_assignment(assignment) == {"m1": "a0", "m2": "a1"}


def test_cooperative_claim_takes_the_generation_from_user_data() -> None:
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

    assert format_assignment(assignment) == {"m1": "a1", "m2": "a0"}
