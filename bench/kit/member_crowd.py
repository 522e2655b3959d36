"""Scripted members in a separate process, each a connection that speaks the group protocol.

Commands arrive on standard input and results leave on standard output, one JSON line each. The
members form groups and later rebalance them: one member of each group joins again with another
subscription, the others send a heartbeat, learn that they must join, join and sync. Requests are
encoded when a group is formed, except for the generation, so that little work is left to measure.
"""

import argparse
import json
import os
import select
import socket
import sys
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from bench.kit import request_frames
from kohort.types import ErrorCode
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.envelope import decode_response, encode_request

TOPIC: Final = "orders"
SUBSCRIPTIONS: Final = (
    request_frames.subscription(TOPIC),
    request_frames.subscription(TOPIC, "returns"),
)

_PATIENCE_S: Final = 120.0
"""Time without any response while one is outstanding."""

_SERVED_EVERY: Final = 32
"""Connections opened at a time: Kafka's default backlog is 50."""

_LOOKS: Final = 5_000
"""Empty polls, to measure the cost of one."""

_JOIN_AGAIN: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Refused(Exception):
    """The broker answered with an error or closed the connection."""


class Doing(Enum):
    NOTHING = "nothing"
    JOINING = "joining"
    SYNCING = "syncing"
    BEATING = "beating"


@dataclass(slots=True, eq=False)
class Member:
    group: "Group"
    lane: socket.socket
    member_id: str = ""
    generation: int = -1
    doing: Doing = Doing.NOTHING
    subscription: int = 0
    received: bytearray = field(default_factory=bytearray)
    """Of an answer that comes in pieces."""
    joins: tuple[bytes, ...] = ()
    beat: request_frames.Form | None = None
    follow: request_frames.Form | None = None


@dataclass(slots=True, eq=False)
class Group:
    name: str
    members: list[Member] = field(default_factory=list)
    nameless: int = 0
    """Members that have no id yet. All get their ids before the first one joins with its id."""
    leader: Member | None = None
    lead: request_frames.Form | None = None
    generation: int = -1
    synced: int = 0
    """Members that have their share of this generation."""

    @property
    def is_whole(self) -> bool:
        return self.synced == len(self.members)


class Crowd:
    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._lanes: list[socket.socket] = []
        self._by_number: dict[int, Member] = {}
        self._groups: dict[str, Group] = {}
        self._outstanding = 0
        self._is_forming = False
        self._into = bytearray(1 << 20)
        self._look_s = 0.0

    # What can be asked

    def form(self, names: list[str], size: int, at_once: int) -> dict[str, Any]:
        """Form new groups of this size, this many groups at a time, over the same connections."""
        began, told = time.perf_counter(), {}
        self._connect(min(at_once, len(names)) * size)
        self._is_forming = True
        for first in range(0, len(names), at_once):
            groups = self._gather(names[first : first + at_once], size)
            for group in groups:
                for member in group.members:
                    frame = request_frames.join(group.name, "", SUBSCRIPTIONS[0])
                    self._send(member, Doing.JOINING, frame)
            self._listen(groups)
            for group in groups:
                told[group.name] = [group.generation, [each.member_id for each in group.members]]
        self._is_forming = False
        return {"groups": told, "seconds": time.perf_counter() - began}

    def rebalance(self, names: list[str]) -> dict[str, Any]:
        """Rebalance all these groups at once; they must be the last that were formed."""
        groups = [self._groups[name] for name in names]
        triggers = [self._trigger(group) for group in groups]
        self._time_looks()
        began, cpu_began = time.perf_counter(), time.process_time()
        for member in triggers:
            self._join(member)
        for group in groups:
            for member in group.members:
                if member.doing is Doing.NOTHING:
                    self._beat(member)
        empty = self._listen(groups)
        seconds = time.perf_counter() - began
        busy_s = time.process_time() - cpu_began - empty * self._look_s
        return {"seconds": seconds, "generator_cpu_share": max(0.0, busy_s) / seconds}

    def _gather(self, names: list[str], size: int) -> list[Group]:
        lanes = iter(self._lanes)
        groups = [Group(name=name, nameless=size) for name in names]
        for group in groups:
            group.members = [Member(group=group, lane=next(lanes)) for _ in range(size)]
            self._groups[group.name] = group
            self._by_number.update({each.lane.fileno(): each for each in group.members})
        return groups

    def _trigger(self, group: Group) -> Member:
        """The member that changes its subscription; not the leader, whose rejoin is enough."""
        group.synced = 0
        followers = [each for each in group.members if each is not group.leader]
        member = (followers or group.members)[0]
        member.subscription = 1 - member.subscription
        return member

    def _connect(self, count: int) -> None:
        while len(self._lanes) < count:
            lane = socket.create_connection(("127.0.0.1", self._port), _PATIENCE_S)
            lane.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self._lanes) % _SERVED_EVERY == 0:
                lane.sendall(encode_request(ApiVersionsRequest(), 0, 1, request_frames.CLIENT_ID))
                size = request_frames.INT32.unpack(lane.recv(4, socket.MSG_WAITALL))[0]
                lane.recv(size, socket.MSG_WAITALL)
            # With a timeout Python would look before each send and receive whether it may.
            lane.settimeout(None)
            self._lanes.append(lane)
            self._poll.register(lane.fileno(), select.EPOLLIN)

    def _time_looks(self) -> None:
        began = time.process_time()
        for _ in range(_LOOKS):
            self._poll.poll(0)
        self._look_s = (time.process_time() - began) / _LOOKS

    # Listening

    def _listen(self, groups: list[Group]) -> int:
        """Wait for all outstanding responses; return the number of empty polls."""
        empty = 0
        last = time.monotonic()
        while self._outstanding:
            ready = self._poll.poll(0)
            if not ready:
                empty += 1
                if empty % 1000 == 0 and time.monotonic() - last > _PATIENCE_S:
                    raise Refused(f"{self._outstanding} answers are not there in {_PATIENCE_S} s")
                continue
            last = time.monotonic()
            for number, _ in ready:
                self._receive(self._by_number[number])
        left = sum(not group.is_whole for group in groups)
        if left:
            raise Refused(f"{left} of {len(groups)} groups did not come together")
        return empty

    def _receive(self, member: Member) -> None:
        count = member.lane.recv_into(self._into)
        if not count:
            raise Refused("the broker closed a connection")
        answer = memoryview(self._into)[:count]
        if member.received or not _is_complete(answer):
            member.received += answer
            if not _is_complete(member.received):
                return
            answer = memoryview(bytes(member.received))
            member.received = bytearray()
        self._outstanding -= 1
        doing, member.doing = member.doing, Doing.NOTHING
        error = request_frames.error_of(answer)
        if doing is Doing.JOINING:
            self._hear_join(member, answer, error)
        elif error in _JOIN_AGAIN:
            self._join(member)
        elif error:
            raise Refused(f"{doing.value}: {ErrorCode(error).name}")
        elif doing is Doing.SYNCING:
            self._hear_share(member)
        elif not member.group.is_whole:
            # It was quicker than the news.
            self._beat(member)

    def _hear_join(self, member: Member, answer: memoryview, error: int) -> None:
        if self._is_forming:
            self._learn(member, bytes(answer[4:]))
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            group = member.group
            group.nameless -= 1
            if not group.nameless:
                for each in group.members:
                    self._join(each)
        elif error:
            raise Refused(f"joining: {ErrorCode(error).name}")
        else:
            member.generation = request_frames.generation_of(answer)
            group = member.group
            form = group.lead if member is group.leader else member.follow
            assert form is not None, "a member syncs after it has joined"
            self._send(member, Doing.SYNCING, form.fill(member.generation))

    def _learn(self, member: Member, answer: bytes) -> None:
        """Store ids and leaders, outside of the measured time."""
        joined = decode_response(answer, request_frames.JOIN_KEY, request_frames.JOIN_VERSION)[1]
        group, own = member.group, joined.member_id
        if own != member.member_id:
            member.member_id = own
            member.joins = tuple(
                request_frames.join(group.name, own, each) for each in SUBSCRIPTIONS
            )
            member.beat = request_frames.Form(
                lambda generation: request_frames.heartbeat(group.name, own, generation)
            )
            member.follow = request_frames.Form(
                lambda generation: request_frames.sync(group.name, own, generation, {})
            )
        if not joined.error_code and joined.leader == own:
            shares = {
                each.member_id: request_frames.assignment(TOPIC, [number])
                for number, each in enumerate(group.members)
            }
            group.leader = member
            group.lead = request_frames.Form(
                lambda generation: request_frames.sync(group.name, own, generation, shares)
            )

    def _hear_share(self, member: Member) -> None:
        group = member.group
        if member.generation > group.generation:
            group.generation, group.synced = member.generation, 0
        if member.generation == group.generation:
            group.synced += 1
        if self._is_forming and not group.is_whole:
            # Others are still coming: it will be told to join once more.
            self._beat(member)

    # Speaking

    def _join(self, member: Member) -> None:
        self._send(member, Doing.JOINING, member.joins[member.subscription])

    def _beat(self, member: Member) -> None:
        assert member.beat is not None, "a member sends heartbeats after it has joined"
        self._send(member, Doing.BEATING, member.beat.fill(member.generation))

    def _send(self, member: Member, doing: Doing, frame: bytes | bytearray) -> None:
        member.doing = doing
        self._outstanding += 1
        member.lane.sendall(frame)


def _is_complete(answer: memoryview | bytearray) -> bool:
    return len(answer) >= 4 and len(answer) == request_frames.INT32.unpack_from(answer)[0] + 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--core", type=int, help="the core to stay on")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    crowd = Crowd(options.port)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["do"] == "form":
                answer = crowd.form(asked["groups"], asked["size"], asked["at_once"])
            else:
                answer = crowd.rebalance(asked["groups"])
        except (Refused, OSError) as error:
            answer = {"failure": f"{error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        if "failure" in answer:
            return


if __name__ == "__main__":
    main()
