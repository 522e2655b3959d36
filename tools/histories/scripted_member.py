"""One member of a scripted group, in virtual time.

It uses the group protocol as real clients do, and processes, hangs, dies or leaves as the script
says. It skips heartbeats that have no effect: it sends one before its session expires, and the next
regular one after a rebalance has started.
"""

from enum import Enum
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from kohort.coordinator.commands import (
    NO_GENERATION,
    NO_MEMBER,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
    Ticket,
)
from kohort.coordinator.events import MemberInfo
from kohort.coordinator.replies import HeartbeatAccepted, Joined, Reply, RequestRefused, Synced
from kohort.types import ErrorCode, MemberId, Millis
from kohort.virtual_time.rng import random_uuid
from kohort.virtual_time.scheduler import Action, ScheduledCall
from tools.histories.assignment_state import AssignmentState
from tools.histories.client_profiles import MemberConfig, Reason
from tools.histories.oracle import OracleMember

if TYPE_CHECKING:
    from tools.histories.group_script import GroupScript

_SESSION_SLACK_MS = 400
"""The last heartbeat is at least this long before the end of the session."""

_RETRIABLE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

_REMOVED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ScriptedMemberState(Enum):
    UNJOINED = "unjoined"
    """Not in the group."""
    JOINING = "joining"
    JOINED = "joined"
    """It has a join response and has not sent its SyncGroup request."""
    SYNCING = "syncing"
    STABLE = "stable"
    STOPPED = "stopped"
    """The process has ended."""


class ScriptedMember:
    def __init__(self, group: "GroupScript", config: MemberConfig, rng: Random) -> None:
        self.group = group
        self.config = config
        self.rng = rng
        self.state = ScriptedMemberState.UNJOINED
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.is_leader = False
        self.assignment = AssignmentState(group, config)
        self.busy_until = 0
        self.is_paused = False
        self.assign_ms = config.assign_ms
        self._has_unused_id = False
        """The coordinator issued its member id (KIP-394), and it has not joined with it yet."""
        self._attempt = 0
        self._last_contact_ms = 0
        self._heartbeat_offset_ms = rng.randrange(config.heartbeat_ms)
        self._step_call: ScheduledCall | None = None
        self._keep_alive_call: ScheduledCall | None = None
        self._commit_call: ScheduledCall | None = None
        self._heartbeat_is_scheduled = False

    @property
    def is_alive(self) -> bool:
        return self.state is not ScriptedMemberState.STOPPED

    @property
    def is_processing(self) -> bool:
        """In the group, assigned, and neither paused nor busy."""
        return (
            self.state is ScriptedMemberState.STABLE
            and not self.is_paused
            and self.busy_until <= self._now
        )

    # Actions of the script

    def start(self) -> None:
        self._schedule_step(self._latency(), partial(self._join, self.config.client.first_reason))

    def leave(self) -> None:
        """Close the consumer. A static member sends no LeaveGroup request (KIP-345)."""
        if self.state is ScriptedMemberState.STABLE:
            self.commit()
        if self.state is ScriptedMemberState.STOPPED:
            return
        if self.config.instance_id is None:
            self._send_leave(Reason.CLOSED)
            self._end()
        else:
            self._stop_silently()

    def kill(self) -> None:
        """The process dies right after its next heartbeat."""

        def die() -> None:
            if self.state is ScriptedMemberState.STABLE and not self.is_paused:
                self._send_heartbeat()
            self._stop_silently()

        self.group.scheduler.at(self._next_heartbeat_ms(), die)

    def pause(self, for_ms: int) -> None:
        """The whole process pauses, including heartbeats."""
        self.group.scheduler.at(self._next_heartbeat_ms(), partial(self._start_pause, for_ms))

    def stall(self, for_ms: int) -> None:
        """Process one batch: it sends heartbeats, but neither polls nor commits."""
        self.busy_until = self._now + for_ms
        if for_ms > self.config.rebalance_ms:
            wait_ms = self.config.rebalance_ms
            self.group.scheduler.after(wait_ms, partial(self._on_poll_timeout, self.busy_until))

    def rejoin(self, reason: Reason) -> None:
        """It joins again at its next poll."""
        if self.state is ScriptedMemberState.STABLE:
            self._schedule_step(self._until_poll(), partial(self._join, reason))

    def on_rebalance(self) -> None:
        """The response to its next heartbeat will be REBALANCE_IN_PROGRESS."""
        if (
            self.state is ScriptedMemberState.STABLE
            and not self.is_paused
            and not self._heartbeat_is_scheduled
        ):
            self._heartbeat_is_scheduled = True
            self.group.scheduler.at(self._next_heartbeat_ms(), self._heartbeat_for_rebalance)

    def commit(self) -> None:
        if self.state is ScriptedMemberState.STABLE and self.config.commit_ms is not None:
            error = self.assignment.commit(self.member_id, self.generation)
            if error is ErrorCode.NONE:
                self._on_contact()
            elif error in _REMOVED:
                self._rejoin_as_new(error)

    # Joining

    def _join(self, reason: Reason) -> None:
        group, config = self.group, self.config
        if not self._has_unused_id:
            self.commit()
        if self.state is ScriptedMemberState.STOPPED:
            return
        if not group.is_cooperative:
            self.assignment.revoke_all()
        self.state = ScriptedMemberState.JOINING
        self._attempt += 1
        name = config.instance_id or config.client_id
        fresh_id = MemberId(f"{name}-{random_uuid(self.rng)}")
        member_id = self.member_id or (fresh_id if config.instance_id else NO_MEMBER)
        protocols = self.assignment.protocols(self.generation)
        if member_id != NO_MEMBER:
            joining = OracleMember(
                identity=self._identity(member_id),
                protocols=protocols,
                session_ms=config.session_ms,
                rebalance_ms=config.rebalance_ms,
                last_contact_ms=self._now,
            )
            is_new = self._has_unused_id or self.member_id == NO_MEMBER
            group.oracle.on_join_request(joining, is_new=is_new)

        def request(ticket: Ticket) -> JoinGroup:
            return JoinGroup(
                ticket=ticket,
                group_id=group.group_id,
                member_id=self.member_id,
                fresh_member_id=fresh_id,
                instance_id=config.instance_id,
                client_id=config.client_id,
                client_host=config.host,
                session_timeout_ms=Millis(config.session_ms),
                rebalance_timeout_ms=Millis(config.rebalance_ms),
                protocol_type=group.protocol_type,
                protocols=protocols,
                reason=config.client.reason_text(reason, self.member_id),
            )

        group.broker.send(
            request, partial(self._on_join_response, self._attempt, member_id, reason)
        )

    def _on_join_response(
        self, attempt: int, requested_id: MemberId, reason: Reason, reply: Reply
    ) -> None:
        if isinstance(reply, Joined):
            self.group.oracle.on_join_response(reply)
        elif (
            isinstance(reply, RequestRefused)
            and reply.error not in _RETRIABLE
            and requested_id != NO_MEMBER
        ):
            self.group.oracle.on_join_error(requested_id)
        if attempt != self._attempt or self.state is ScriptedMemberState.STOPPED:
            return
        if isinstance(reply, Joined):
            self._on_joined(reply)
            return
        assert isinstance(reply, RequestRefused)
        if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self._has_unused_id = reply.member_id, True
            self._schedule_step(self._latency(), partial(self._join, Reason.GIVEN_ID))
        elif reply.error in _RETRIABLE:
            self._schedule_step(200 + self._latency(), partial(self._join, reason))
        elif reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._rejoin_as_new(reply.error)
        else:
            self._end()

    def _on_joined(self, reply: Joined) -> None:
        self.state = ScriptedMemberState.JOINED
        self.member_id, self.generation = reply.member_id, reply.generation
        self._has_unused_id = self._heartbeat_is_scheduled = False
        self.is_leader = reply.leader == reply.member_id
        self._on_contact()
        self._keep_alive()
        assigns = self.is_leader and not reply.skip_assignment
        wait_ms = self._latency() + (self.assign_ms if assigns else 0)
        self._schedule_step(wait_ms, partial(self._sync, reply))

    # Syncing

    def _sync(self, joined: Joined) -> None:
        self.state = ScriptedMemberState.SYNCING
        assigns = self.is_leader and not joined.skip_assignment
        assignments = self.assignment.assign(joined) if assigns else ()
        self.group.oracle.on_sync_request(self.member_id)

        def request(ticket: Ticket) -> SyncGroup:
            return SyncGroup(
                ticket=ticket,
                group_id=self.group.group_id,
                member_id=self.member_id,
                instance_id=self.config.instance_id,
                generation=self.generation,
                protocol_type=joined.protocol_type,
                protocol=joined.protocol,
                assignments=assignments,
            )

        deliver = partial(self._on_sync_response, self._attempt, self.member_id)
        self.group.broker.send(request, deliver)

    def _on_sync_response(self, attempt: int, requested_id: MemberId, reply: Reply) -> None:
        if isinstance(reply, Synced):
            self.group.oracle.on_sync_response()
        else:
            self.group.oracle.on_sync_error(requested_id)
        if attempt != self._attempt or self.state is ScriptedMemberState.STOPPED:
            return
        if isinstance(reply, Synced):
            self._on_assignment(reply)
            return
        assert isinstance(reply, RequestRefused)
        if reply.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.state = ScriptedMemberState.UNJOINED
            self._schedule_step(self._latency(), partial(self._join, Reason.SYNC_FAILED))
        elif reply.error in _RETRIABLE:
            self.state = ScriptedMemberState.UNJOINED
            self._schedule_step(100 + self._latency(), partial(self._join, Reason.NOT_STORED))
        elif reply.error in _REMOVED:
            self._rejoin_as_new(reply.error)
        else:
            self._end()

    def _on_assignment(self, reply: Synced) -> None:
        self.state = ScriptedMemberState.STABLE
        revoked = self.assignment.adopt(reply.assignment, self.generation)
        self._schedule_commit()
        if revoked and self.group.is_cooperative:
            # Commit the revoked partitions before another member gets them.
            self.assignment.commit_partitions(revoked, self.member_id, self.generation)
            self._schedule_step(self._latency() + 5, partial(self._join, Reason.REVOKING))
        self.assignment.revoke(revoked, keeps_revoked=self.config.keeps_revoked)

    # Heartbeats

    def _keep_alive(self) -> None:
        """Schedule the last heartbeat before the session expires; a commit postpones it."""
        latest = self._last_contact_ms + self.config.session_ms - _SESSION_SLACK_MS
        heartbeat_ms = latest - (latest - self._heartbeat_offset_ms) % self.config.heartbeat_ms
        self._cancel(self._keep_alive_call)
        soonest = self._now + self.config.heartbeat_ms
        self._keep_alive_call = self.group.scheduler.at(
            max(heartbeat_ms, soonest), self._on_keep_alive
        )

    def _on_keep_alive(self) -> None:
        if self.state in (ScriptedMemberState.STABLE, ScriptedMemberState.JOINED):
            if self._last_contact_ms + self.config.session_ms // 2 < self._now:
                self._send_heartbeat()
            if self.state in (ScriptedMemberState.STABLE, ScriptedMemberState.JOINED):
                self._keep_alive()

    def _heartbeat_for_rebalance(self) -> None:
        self._heartbeat_is_scheduled = False
        if self.state is ScriptedMemberState.STABLE and not self.is_paused:
            self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        def request(ticket: Ticket) -> Heartbeat:
            return Heartbeat(
                ticket=ticket,
                group_id=self.group.group_id,
                member_id=self.member_id,
                instance_id=self.config.instance_id,
                generation=self.generation,
            )

        self.group.broker.send(request, self._on_heartbeat_response)

    def _on_heartbeat_response(self, reply: Reply) -> None:
        error = reply.error if isinstance(reply, RequestRefused) else ErrorCode.NONE
        if isinstance(reply, HeartbeatAccepted) or error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_contact()
            if (
                error is not ErrorCode.NONE
                and self.state is ScriptedMemberState.STABLE
                and self._step_call is None
            ):
                self._schedule_step(self._until_poll(), partial(self._join, Reason.REBALANCING))
        elif error in _REMOVED:
            self._rejoin_as_new(error)
        elif error not in _RETRIABLE:
            self._end()

    def _on_contact(self) -> None:
        self._last_contact_ms = self._now
        self.group.oracle.on_contact(self.member_id)

    def _rejoin_as_new(self, error: ErrorCode) -> None:
        """The coordinator removed it: it loses its partitions and joins again."""
        self.assignment.revoke_all()
        self.state = ScriptedMemberState.UNJOINED
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = NO_MEMBER
        self.generation, self._has_unused_id = NO_GENERATION, False
        self._schedule_step(self._until_poll(), partial(self._join, Reason.UNKNOWN))

    # Ending

    def _send_leave(self, reason: Reason) -> None:
        if self.member_id == NO_MEMBER:
            return
        self.group.oracle.on_leave_request(self.member_id)
        reason_text = self.config.client.reason_text(reason)
        leaving = LeavingMember(member_id=self.member_id, reason=reason_text)

        def request(ticket: Ticket) -> LeaveGroup:
            return LeaveGroup(ticket=ticket, group_id=self.group.group_id, members=(leaving,))

        self._attempt += 1
        self.group.broker.send(request, _ignore)

    def _on_poll_timeout(self, busy_until: int) -> None:
        """max.poll.interval.ms is over: its heartbeat thread leaves the group."""
        if self.busy_until != busy_until or self.state is not ScriptedMemberState.STABLE:
            return
        if self.config.instance_id is None:
            self._send_leave(Reason.POLL_EXPIRED)
        else:
            self.group.oracle.on_process_silent(self.member_id)
        self.assignment.revoke_all()
        self.state = ScriptedMemberState.UNJOINED
        self.member_id, self.generation = NO_MEMBER, NO_GENERATION
        self._schedule_step(self._until_poll(), partial(self._join, Reason.GAVE_UP))

    def _start_pause(self, for_ms: int) -> None:
        if self.state is not ScriptedMemberState.STABLE or self.is_paused:
            return
        self._send_heartbeat()
        if self.state is not ScriptedMemberState.STABLE:
            return
        self._cancel(self._step_call, self._keep_alive_call, self._commit_call)
        self._step_call = None
        self.is_paused = True
        self.group.oracle.on_process_silent(self.member_id)
        self.group.scheduler.after(for_ms, self._end_pause)

    def _end_pause(self) -> None:
        self.is_paused = False
        if self.state is not ScriptedMemberState.STABLE:
            return
        self.group.oracle.on_process_resumed(self.member_id)
        # A program commits before its next heartbeat response says that it was removed.
        self.commit()
        if self.state is ScriptedMemberState.STABLE:
            self._send_heartbeat()
            self._keep_alive()
            self._schedule_commit()

    def _stop_silently(self) -> None:
        if self.state is not ScriptedMemberState.STOPPED:
            self.group.oracle.on_process_silent(self.member_id)
            self._end()

    def _end(self) -> None:
        self.state = ScriptedMemberState.STOPPED
        self._cancel(self._step_call, self._keep_alive_call, self._commit_call)

    # Time

    def _schedule_commit(self) -> None:
        if self.config.commit_ms is not None:
            self._cancel(self._commit_call)
            self._commit_call = self.group.scheduler.after(self.config.commit_ms, self._on_commit)

    def _on_commit(self) -> None:
        if self.is_processing:
            self.commit()
        if self.state is ScriptedMemberState.STABLE:
            self._schedule_commit()

    def _schedule_step(self, delay_ms: int, action: Action) -> None:
        """Schedule its next protocol step; replaces the one scheduled before."""

        def go() -> None:
            self._step_call = None
            action()

        self._cancel(self._step_call)
        self._step_call = self.group.scheduler.after(delay_ms, go)

    def _cancel(self, *calls: ScheduledCall | None) -> None:
        for each in calls:
            if each is not None:
                each.cancel()

    def _until_poll(self) -> int:
        busy_ms = max(0, self.busy_until - self._now)
        return busy_ms + self.rng.randrange(self.config.poll_ms) + 1

    def _latency(self) -> int:
        return 1 + self.rng.randrange(4)

    def _next_heartbeat_ms(self) -> int:
        """The time of its next regular heartbeat."""
        period = self.config.heartbeat_ms
        return self._now + period - (self._now - self._heartbeat_offset_ms) % period

    def _identity(self, member_id: MemberId) -> MemberInfo:
        return MemberInfo(
            member_id=member_id,
            instance_id=self.config.instance_id,
            client_id=self.config.client_id,
            client_host=self.config.host,
        )

    @property
    def _now(self) -> Millis:
        return self.group.scheduler.now_ms


def _ignore(_reply: Reply) -> None:
    """A member that has left ignores the response."""
