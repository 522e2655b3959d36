"""Plays one process of a consumer group in virtual time, as the coordinator would see it.

It speaks the group protocol as real clients do and does what the script tells it: work, hang, die,
leave. Heartbeats whose answer nobody would act upon are not sent: one in time for the session, and
the next regular one once a rebalance has begun.
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
    Leaver,
    SyncGroup,
    Ticket,
)
from kohort.coordinator.notes import Party
from kohort.coordinator.replies import HeartbeatHeard, Joined, Refused, Reply, Synced
from kohort.corpus.dice import draw_uuid
from kohort.corpus.holding import Holding
from kohort.corpus.makes import Reason
from kohort.corpus.timeline import Action, Appointment
from kohort.corpus.traits import Traits
from kohort.corpus.witness import Standing
from kohort.types import ErrorCode, MemberId, Millis

if TYPE_CHECKING:
    from kohort.corpus.fleet import Fleet

_SESSION_SLACK_MS = 400
"""The last heartbeat that is in time is this much before the session ends."""

_TRY_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)

_IS_OUT = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class State(Enum):
    OUT = "out"
    """In no group, for now."""
    JOINING = "joining"
    JOINED = "joined"
    """In a generation, without having asked for its share."""
    SYNCING = "syncing"
    IN = "in"
    GONE = "gone"
    """The process has ended."""


class Player:
    def __init__(self, fleet: "Fleet", traits: Traits, chance: Random) -> None:
        self.fleet = fleet
        self.traits = traits
        self.chance = chance
        self.state = State.OUT
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.is_leader = False
        self.holding = Holding(fleet, traits)
        self.stalled_until = 0
        self.is_frozen = False
        self.assign_ms = traits.assign_ms
        self._is_issued = False
        """Its id was only handed out: it has not joined with it yet."""
        self._attempt = 0
        self._heard_ms = 0
        self._phase_ms = chance.randrange(traits.heartbeat_ms)
        self._step: Appointment | None = None
        self._keeping: Appointment | None = None
        self._committing: Appointment | None = None
        self._will_be_told = False

    @property
    def is_alive(self) -> bool:
        return self.state is not State.GONE

    @property
    def is_at_work(self) -> bool:
        """In the group, with its share, and able to do something about it."""
        return self.state is State.IN and not self.is_frozen and self.stalled_until <= self._now

    # What the script tells it

    def start(self) -> None:
        self._plan(self._latency(), partial(self._join, self.traits.make.first_reason))

    def leave(self) -> None:
        """Close as a good client does; a static member just goes, and is missed later."""
        if self.state is State.IN:
            self.commit()
        if self.state is State.GONE:
            return
        if self.traits.instance_id is None:
            self._say_goodbye(Reason.CLOSED)
            self._end()
        else:
            self._die()

    def kill(self) -> None:
        """Its process dies right after its next heartbeat, without a word."""

        def die() -> None:
            if self.state is State.IN and not self.is_frozen:
                self._beat()
            self._die()

        self.fleet.timeline.at(self._next_tick(), die)

    def freeze(self, for_ms: int) -> None:
        """Nothing of it moves for so long, heartbeats included: a pause of its machine."""
        self.fleet.timeline.at(self._next_tick(), partial(self._freeze, for_ms))

    def stall(self, for_ms: int) -> None:
        """It works on one batch for so long. It is heard of, but neither polls nor commits."""
        self.stalled_until = self._now + for_ms
        if for_ms > self.traits.rebalance_ms:
            wait_ms = self.traits.rebalance_ms
            self.fleet.timeline.after(wait_ms, partial(self._give_up, self.stalled_until))

    def rejoin(self, reason: Reason) -> None:
        """It joins again at its next poll, for a reason of its own."""
        if self.state is State.IN:
            self._plan(self._until_poll(), partial(self._join, reason))

    def is_told_of_rebalance(self) -> None:
        """Its next heartbeat will tell it."""
        if self.state is State.IN and not self.is_frozen and not self._will_be_told:
            self._will_be_told = True
            self.fleet.timeline.at(self._next_tick(), self._ask_about_rebalance)

    def commit(self) -> None:
        if self.state is State.IN and self.traits.commit_ms is not None:
            answer = self.holding.commit(self.member_id, self.generation)
            if answer is ErrorCode.NONE:
                self._is_heard()
            elif answer in _IS_OUT:
                self._lose(answer)

    # Joining

    def _join(self, reason: Reason) -> None:
        fleet, traits = self.fleet, self.traits
        if not self._is_issued:
            self.commit()
        if self.state is State.GONE:
            return
        if not fleet.is_cooperative:
            self.holding.give_up()
        self.state = State.JOINING
        self._attempt += 1
        name = traits.instance_id or traits.client_id
        fresh_id = MemberId(f"{name}-{draw_uuid(self.chance)}")
        member_id = self.member_id or (fresh_id if traits.instance_id else NO_MEMBER)
        protocols = self.holding.offers(self.generation)
        if member_id != NO_MEMBER:
            standing = Standing(
                party=self._party(member_id),
                protocols=protocols,
                session_ms=traits.session_ms,
                rebalance_ms=traits.rebalance_ms,
                heard_ms=self._now,
            )
            is_new = self._is_issued or self.member_id == NO_MEMBER
            fleet.witness.joins(standing, is_new=is_new)

        def request(ticket: Ticket) -> JoinGroup:
            return JoinGroup(
                ticket=ticket,
                group_id=fleet.group_id,
                member_id=self.member_id,
                fresh_member_id=fresh_id,
                instance_id=traits.instance_id,
                client_id=traits.client_id,
                client_host=traits.host,
                session_timeout_ms=Millis(traits.session_ms),
                rebalance_timeout_ms=Millis(traits.rebalance_ms),
                protocol_type=fleet.protocol_type,
                protocols=protocols,
                reason=traits.make.say(reason, self.member_id),
            )

        fleet.house.ask(request, partial(self._on_joined, self._attempt, member_id, reason))

    def _on_joined(self, attempt: int, asked: MemberId, reason: Reason, reply: Reply) -> None:
        if isinstance(reply, Joined):
            self.fleet.witness.joined(reply)
        elif isinstance(reply, Refused) and reply.error not in _TRY_AGAIN and asked != NO_MEMBER:
            self.fleet.witness.is_turned_away(asked)
        if attempt != self._attempt or self.state is State.GONE:
            return
        if isinstance(reply, Joined):
            self._enter(reply)
            return
        assert isinstance(reply, Refused)
        if reply.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id, self._is_issued = reply.member_id, True
            self._plan(self._latency(), partial(self._join, Reason.GIVEN_ID))
        elif reply.error in _TRY_AGAIN:
            self._plan(200 + self._latency(), partial(self._join, reason))
        elif reply.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._lose(reply.error)
        else:
            self._end()

    def _enter(self, reply: Joined) -> None:
        self.state = State.JOINED
        self.member_id, self.generation = reply.member_id, reply.generation
        self._is_issued = self._will_be_told = False
        self.is_leader = reply.leader == reply.member_id
        self._is_heard()
        self._keep_alive()
        thinks = self.is_leader and not reply.skip_assignment
        wait_ms = self._latency() + (self.assign_ms if thinks else 0)
        self._plan(wait_ms, partial(self._sync, reply))

    # Syncing

    def _sync(self, joined: Joined) -> None:
        self.state = State.SYNCING
        thinks = self.is_leader and not joined.skip_assignment
        assignments = self.holding.deal(joined) if thinks else ()
        self.fleet.witness.syncs(self.member_id)

        def request(ticket: Ticket) -> SyncGroup:
            return SyncGroup(
                ticket=ticket,
                group_id=self.fleet.group_id,
                member_id=self.member_id,
                instance_id=self.traits.instance_id,
                generation=self.generation,
                protocol_type=joined.protocol_type,
                protocol=joined.protocol,
                assignments=assignments,
            )

        deliver = partial(self._on_synced, self._attempt, self.member_id)
        self.fleet.house.ask(request, deliver)

    def _on_synced(self, attempt: int, asked: MemberId, reply: Reply) -> None:
        if isinstance(reply, Synced):
            self.fleet.witness.synced()
        else:
            self.fleet.witness.sync_is_refused(asked)
        if attempt != self._attempt or self.state is State.GONE:
            return
        if isinstance(reply, Synced):
            self._adopt(reply)
            return
        assert isinstance(reply, Refused)
        if reply.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.state = State.OUT
            self._plan(self._latency(), partial(self._join, Reason.SYNC_FAILED))
        elif reply.error in _TRY_AGAIN:
            self.state = State.OUT
            self._plan(100 + self._latency(), partial(self._join, Reason.NOT_KEPT))
        elif reply.error in _IS_OUT:
            self._lose(reply.error)
        else:
            self._end()

    def _adopt(self, reply: Synced) -> None:
        self.state = State.IN
        revoked = self.holding.adopt(reply.assignment, self.generation)
        self._schedule_commit()
        if revoked and self.fleet.is_cooperative:
            # What was just taken away is committed first, then everyone may have it.
            self.holding.commit_of(revoked, self.member_id, self.generation)
            self._plan(self._latency() + 5, partial(self._join, Reason.REVOKING))
        self.holding.let_go(revoked, clings=self.traits.clings)

    # Being heard of

    def _keep_alive(self) -> None:
        """Set the latest heartbeat that keeps the session; commits meanwhile make it later."""
        latest = self._heard_ms + self.traits.session_ms - _SESSION_SLACK_MS
        tick = latest - (latest - self._phase_ms) % self.traits.heartbeat_ms
        self._cancel(self._keeping)
        soonest = self._now + self.traits.heartbeat_ms
        self._keeping = self.fleet.timeline.at(max(tick, soonest), self._on_keep_alive)

    def _on_keep_alive(self) -> None:
        if self.state in (State.IN, State.JOINED):
            if self._heard_ms + self.traits.session_ms // 2 < self._now:
                self._beat()
            if self.state in (State.IN, State.JOINED):
                self._keep_alive()

    def _ask_about_rebalance(self) -> None:
        self._will_be_told = False
        if self.state is State.IN and not self.is_frozen:
            self._beat()

    def _beat(self) -> None:
        def request(ticket: Ticket) -> Heartbeat:
            return Heartbeat(
                ticket=ticket,
                group_id=self.fleet.group_id,
                member_id=self.member_id,
                instance_id=self.traits.instance_id,
                generation=self.generation,
            )

        self.fleet.house.ask(request, self._on_beaten)

    def _on_beaten(self, reply: Reply) -> None:
        error = reply.error if isinstance(reply, Refused) else ErrorCode.NONE
        if isinstance(reply, HeartbeatHeard) or error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._is_heard()
            if error is not ErrorCode.NONE and self.state is State.IN and self._step is None:
                self._plan(self._until_poll(), partial(self._join, Reason.REBALANCING))
        elif error in _IS_OUT:
            self._lose(error)
        elif error not in _TRY_AGAIN:
            self._end()

    def _is_heard(self) -> None:
        self._heard_ms = self._now
        self.fleet.witness.heard(self.member_id)

    def _lose(self, error: ErrorCode) -> None:
        """The group went on without it: what it held is lost, and it begins anew."""
        self.holding.give_up()
        self.state = State.OUT
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = NO_MEMBER
        self.generation, self._is_issued = NO_GENERATION, False
        self._plan(self._until_poll(), partial(self._join, Reason.UNKNOWN))

    # Ending

    def _say_goodbye(self, reason: Reason) -> None:
        if self.member_id == NO_MEMBER:
            return
        self.fleet.witness.leaves(self.member_id)
        said = self.traits.make.say(reason)
        leaver = Leaver(member_id=self.member_id, reason=said)

        def request(ticket: Ticket) -> LeaveGroup:
            return LeaveGroup(ticket=ticket, group_id=self.fleet.group_id, leavers=(leaver,))

        self._attempt += 1
        self.fleet.house.ask(request, _nobody_listens)

    def _give_up(self, stalled_until: int) -> None:
        """Too long without a poll: its own heartbeat thread takes it out of the group."""
        if self.stalled_until != stalled_until or self.state is not State.IN:
            return
        if self.traits.instance_id is None:
            self._say_goodbye(Reason.POLL_EXPIRED)
        else:
            self.fleet.witness.falls_silent(self.member_id)
        self.holding.give_up()
        self.state = State.OUT
        self.member_id, self.generation = NO_MEMBER, NO_GENERATION
        self._plan(self._until_poll(), partial(self._join, Reason.GAVE_UP))

    def _freeze(self, for_ms: int) -> None:
        if self.state is not State.IN or self.is_frozen:
            return
        self._beat()
        if self.state is not State.IN:
            return
        self._cancel(self._step, self._keeping, self._committing)
        self._step = None
        self.is_frozen = True
        self.fleet.witness.falls_silent(self.member_id)
        self.fleet.timeline.after(for_ms, self._thaw)

    def _thaw(self) -> None:
        self.is_frozen = False
        if self.state is not State.IN:
            return
        self.fleet.witness.speaks_again(self.member_id)
        # A program commits what it has done before its next heartbeat tells what became of it.
        self.commit()
        if self.state is State.IN:
            self._beat()
            self._keep_alive()
            self._schedule_commit()

    def _die(self) -> None:
        if self.state is not State.GONE:
            self.fleet.witness.falls_silent(self.member_id)
            self._end()

    def _end(self) -> None:
        self.state = State.GONE
        self._cancel(self._step, self._keeping, self._committing)

    # Time

    def _schedule_commit(self) -> None:
        if self.traits.commit_ms is not None:
            self._cancel(self._committing)
            self._committing = self.fleet.timeline.after(self.traits.commit_ms, self._on_commit)

    def _on_commit(self) -> None:
        if self.is_at_work:
            self.commit()
        if self.state is State.IN:
            self._schedule_commit()

    def _plan(self, delay_ms: int, action: Action) -> None:
        """Its next step in the protocol, in place of any other."""

        def go() -> None:
            self._step = None
            action()

        self._cancel(self._step)
        self._step = self.fleet.timeline.after(delay_ms, go)

    def _cancel(self, *appointments: Appointment | None) -> None:
        for each in appointments:
            if each is not None:
                each.cancel()

    def _until_poll(self) -> int:
        busy_ms = max(0, self.stalled_until - self._now)
        return busy_ms + self.chance.randrange(self.traits.poll_ms) + 1

    def _latency(self) -> int:
        return 1 + self.chance.randrange(4)

    def _next_tick(self) -> int:
        """When it would send its next regular heartbeat."""
        period = self.traits.heartbeat_ms
        return self._now + period - (self._now - self._phase_ms) % period

    def _party(self, member_id: MemberId) -> Party:
        return Party(
            member_id=member_id,
            instance_id=self.traits.instance_id,
            client_id=self.traits.client_id,
            client_host=self.traits.host,
        )

    @property
    def _now(self) -> Millis:
        return self.fleet.timeline.now


def _nobody_listens(_reply: Reply) -> None:
    """Whoever has left does not care for the answer."""
