"""Simulated clients of a coordinator, for random and stateful tests.

The test decides which requests they send and when. A client takes its member id and generation from
the replies, so its requests are those of a real client.
"""

from dataclasses import dataclass, field, replace

from kohort.coordinator.commands import (
    NO_GENERATION,
    NO_MEMBER,
    Command,
    CommitOffsets,
    CommitTransactionOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Request,
    SyncGroup,
    Ticket,
    TimerFired,
)
from kohort.coordinator.config import GroupConfig
from kohort.coordinator.groups.classic.group import CONSUMER
from kohort.coordinator.outcome import Outcome
from kohort.coordinator.replies import Joined, Reply, RequestRefused
from kohort.types import (
    ErrorCode,
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
)
from kohort.wire.consumer_protocol import Subscription, encode_subscription
from tests.coordinator.driver import Driver
from tests.coordinator.trace_player import Stanza, Trace
from tests.coordinator.trace_writer import format_command, format_config

ONE = encode_subscription(Subscription(topics=(Topic("t1"),)))
BOTH = encode_subscription(Subscription(topics=(Topic("t1"), Topic("t2"))))

PROTOCOLS = {
    "range": (Protocol(name="range", metadata=ONE),),
    "range-both": (Protocol(name="range", metadata=BOTH),),
    "range-twice": (Protocol(name="range", metadata=ONE), Protocol(name="range", metadata=ONE)),
    "sticky": (Protocol(name="sticky", metadata=ONE),),
    "sticky-range": (Protocol(name="sticky", metadata=ONE), Protocol(name="range", metadata=ONE)),
    "unreadable": (Protocol(name="range", metadata=b"?"),),
}
"""Protocol lists of members, by a name that is readable in a failing example."""

REJOIN_ERRORS = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
)
"""Errors after which a client joins again without a member id."""


@dataclass
class Client:
    name: str
    group_id: GroupId
    instance_id: InstanceId | None = None
    is_old: bool = False
    """Supports neither MEMBER_ID_REQUIRED nor skip_assignment."""
    session_ms: Millis = Millis(10_000)
    rebalance_ms: Millis = Millis(60_000)
    member_id: MemberId = NO_MEMBER
    generation: Generation = NO_GENERATION
    led: tuple[MemberId, ...] = ()
    """The members that it assigns to, if it is the leader."""

    def receive(self, reply: Reply) -> None:
        match reply:
            case Joined():
                self.member_id = reply.member_id
                self.generation = reply.generation
                self.led = tuple(member.member_id for member in reply.members)
            case RequestRefused(error=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = reply.member_id
            case RequestRefused() if reply.error in REJOIN_ERRORS:
                self.restart()
            case _:
                pass

    def restart(self) -> None:
        self.member_id, self.generation, self.led = NO_MEMBER, NO_GENERATION, ()


@dataclass
class Step:
    """One command and its outcome."""

    command: Command
    generation_before: Generation | None
    """The generation of the group, if it existed."""
    outcome: Outcome


@dataclass
class Crowd:
    driver: Driver
    lines: list[str] = field(default_factory=list)
    """All steps as commands of a trace."""
    steps: list[Step] = field(default_factory=list)
    open: dict[Ticket, Client | None] = field(default_factory=dict)
    """Clients of open requests."""
    events_at_start: int = 0
    """How many notes there were when the coordinator was last started."""
    _last_number: int = 0
    _delivered_count: int = 0

    @classmethod
    def with_config(cls, config: GroupConfig) -> "Crowd":
        return cls(Driver(config=config), lines=[format_config(config)])

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def next_ticket(self) -> Ticket:
        return Ticket(self.next_number())

    # Requests

    def send(self, command: Command, client: Client | None = None) -> Outcome:
        group = self.driver.coordinator.groups.get(getattr(command, "group_id", GroupId("")))
        before = None if group is None else group.generation
        if isinstance(command, Request):
            self.open[command.ticket] = client
        self.lines.append(f"at {self.driver.now} {format_command(command)}")
        outcome = self.driver.decide(command)
        self.steps.append(Step(command, before, outcome))
        self.deliver_replies()
        return outcome

    def resend(self, command: Request) -> Outcome:
        """Send an old command again: a retry or a delayed packet."""
        again = replace(command, ticket=self.next_ticket())
        if isinstance(again, JoinGroup):
            again = replace(again, fresh_member_id=MemberId(f"late-{again.ticket}"))
        return self.send(again)

    def deliver_replies(self) -> None:
        """Deliver new replies to their clients, also those that timers caused."""
        for reply in self.driver.replies[self._delivered_count :]:
            client = self.open.pop(reply.ticket, None)
            if client is not None:
                client.receive(reply)
        self._delivered_count = len(self.driver.replies)

    # Time and faults

    def advance(self, until: int) -> None:
        self.lines.append(f"advance {until}")
        for key, outcome in self.driver.advance(until):
            self.steps.append(Step(TimerFired(key=key), None, outcome))
        self.deliver_replies()

    def crash(self, config: GroupConfig | None = None) -> None:
        """Crash and restart the coordinator; open requests are never answered."""
        if config is not None:
            self.driver.config = config
            self.lines.append(format_config(config))
        self.lines.append("crash")
        self.open.clear()
        self.events_at_start = len(self.driver.events)
        self.driver.crash()

    def break_log(self, error: ErrorCode | None) -> None:
        """Make appends fail with this error; None makes them succeed again."""
        self.lines.append(f"fail {'off' if error is None else error.name}")
        self.driver.append_error = error

    def trace(self, head: str) -> Trace:
        """All steps as a trace."""
        return Trace([f"# {head}"], [Stanza([line], []) for line in self.lines])

    # Requests of clients

    def join(self, client: Client, protocols: str = "range", type_: str = CONSUMER) -> Outcome:
        ticket = self.next_ticket()
        command = JoinGroup(
            ticket=ticket,
            group_id=client.group_id,
            member_id=client.member_id,
            fresh_member_id=MemberId(f"{client.name}-{ticket}"),
            instance_id=client.instance_id,
            client_id=client.name,
            client_host="h",
            session_timeout_ms=client.session_ms,
            rebalance_timeout_ms=client.rebalance_ms,
            protocol_type=type_,
            protocols=PROTOCOLS[protocols],
            knows_member_id_required=not client.is_old,
            knows_skip_assignment=not client.is_old,
        )
        return self.send(command, client)

    def sync(self, client: Client, behind: int = 0) -> Outcome:
        """`behind` is the number of generations by which the request is outdated."""
        command = SyncGroup(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=Generation(client.generation - behind),
            assignments=tuple(
                MemberAssignment(member_id=member_id, assignment=f"share-{number}".encode())
                for number, member_id in enumerate(client.led)
            ),
        )
        return self.send(command, client)

    def heartbeat(self, client: Client, behind: int = 0) -> Outcome:
        command = Heartbeat(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=Generation(client.generation - behind),
        )
        return self.send(command, client)

    def leave(self, *clients: Client) -> Outcome:
        leavers = (LeavingMember(member_id=c.member_id, instance_id=c.instance_id) for c in clients)
        return self.remove(clients[0].group_id, *leavers)

    def remove(self, group_id: GroupId, *leavers: LeavingMember) -> Outcome:
        command = LeaveGroup(ticket=self.next_ticket(), group_id=group_id, members=leavers)
        return self.send(command)

    def commit(self, client: Client, *offsets: OffsetToCommit, behind: int = 0) -> Outcome:
        command = CommitOffsets(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=Generation(client.generation - behind),
            offsets=offsets or (self.offset(),),
        )
        return self.send(command, client)

    def commit_simply(self, group_id: GroupId, *offsets: OffsetToCommit) -> Outcome:
        command = CommitOffsets(
            ticket=self.next_ticket(), group_id=group_id, offsets=offsets or (self.offset(),)
        )
        return self.send(command)

    def commit_in_transaction(
        self, client: Client, producer_id: ProducerId, *offsets: OffsetToCommit
    ) -> Outcome:
        command = CommitTransactionOffsets(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            producer_id=producer_id,
            producer_epoch=ProducerEpoch(0),
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=client.generation,
            offsets=offsets or (self.offset(),),
        )
        return self.send(command, client)

    def offset(self, topic: str = "t1", partition: int = 0, metadata: str = "") -> OffsetToCommit:
        return OffsetToCommit(
            topic=Topic(topic),
            partition=Partition(partition),
            offset=Offset(self.next_number()),
            metadata=metadata,
        )

    # Sequences of requests

    def settle(self, *clients: Client, protocols: str = "range", leader_pauses_ms: int = 0) -> None:
        """Let all clients join and sync until the group is stable. While the leader pauses, the
        others repeat their requests."""
        for client in clients:
            self.join(client, protocols)
            if client.member_id and client.generation == NO_GENERATION:
                self.join(client, protocols)
        # Twice, because new members extend the initial delay.
        self.advance(self.driver.now + 2 * self.driver.config.group_initial_rebalance_delay_ms)
        followers = [client for client in clients if not client.led]
        for client in followers:
            self.sync(client)
        if leader_pauses_ms:
            self.advance(self.driver.now + leader_pauses_ms)
            for client in followers:
                self.sync(client)
        for client in clients:
            if client.led:
                self.sync(client)
