"""A scripted group: its topics, its members, and the actions that a scenario can schedule.

A scenario schedules its actions at fixed times and adds a label for each pathology it causes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

from kohort.coordinator.commands import (
    CommitOffsets,
    LeaveGroup,
    LeavingMember,
    OffsetToCommit,
    Ticket,
)
from kohort.coordinator.replies import Reply
from kohort.types import GroupId, InstanceId, Millis, Offset, Topic, TopicPartition, value
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import Action
from tools.histories.broker import VirtualBroker
from tools.histories.client_profiles import ClientProfile, MemberConfig
from tools.histories.labels import GroupLabel, Labels, LookAlikeLabel, PathologyLabel
from tools.histories.log_growth import LogGrowth
from tools.histories.oracle import GroupPhase, RebalanceOracle
from tools.histories.scripted_member import ScriptedMember

MINUTE: Final = 60_000
_CONDITION_INTERVAL_MS: Final = 250


@value
class HistoryContext:
    """What all groups of a history share."""

    broker: VirtualBroker
    log_growth: LogGrowth
    labels: Labels
    begin: Millis
    end: Millis
    groups: "list[GroupScript]"


@value
class GroupProfile:
    """The defaults of a group's members; a single member may differ."""

    client: ClientProfile
    topics: dict[Topic, list[int]]
    """Records per hour of each partition."""
    assignors: tuple[str, ...] = ("range",)
    protocol_type: str = "consumer"
    session_ms: int = 45_000
    rebalance_ms: int = 300_000
    commit_ms: int | None = 5_000
    poll_ms: int = 400
    is_static: bool = False
    has_own_names: bool = True
    """Whether each member sets its own client id; otherwise the client library's default."""
    metadata: str = ""


class GroupScript:
    def __init__(
        self,
        context: HistoryContext,
        name: str,
        scenario: str,
        profile: GroupProfile,
        streams: RandomStreams,
    ) -> None:
        self.context = context
        self.broker, self.log_growth = context.broker, context.log_growth
        self.scheduler = context.broker.scheduler
        self.group_id = GroupId(name)
        self.scenario = scenario
        self.profile = profile
        self.streams = streams
        self.rng: Random = streams.named("script")
        self.protocol_type = profile.protocol_type
        self.is_cooperative = profile.assignors[0] == "cooperative-sticky"
        self.oracle = RebalanceOracle(self.group_id, self.scheduler, context.labels)
        self.members: list[ScriptedMember] = []
        self.committed: dict[TopicPartition, int] = {}
        self._network = self.rng.randrange(1, 250)
        self._hosts = 0
        self.broker.on_rebalance[self.group_id] = self._on_rebalance
        for topic, rates in profile.topics.items():
            self.log_growth.add(topic, rates, context.begin)
        context.groups.append(self)
        context.labels.groups.append(
            GroupLabel(
                group_id=self.group_id,
                scenario=scenario,
                protocol_type=profile.protocol_type,
                topics=tuple(profile.topics),
            )
        )

    def _on_rebalance(self) -> None:
        for member in self.members:
            member.on_rebalance()

    # Schedule

    def time_at(self, share: float) -> Millis:
        """The time at which this share of the history is over."""
        length = self.context.end - self.context.begin
        return Millis(self.context.begin + round(length * share))

    def at(self, when: int, action: Action) -> None:
        self.scheduler.at(when, action)

    def when(self, condition: Callable[[], bool], action: Action) -> None:
        """Poll the condition, and run the action once when it holds."""

        def check() -> None:
            if condition():
                action()
            else:
                self.scheduler.after(_CONDITION_INTERVAL_MS, check)

        check()

    def when_stable(self, action: Action) -> None:
        self.when(lambda: self.oracle.phase is GroupPhase.STABLE, action)

    # Members

    @property
    def alive(self) -> list[ScriptedMember]:
        return [member for member in self.members if member.is_alive]

    @property
    def leader(self) -> ScriptedMember | None:
        return next((each for each in self.alive if each.member_id == self.oracle.leader), None)

    def new_host(self) -> str:
        self._hosts += 1
        return f"/10.{self._network}.{self._hosts // 200}.{self._hosts % 200 + 1}"

    def member_config(self, number: int, **differing: Any) -> MemberConfig:
        """The configuration of the member with that number."""
        profile = self.profile
        own_name = f"{self.group_id}-{number}"
        default_name = profile.client.default_client_id.format(group=self.group_id)
        instance = InstanceId(f"{self.group_id}-pod-{number}") if profile.is_static else None
        usual = MemberConfig(
            client=profile.client,
            client_id=own_name if profile.has_own_names else default_name,
            host=self.new_host(),
            instance_id=instance,
            topics=frozenset(profile.topics),
            assignors=profile.assignors,
            session_ms=profile.session_ms,
            rebalance_ms=profile.rebalance_ms,
            commit_ms=profile.commit_ms,
            poll_ms=profile.poll_ms,
            metadata=profile.metadata,
        )
        return replace(usual, **differing)

    def launch(self, config: MemberConfig) -> ScriptedMember:
        """Start a member now."""
        member = ScriptedMember(self, config, self.streams.named("player", len(self.members)))
        self.members.append(member)
        member.start()
        return member

    # Actions

    def start(self, count: int, *, at: int | None = None, spread_ms: int = 2_000) -> None:
        """Start this number of members, at random times within `spread_ms`."""
        first = len(self.members)
        for index in range(count):
            config = self.member_config(first + index)
            delay = self.rng.randrange(spread_ms)
            begin = self.context.begin if at is None else at
            self.at(begin + 50 + delay, partial(self.launch, config))

    def restart(self, old: ScriptedMember, after_ms: int, **differing: Any) -> None:
        """Start a new process with the configuration of the old one."""
        self.scheduler.after(after_ms, partial(self.launch, replace(old.config, **differing)))

    def remove_by_admin(self, instance_id: InstanceId) -> None:
        self.oracle.on_removal_by_admin(instance_id)
        leaving = LeavingMember(instance_id=instance_id, reason="member was removed by admin")

        def request(ticket: Ticket) -> LeaveGroup:
            return LeaveGroup(ticket=ticket, group_id=self.group_id, members=(leaving,))

        self.broker.send(request, _ignore)

    def set_offsets(
        self, positions: dict[TopicPartition, int], retention_ms: Millis | None = None
    ) -> None:
        """Commit without a member id, as an operator or a standalone consumer does."""
        offsets = tuple(
            OffsetToCommit(
                topic=each.topic,
                partition=each.partition,
                offset=Offset(position),
                metadata=self.profile.metadata,
            )
            for each, position in positions.items()
        )

        def request(ticket: Ticket) -> CommitOffsets:
            return CommitOffsets(
                ticket=ticket,
                group_id=self.group_id,
                offsets=offsets,
                retention_ms=retention_ms,
            )

        self.broker.send(request, _ignore)
        self.committed.update(positions)

    # Labels

    def label_pathology(
        self, what: str, begin: int, end: int, subject: str | None = None, kind: str | None = None
    ) -> None:
        self.context.labels.pathologies.append(
            PathologyLabel(
                kind=kind or self.scenario,
                group_id=self.group_id,
                from_ms=Millis(begin),
                to_ms=Millis(min(end, self.context.end)),
                subject=subject,
                what=what,
            )
        )

    def label_look_alike(
        self, resembles: str, what: str, begin: int, end: int, subject: str | None = None
    ) -> None:
        self.context.labels.look_alikes.append(
            LookAlikeLabel(
                resembles=resembles,
                group_id=self.group_id,
                from_ms=Millis(begin),
                to_ms=Millis(min(end, self.context.end)),
                subject=subject,
                what=what,
            )
        )


def _ignore(_reply: Reply) -> None:
    """The script does not need the response."""
