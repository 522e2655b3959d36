"""kohort demo: a morning in the life of a consumer group, in virtual time.

The coordinator that decides here is the real one, asked with real commands. Only the clock and the
members are played: three shops' consumers join, one deploys, one stalls until it is given up.
"""

from typing import TYPE_CHECKING

from kohort.coordinator.commands import (
    Command,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    Leaver,
    MemberAssignment,
    Protocol,
    SyncGroup,
    Ticket,
    TimerFired,
)
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.notes import RebalanceEnded, StateChanged
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.coordinator.replies import Joined, Refused, Reply
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Partition, Topic
from kohort.wire.embedded import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)

if TYPE_CHECKING:
    from rich.table import Table

_GROUP = GroupId("checkout")
_ORDERS = Topic("orders")
_PARTITIONS = 6


def run() -> None:
    """Play a group through its day and show why it rebalanced."""
    from rich.console import Console  # noqa: PLC0415  # the other verbs start without it

    console = Console()
    day = _Day()
    day.play()
    console.print(_states(day.changes))
    console.print(_rebalances(day.rebalances))
    console.print(
        "The coordinator decided all of this without a clock, a socket or a disk. "
        "Read on: docs/group-states.md"
    )


class _Day:
    """Carries commands to the coordinator and plays the members that answer it."""

    def __init__(self) -> None:
        self.now = Millis(0)
        self.changes: list[StateChanged] = []
        self.rebalances: list[RebalanceEnded] = []
        self._coordinator = Coordinator()
        self._timers: dict[TimerKey, Millis] = {}
        self._tickets = 0
        self._members: dict[str, MemberId] = {}
        self._coordinator.resume(self.now)

    def play(self) -> None:
        for shop in ("berlin", "lagos", "quito"):
            self._join(shop, f"{shop} opens")
        self._wait_until(20_000, beating=("berlin", "lagos", "quito"))
        self._leave("lagos", "deploying a new version")
        self._join("lagos", "back from the deploy")
        self._wait_until(50_000, beating=("berlin", "lagos", "quito"))
        self._wait_until(80_000, beating=("berlin", "lagos"))

    # Members

    def _join(self, shop: str, reason: str, member_id: MemberId = MemberId("")) -> None:
        subscription = encode_subscription(Subscription(topics=(_ORDERS,)))
        command = JoinGroup(
            ticket=self._ticket(),
            group_id=_GROUP,
            member_id=member_id,
            fresh_member_id=MemberId(f"{shop}-{self._tickets}"),
            client_id=shop,
            client_host=f"/{shop}.example",
            session_timeout_ms=Millis(10_000),
            rebalance_timeout_ms=Millis(30_000),
            protocol_type="consumer",
            protocols=(Protocol(name="range", metadata=subscription),),
            reason=reason,
        )
        outcome = self._decide(command)
        for reply in outcome.replies:
            if isinstance(reply, Refused) and reply.error is ErrorCode.MEMBER_ID_REQUIRED:
                self._members[shop] = reply.member_id
                self._join(shop, reason, reply.member_id)

    def _leave(self, shop: str, reason: str) -> None:
        leaver = Leaver(member_id=self._members.pop(shop), reason=reason)
        self._decide(LeaveGroup(ticket=self._ticket(), group_id=_GROUP, leavers=(leaver,)))

    def _beat(self, shop: str) -> None:
        command = Heartbeat(
            ticket=self._ticket(),
            group_id=_GROUP,
            member_id=self._members[shop],
            generation=self._coordinator.groups[_GROUP].roster.generation,
        )
        for reply in self._decide(command).replies:
            if isinstance(reply, Refused) and reply.error is ErrorCode.REBALANCE_IN_PROGRESS:
                self._join(shop, "the group is rebalancing", self._members[shop])

    def _hear(self, reply: Reply) -> None:
        """The leader divides the partitions; the others ask what is theirs."""
        if not isinstance(reply, Joined):
            return
        shares = {}
        for index, member in enumerate(reply.members):
            owned = tuple(map(Partition, range(index, _PARTITIONS, len(reply.members))))
            shares[member.member_id] = TopicPartitions(topic=_ORDERS, partitions=owned)
        self._decide(
            SyncGroup(
                ticket=self._ticket(),
                group_id=_GROUP,
                member_id=reply.member_id,
                generation=reply.generation,
                assignments=tuple(
                    MemberAssignment(
                        member_id=member_id,
                        assignment=encode_assignment(Assignment(assigned_partitions=(share,))),
                    )
                    for member_id, share in shares.items()
                ),
            )
        )

    # Time and the coordinator

    def _wait_until(self, end: int, beating: tuple[str, ...]) -> None:
        while self.now < end:
            self.now = Millis(self.now + 1_000)
            for key in sorted(key for key, at in self._timers.items() if at <= self.now):
                if self._timers.pop(key, None) is not None:
                    self._decide(TimerFired(key=key))
            if self.now % 3_000 == 0 and self.now > 3_000:
                for shop in beating:
                    self._beat(shop)

    def _decide(self, command: Command) -> Outcome:
        outcome = self._coordinator.decide(command, self.now)
        for record in outcome.records:
            self._coordinator.apply(record)
        for key, deadline in outcome.timers.items():
            self._timers.pop(key, None)
            if deadline is not None:
                self._timers[key] = deadline
        self.changes += [note for note in outcome.notes if isinstance(note, StateChanged)]
        self.rebalances += [note for note in outcome.notes if isinstance(note, RebalanceEnded)]
        for reply in outcome.replies:
            self._hear(reply)
        return outcome

    def _ticket(self) -> Ticket:
        self._tickets += 1
        return Ticket(self._tickets)


def _states(changes: list[StateChanged]) -> "Table":
    from rich.table import Table  # noqa: PLC0415  # as above

    table = Table("at", "from", "to", title=f"group {_GROUP}: its states")
    for change in changes:
        table.add_row(_seconds(change.at), change.before, change.after)
    return table


def _rebalances(ended: list[RebalanceEnded]) -> "Table":
    from rich.table import Table  # noqa: PLC0415  # as above

    table = Table(title="why it rebalanced")
    for heading in ("began", "took", "generation", "trigger", "who", "said"):
        table.add_column(heading, no_wrap=heading != "said")
    for story in ended:
        table.add_row(
            _seconds(story.started_ms),
            _seconds(Millis(story.at - story.started_ms)),
            f"{story.generation_before} -> {story.generation}",
            story.trigger,
            "" if story.culprit is None else story.culprit.client_id,
            story.client_reason or "",
        )
    return table


def _seconds(millis: Millis) -> str:
    return f"{millis / 1000:.0f} s"
