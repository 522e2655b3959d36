"""Clients of a coordinator, as many as a test wants, each knowing only what it was told.

They are not all well-behaved: whoever moves them decides what they ask and when. Their replies
teach them ids and generations, so that what they ask next is what a real client could ask.
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
    Leaver,
    MemberAssignment,
    OffsetToCommit,
    Protocol,
    Request,
    SyncGroup,
    Ticket,
    TimerFired,
)
from kohort.coordinator.group import CONSUMER
from kohort.coordinator.limits import Limits
from kohort.coordinator.outcome import Outcome
from kohort.coordinator.replies import Joined, Refused, Reply
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
from kohort.wire.embedded import Subscription, encode_subscription
from tests.coordinator.driver import Driver
from tests.coordinator.tracing import Stanza, Trace
from tests.coordinator.writing import limits_line, line_of

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
"""What members may offer, by a name a failing example can be read with."""

LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
"""Errors after which a client begins anew, without an id."""


@dataclass
class Client:
    """One consumer from its own point of view."""

    name: str
    group_id: GroupId
    instance_id: InstanceId | None = None
    is_old: bool = False
    """Knows neither MEMBER_ID_REQUIRED nor that an assignment may be skipped."""
    session_ms: Millis = Millis(10_000)
    rebalance_ms: Millis = Millis(60_000)
    member_id: MemberId = NO_MEMBER
    generation: Generation = NO_GENERATION
    led: tuple[MemberId, ...] = ()
    """Whom it has to assign to, if it leads."""

    def hear(self, reply: Reply) -> None:
        match reply:
            case Joined():
                self.member_id = reply.member_id
                self.generation = reply.generation
                self.led = tuple(member.member_id for member in reply.members)
            case Refused(error=ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = reply.member_id
            case Refused() if reply.error in LOST:
                self.restart()
            case _:
                pass

    def restart(self) -> None:
        self.member_id, self.generation, self.led = NO_MEMBER, NO_GENERATION, ()


@dataclass
class Step:
    """One command with what it met and what came of it."""

    command: Command
    generation_before: Generation | None
    """The group's, where the command names a group that existed."""
    outcome: Outcome


@dataclass
class Crowd:
    driver: Driver
    lines: list[str] = field(default_factory=list)
    """Everything that happened, as the commands of a trace."""
    steps: list[Step] = field(default_factory=list)
    open: dict[Ticket, Client | None] = field(default_factory=dict)
    """Whoever asked and has not been answered yet."""
    life_began: int = 0
    """How many notes there were when the machine was last started."""
    _last_number: int = 0
    _heard_count: int = 0

    @classmethod
    def with_limits(cls, limits: Limits) -> "Crowd":
        return cls(Driver(limits=limits), lines=[limits_line(limits)])

    def next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def next_ticket(self) -> Ticket:
        return Ticket(self.next_number())

    # Asking

    def ask(self, command: Command, client: Client | None = None) -> Outcome:
        group = self.driver.machine.groups.get(getattr(command, "group_id", GroupId("")))
        before = None if group is None else group.roster.generation
        if isinstance(command, Request):
            self.open[command.ticket] = client
        self.lines.append(f"at {self.driver.now} {line_of(command)}")
        outcome = self.driver.decide(command)
        self.steps.append(Step(command, before, outcome))
        self.listen()
        return outcome

    def ask_again(self, command: Request) -> Outcome:
        """Deliver an old command once more, late: a retry, or a packet that took its time."""
        again = replace(command, ticket=self.next_ticket())
        if isinstance(again, JoinGroup):
            again = replace(again, fresh_member_id=MemberId(f"late-{again.ticket}"))
        return self.ask(again)

    def listen(self) -> None:
        """Everyone who was answered hears of it, also of answers that timers brought."""
        for reply in self.driver.replies[self._heard_count :]:
            client = self.open.pop(reply.ticket, None)
            if client is not None:
                client.hear(reply)
        self._heard_count = len(self.driver.replies)

    # What happens to everyone

    def advance(self, until: int) -> None:
        self.lines.append(f"advance {until}")
        for key, outcome in self.driver.advance(until):
            self.steps.append(Step(TimerFired(key=key), None, outcome))
        self.listen()

    def crash(self, limits: Limits | None = None) -> None:
        """The node is gone and comes back; nobody who waited will ever be answered."""
        if limits is not None:
            self.driver.limits = limits
            self.lines.append(limits_line(limits))
        self.lines.append("crash")
        self.open.clear()
        self.life_began = len(self.driver.notes)
        self.driver.crash()

    def break_log(self, error: ErrorCode | None) -> None:
        """From now on the log takes no records; None mends it."""
        self.lines.append(f"fail {'off' if error is None else error.name}")
        self.driver.append_error = error

    def trace(self, head: str) -> Trace:
        """Everything that happened, to be played once more."""
        return Trace([f"# {head}"], [Stanza([line], []) for line in self.lines])

    # What clients ask

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
        return self.ask(command, client)

    def sync(self, client: Client, behind: int = 0) -> Outcome:
        """`behind` so many generations: what a zombie would send."""
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
        return self.ask(command, client)

    def heartbeat(self, client: Client, behind: int = 0) -> Outcome:
        command = Heartbeat(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=Generation(client.generation - behind),
        )
        return self.ask(command, client)

    def leave(self, *clients: Client) -> Outcome:
        leavers = (Leaver(member_id=c.member_id, instance_id=c.instance_id) for c in clients)
        return self.remove(clients[0].group_id, *leavers)

    def remove(self, group_id: GroupId, *leavers: Leaver) -> Outcome:
        command = LeaveGroup(ticket=self.next_ticket(), group_id=group_id, leavers=leavers)
        return self.ask(command)

    def commit(self, client: Client, *offsets: OffsetToCommit, behind: int = 0) -> Outcome:
        command = CommitOffsets(
            ticket=self.next_ticket(),
            group_id=client.group_id,
            member_id=client.member_id,
            instance_id=client.instance_id,
            generation=Generation(client.generation - behind),
            offsets=offsets or (self.offset(),),
        )
        return self.ask(command, client)

    def commit_simply(self, group_id: GroupId, *offsets: OffsetToCommit) -> Outcome:
        command = CommitOffsets(
            ticket=self.next_ticket(), group_id=group_id, offsets=offsets or (self.offset(),)
        )
        return self.ask(command)

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
        return self.ask(command, client)

    def offset(self, topic: str = "t1", partition: int = 0, metadata: str = "") -> OffsetToCommit:
        return OffsetToCommit(
            topic=Topic(topic),
            partition=Partition(partition),
            offset=Offset(self.next_number()),
            metadata=metadata,
        )

    # What well-behaved clients do together

    def settle(self, *clients: Client, protocols: str = "range", leader_pauses_ms: int = 0) -> None:
        """Everyone joins and syncs as often as it is told to, and time passes as it must. While the
        leader pauses, the others lose their patience and ask again."""
        for client in clients:
            self.join(client, protocols)
            if client.member_id and client.generation == NO_GENERATION:
                self.join(client, protocols)
        # Twice: a starting group that grew meanwhile waits once more.
        self.advance(self.driver.now + 2 * self.driver.limits.group_initial_rebalance_delay_ms)
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
