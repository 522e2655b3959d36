"""A group brought into any of the five states, and every way there is to ask it something.

`Dead` is the one state no living coordinator holds a group in, so its group is pushed into it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kohort.coordinator import rebalance
from kohort.coordinator.commands import (
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    Request,
    TopicPartitions,
)
from kohort.coordinator.group import Roster
from kohort.coordinator.limits import Limits
from kohort.coordinator.outcome import Outcome
from kohort.coordinator.states import Answer, GroupState, Question
from kohort.coordinator.turn import Turn
from kohort.types import ErrorCode, GroupId, InstanceId, Partition, ProducerId, Topic
from tests.coordinator.crowd import Client, Crowd

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

GROUP = GroupId("g")

# Bringing a group into a state


@dataclass
class Stage:
    """A group with a leader, a follower and a static member, in some state or other."""

    state: GroupState
    type_: str = "consumer"
    crowd: Crowd = field(default_factory=lambda: Crowd.with_limits(Limits()))
    leader: Client = field(default_factory=lambda: Client("leader", GROUP, is_old=True))
    follower: Client = field(default_factory=lambda: Client("follower", GROUP, is_old=True))
    static: Client = field(default_factory=lambda: Client("static", GROUP, InstanceId("i")))
    newcomer: Client = field(default_factory=lambda: Client("newcomer", GROUP, is_old=True))
    asking: Client = field(init=False)
    """Who asked last, where it was a member."""

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
                self.join(self.newcomer)
                self.newcomer = Client("next-newcomer", GROUP, is_old=True)
            case GroupState.DEAD:
                turn = Turn(crowd.driver.now, Limits())
                rebalance.move(turn, crowd.driver.machine.groups[GROUP], DEAD)
            case _:
                pass
        assert self.roster.state is self.state
        crowd.advance(crowd.driver.now + 1)

    @property
    def members(self) -> tuple[Client, ...]:
        return self.leader, self.follower, self.static

    @property
    def roster(self) -> Roster:
        return self.crowd.driver.machine.groups[GROUP].roster

    @property
    def last_request(self) -> Request:
        command = self.crowd.steps[-1].command
        assert isinstance(command, Request)
        return command

    def join(self, client: Client, protocols: str = "sticky-range") -> Outcome:
        self.asking = client
        return self.crowd.join(client, protocols, self.type_)

    def by(self, client: Client, ask: Callable[[Client], Outcome]) -> Outcome:
        self.asking = client
        return ask(client)


# Asking


@dataclass
class Way:
    """One way to ask a question, and what an answer with an `if` in it comes to for this one."""

    name: str
    question: Question
    ask: Callable[[Stage], Outcome]
    comes_to: Mapping[Answer, Answer | ErrorCode] = field(default_factory=dict)
    type_: str = "consumer"


def join_with_issued_id(stage: Stage) -> Outcome:
    stage.newcomer.is_old = False
    stage.join(stage.newcomer)
    return stage.join(stage.newcomer)


def join_as_new_instance(stage: Stage) -> Outcome:
    stage.newcomer.instance_id = InstanceId("i-new")
    return stage.join(stage.newcomer)


def come_back(stage: Stage, protocols: str = "sticky-range") -> Outcome:
    stage.static.restart()
    return stage.join(stage.static, protocols)


def commit_in_transaction(stage: Stage) -> Outcome:
    if stage.state in (EMPTY, DEAD):
        stage.follower.restart()
    return stage.crowd.commit_in_transaction(stage.follower, ProducerId(7))


def delete_offsets(stage: Stage, topic: str) -> Outcome:
    topics = (TopicPartitions(topic=Topic(topic), partitions=(Partition(0),)),)
    ticket = stage.crowd.next_ticket()
    return stage.crowd.ask(DeleteOffsets(ticket=ticket, group_id=GROUP, topics=topics))


CURRENT, REBALANCE = Answer.CURRENT, Answer.REBALANCE
IF_CHANGED, IF_LEADER = Answer.REBALANCE_IF_CHANGED, Answer.REBALANCE_IF_LEADER
IF_PROTOCOL, IF_UNSUBSCRIBED = Answer.REBALANCE_IF_PROTOCOL, Answer.ACCEPT_UNSUBSCRIBED

WAYS = (
    Way("old client", Question.JOIN_NEW, lambda s: s.join(s.newcomer)),
    Way("issued id", Question.JOIN_NEW, join_with_issued_id),
    Way("new instance", Question.JOIN_NEW, join_as_new_instance),
    Way(
        "follower unchanged",
        Question.JOIN_KNOWN,
        lambda s: s.join(s.follower),
        {IF_CHANGED: CURRENT, IF_LEADER: CURRENT},
    ),
    Way(
        "follower changed",
        Question.JOIN_KNOWN,
        lambda s: s.join(s.follower, "range"),
        {IF_CHANGED: REBALANCE, IF_LEADER: REBALANCE},
    ),
    Way(
        "leader unchanged",
        Question.JOIN_KNOWN,
        lambda s: s.join(s.leader),
        {IF_CHANGED: CURRENT, IF_LEADER: REBALANCE},
    ),
    Way("same protocol", Question.JOIN_INSTANCE, come_back, {IF_PROTOCOL: CURRENT}),
    Way(
        "other protocol",
        Question.JOIN_INSTANCE,
        lambda s: come_back(s, "range"),
        {IF_PROTOCOL: REBALANCE},
    ),
    Way("follower", Question.SYNC, lambda s: s.by(s.follower, s.crowd.sync)),
    Way("follower", Question.HEARTBEAT, lambda s: s.by(s.follower, s.crowd.heartbeat)),
    Way("follower", Question.LEAVE, lambda s: s.by(s.follower, s.crowd.leave)),
    Way("follower", Question.COMMIT, lambda s: s.by(s.follower, s.crowd.commit)),
    Way("producer", Question.COMMIT_TRANSACTION, commit_in_transaction),
    Way("nobody", Question.COMMIT_SIMPLE, lambda s: s.crowd.commit_simply(GROUP)),
    Way(
        "anybody",
        Question.FETCH,
        lambda s: s.crowd.ask(FetchOffsets(ticket=s.crowd.next_ticket(), group_id=GROUP)),
    ),
    Way(
        "subscribed topic",
        Question.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t1"),
        {IF_UNSUBSCRIBED: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC},
    ),
    Way(
        "other topic",
        Question.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t2"),
        {IF_UNSUBSCRIBED: Answer.ACCEPT},
    ),
    Way(
        "no consumers",
        Question.DELETE_OFFSETS,
        lambda s: delete_offsets(s, "t2"),
        {IF_UNSUBSCRIBED: ErrorCode.NON_EMPTY_GROUP},
        type_="connect",
    ),
    Way(
        "anybody",
        Question.DELETE_GROUP,
        lambda s: s.crowd.ask(DeleteGroups(ticket=s.crowd.next_ticket(), group_ids=(GROUP,))),
    ),
    Way(
        "anybody",
        Question.DESCRIBE,
        lambda s: s.crowd.ask(DescribeGroups(ticket=s.crowd.next_ticket(), group_ids=(GROUP,))),
    ),
)
