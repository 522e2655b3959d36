"""A command that is written as a trace line is parsed to the same command."""

from dataclasses import dataclass, field

import pytest

from kohort.coordinator import commands
from kohort.coordinator.commands import Command, Protocol, Ticket
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.outcome import Outcome
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
)
from tests.coordinator.client_crowd import BOTH
from tests.coordinator.driver import Driver
from tests.coordinator.trace_player import Player, Stanza
from tests.coordinator.trace_writer import format_command, format_config

FIRST, G, A, I1 = Ticket(1), GroupId("g"), MemberId("a-1"), InstanceId("i")
T1, T2, SEVEN = Topic("t1"), Topic("t2"), Uuid((7).to_bytes(16))

OFFSETS = (
    commands.OffsetToCommit(topic=T1, partition=Partition(0), offset=Offset(5)),
    commands.OffsetToCommit(
        topic=T2,
        partition=Partition(3),
        offset=Offset(9),
        leader_epoch=4,
        metadata="some words",
        topic_id=SEVEN,
    ),
    commands.OffsetToCommit(topic=T2, partition=Partition(1), offset=Offset(0), metadata=None),
)

TOPICS = (
    commands.RequestedTopic(topic=T1, partitions=(Partition(0), Partition(1))),
    commands.RequestedTopic(topic=T2, partitions=(Partition(2),), topic_id=SEVEN),
)

COMMANDS: tuple[Command, ...] = (
    commands.JoinGroup(
        ticket=FIRST,
        group_id=G,
        fresh_member_id=A,
        client_id="a",
        client_host="elsewhere",
        session_timeout_ms=Millis(7_001),
        rebalance_timeout_ms=Millis(0),
        protocol_type="connect",
        protocols=(Protocol(name="range", metadata=BOTH), Protocol(name="sticky", metadata=b"?")),
        reason="it's time",
        knows_member_id_required=False,
        knows_skip_assignment=False,
    ),
    commands.JoinGroup(
        ticket=FIRST,
        group_id=G,
        member_id=A,
        fresh_member_id=MemberId(""),
        instance_id=I1,
        client_id="a",
        client_host="h",
        session_timeout_ms=Millis(10_000),
        rebalance_timeout_ms=Millis(60_000),
        protocol_type="consumer",
        protocols=(Protocol(name="range", metadata=BOTH), Protocol(name="range", metadata=BOTH)),
    ),
    commands.SyncGroup(
        ticket=FIRST,
        group_id=G,
        member_id=A,
        instance_id=I1,
        generation=Generation(3),
        protocol_type="consumer",
        protocol="range",
        assignments=(commands.MemberAssignment(member_id=A, assignment=b"share-0"),),
    ),
    commands.Heartbeat(
        ticket=FIRST, group_id=G, member_id=A, instance_id=I1, generation=Generation(-1)
    ),
    commands.Heartbeat(ticket=FIRST, group_id=G, member_id=MemberId(""), generation=Generation(-1)),
    commands.LeaveGroup(
        ticket=FIRST,
        group_id=G,
        members=(
            commands.LeavingMember(member_id=A, reason="so long"),
            commands.LeavingMember(member_id=A, instance_id=I1, reason="so long"),
            commands.LeavingMember(instance_id=I1, reason="so long"),
            commands.LeavingMember(reason="so long"),
        ),
    ),
    commands.CommitOffsets(ticket=FIRST, group_id=G, offsets=OFFSETS),
    commands.CommitOffsets(
        ticket=FIRST,
        group_id=G,
        member_id=A,
        instance_id=I1,
        generation=Generation(3),
        offsets=OFFSETS,
        retention_ms=Millis(99),
        knows_missing_group=False,
    ),
    commands.CommitTransactionOffsets(
        ticket=FIRST,
        group_id=G,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(1),
        member_id=A,
        instance_id=I1,
        generation=Generation(3),
        offsets=OFFSETS,
        knows_loading=False,
    ),
    commands.EndTransaction(ticket=FIRST, producer_id=ProducerId(7), is_commit=True),
    commands.EndTransaction(ticket=FIRST, producer_id=ProducerId(7), is_commit=False),
    commands.FetchOffsets(ticket=FIRST, group_id=G),
    commands.FetchOffsets(ticket=FIRST, group_id=G, topics=TOPICS, require_stable=True),
    commands.DeleteOffsets(ticket=FIRST, group_id=G, topics=TOPICS),
    commands.DescribeGroups(ticket=FIRST, group_ids=(G,)),
    commands.DescribeGroups(ticket=FIRST, group_ids=(G,), knows_missing_group=False),
    commands.ListGroups(ticket=FIRST),
    commands.ListGroups(ticket=FIRST, states=("Stable", "Empty"), types=("classic",)),
    commands.DeleteGroups(ticket=FIRST, group_ids=(G, GroupId("h"))),
    commands.DeleteGroups(ticket=FIRST, group_ids=(G,), removes_members=True),
    commands.TopicsChanged(
        deleted=(commands.DeletedTopic(topic=T1), commands.DeletedTopic(topic=T2, topic_id=SEVEN))
    ),
    commands.Shutdown(),
)


@dataclass
class Listener(Driver):
    """Notes down what it is asked, and answers nothing."""

    asked: list[Command] = field(default_factory=list)

    def decide(self, command: Command) -> Outcome:
        self.asked.append(command)
        return Outcome([], [], {}, [])


@pytest.mark.parametrize("command", COMMANDS, ids=format_command)
def test_written_command_is_parsed_to_the_same_command(command: Command) -> None:
    listener = Listener()

    Player(listener).perform(Stanza([format_command(command)], []))

    assert listener.asked == [command]


def test_written_config_is_parsed_to_the_same_config() -> None:
    config = GroupConfig(group_max_size=3, offsets_retention_ms=Millis(5))
    player = Player()

    player.perform(Stanza([format_config(config)], []))

    assert player.driver.config == config
