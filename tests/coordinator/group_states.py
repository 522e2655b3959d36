"""Brings a group into any of the five states, and lists every kind of request to it.

An active coordinator has no group in state Dead, so that state is set directly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kohort.coordinator.commands import (
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    Request,
    RequestedTopic,
)
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.groups.classic import join_phase
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import GroupRequest, GroupState, StateAction
from kohort.coordinator.outcome import Outcome
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.types import ErrorCode, GroupId, InstanceId, Partition, ProducerId, Topic
from tests.coordinator.client_crowd import Client, Crowd

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

GROUP = GroupId("g")

# A group in a given state


@dataclass
class GroupInState:
    """A group with a leader, a follower and a static member, in the given state."""

    state: GroupState
    type_: str = "consumer"
    crowd: Crowd = field(default_factory=lambda: Crowd.with_config(GroupConfig()))
    leader: Client = field(default_factory=lambda: Client("leader", GROUP, is_old=True))
    follower: Client = field(default_factory=lambda: Client("follower", GROUP, is_old=True))
    static: Client = field(default_factory=lambda: Client("static", GROUP, InstanceId("i")))
    new_member: Client = field(default_factory=lambda: Client("new-member", GROUP, is_old=True))
    requester: Client = field(init=False)
    """The client of the last request, if it was a member."""

    def __post_init__(self) -> None:
        crowd = self.crowd
        crowd.commit_simply(GROUP, crowd.offset("t1"), crowd.offset("t2"))
        for client in self.members:
            self.join(client)
        crowd.advance(crowd.driver.now + 6_000)
        if self.state is not COMPLETING:
            for client in self.members:
                crowd.sync(client)
        match self.state:
            case GroupState.EMPTY:
                crowd.leave(*self.members)
            case GroupState.PREPARING_REBALANCE:
                self.join(self.new_member)
                self.new_member = Client("next-new-member", GROUP, is_old=True)
            case GroupState.DEAD:
                builder = OutcomeBuilder(crowd.driver.now, GroupConfig())
                join_phase.move(builder, crowd.driver.coordinator.groups[GROUP], DEAD)
            case _:
                pass
        assert self.group.state is self.state
        crowd.advance(crowd.driver.now + 1)

    @property
    def members(self) -> tuple[Client, ...]:
        return self.leader, self.follower, self.static

    @property
    def group(self) -> ClassicGroup:
        return self.crowd.driver.coordinator.groups[GROUP]

    @property
    def last_request(self) -> Request:
        command = self.crowd.steps[-1].command
        assert isinstance(command, Request)
        return command

    def join(self, client: Client, protocols: str = "sticky-range") -> Outcome:
        self.requester = client
        return self.crowd.join(client, protocols, self.type_)

    def by(self, client: Client, send: Callable[[Client], Outcome]) -> Outcome:
        self.requester = client
        return send(client)


# Requests


@dataclass
class RequestCase:
    """One kind of request. `results` resolves the conditional actions of the table."""

    name: str
    request: GroupRequest
    send: Callable[[GroupInState], Outcome]
    results: Mapping[StateAction, StateAction | ErrorCode] = field(default_factory=dict)
    type_: str = "consumer"


def join_with_issued_id(stage: GroupInState) -> Outcome:
    stage.new_member.is_old = False
    stage.join(stage.new_member)
    return stage.join(stage.new_member)


def join_as_new_instance(stage: GroupInState) -> Outcome:
    stage.new_member.instance_id = InstanceId("i-new")
    return stage.join(stage.new_member)


def restart_static_member(stage: GroupInState, protocols: str = "sticky-range") -> Outcome:
    stage.static.restart()
    return stage.join(stage.static, protocols)


def commit_in_transaction(stage: GroupInState) -> Outcome:
    if stage.state in (EMPTY, DEAD):
        stage.follower.restart()
    return stage.crowd.commit_in_transaction(stage.follower, ProducerId(7))


def delete_offsets(stage: GroupInState, topic: str) -> Outcome:
    topics = (RequestedTopic(topic=Topic(topic), partitions=(Partition(0),)),)
    ticket = stage.crowd.next_ticket()
    return stage.crowd.send(DeleteOffsets(ticket=ticket, group_id=GROUP, topics=topics))


CURRENT, REBALANCE = StateAction.CURRENT, StateAction.REBALANCE
IF_CHANGED, IF_LEADER = StateAction.REBALANCE_IF_CHANGED, StateAction.REBALANCE_IF_LEADER
IF_PROTOCOL, IF_UNSUBSCRIBED = StateAction.REBALANCE_IF_PROTOCOL, StateAction.ACCEPT_UNSUBSCRIBED

REQUEST_CASES = (
    RequestCase("old client", GroupRequest.JOIN_NEW, lambda s: s.join(s.new_member)),
    RequestCase("issued id", GroupRequest.JOIN_NEW, join_with_issued_id),
    RequestCase("new instance", GroupRequest.JOIN_NEW, join_as_new_instance),
    RequestCase(
        "follower unchanged",
        GroupRequest.JOIN_KNOWN,
        lambda s: s.join(s.follower),
        {IF_CHANGED: CURRENT, IF_LEADER: CURRENT},
    ),
    RequestCase(
        "follower changed",
        GroupRequest.JOIN_KNOWN,
        lambda s: s.join(s.follower, "range"),
        {IF_CHANGED: REBALANCE, IF_LEADER: REBALANCE},
    ),
    RequestCase(
        "leader unchanged",
        GroupRequest.JOIN_KNOWN,
        lambda s: s.join(s.leader),
        {IF_CHANGED: CURRENT, IF_LEADER: REBALANCE},
    ),
    RequestCase(
        "same protocol", GroupRequest.JOIN_INSTANCE, restart_static_member, {IF_PROTOCOL: CURRENT}
    ),
    RequestCase(
        "other protocol",
        GroupRequest.JOIN_INSTANCE,
        lambda s: restart_static_member(s, "range"),
        {IF_PROTOCOL: REBALANCE},
    ),
    RequestCase("follower", GroupRequest.SYNC, lambda s: s.by(s.follower, s.crowd.sync)),
    RequestCase("follower", GroupRequest.HEARTBEAT, lambda s: s.by(s.follower, s.crowd.heartbeat)),
    RequestCase("follower", GroupRequest.LEAVE, lambda s: s.by(s.follower, s.crowd.leave)),
    RequestCase("follower", GroupRequest.COMMIT, lambda s: s.by(s.follower, s.crowd.commit)),
    RequestCase("producer", GroupRequest.COMMIT_TRANSACTION, commit_in_transaction),
    RequestCase("no member", GroupRequest.COMMIT_SIMPLE, lambda s: s.crowd.commit_simply(GROUP)),
    RequestCase(
        "any client",
        GroupRequest.FETCH,
        lambda s: s.crowd.send(FetchOffsets(ticket=s.crowd.next_ticket(), group_id=GROUP)),
    ),
    RequestCase(
        "subscribed topic",
        GroupRequest.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t1"),
        {IF_UNSUBSCRIBED: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC},
    ),
    RequestCase(
        "other topic",
        GroupRequest.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t2"),
        {IF_UNSUBSCRIBED: StateAction.ACCEPT},
    ),
    RequestCase(
        "no consumers",
        GroupRequest.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t2"),
        {IF_UNSUBSCRIBED: ErrorCode.NON_EMPTY_GROUP},
        type_="connect",
    ),
    RequestCase(
        "any client",
        GroupRequest.DELETE_GROUP,
        lambda s: s.crowd.send(DeleteGroups(ticket=s.crowd.next_ticket(), group_ids=(GROUP,))),
    ),
    RequestCase(
        "any client",
        GroupRequest.DESCRIBE,
        lambda s: s.crowd.send(DescribeGroups(ticket=s.crowd.next_ticket(), group_ids=(GROUP,))),
    ),
)
