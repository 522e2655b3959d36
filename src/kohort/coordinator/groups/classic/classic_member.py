"""A member of a classic group. All of it is soft state."""

from dataclasses import dataclass, field

from kohort.coordinator.commands import Protocol, Ticket
from kohort.coordinator.events import MemberInfo
from kohort.coordinator.outcome import TimerKey
from kohort.coordinator.records import ClassicGroupMember
from kohort.types import InstanceId, MemberId, Millis


@dataclass(slots=True)
class ClassicMember:
    """`join_ticket` and `sync_ticket` are the member's parked requests."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None
    is_new: bool = False
    session_timer: TimerKey | None = field(default=None, init=False, repr=False, compare=False)
    """Its key, made with the first heartbeat and used by every later one."""
    _identity: MemberInfo | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_session_suspended(self) -> bool:
        """A member with a parked request need not send heartbeats, except in its first join."""
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    @property
    def identity(self) -> MemberInfo:
        # It never changes, and the events of every rebalance contain it.
        if self._identity is None:
            self._identity = MemberInfo(
                member_id=self.member_id,
                instance_id=self.instance_id,
                client_id=self.client_id,
                client_host=self.client_host,
            )
        return self._identity

    def metadata(self, protocol: str | None) -> bytes:
        for each in self.protocols:
            if each.name == protocol:
                return each.metadata
        return b""


def restore_member(stored: ClassicGroupMember, protocol: str) -> ClassicMember:
    return ClassicMember(
        member_id=stored.member_id,
        instance_id=stored.instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        session_timeout_ms=stored.session_timeout_ms,
        protocols=(Protocol(name=protocol, metadata=stored.subscription),),
        assignment=stored.assignment,
    )
