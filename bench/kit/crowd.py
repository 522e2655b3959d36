"""Scripted members in a process of their own: each a connection that speaks the group protocol.

Asked on standard input and answering on standard output, a line of JSON each. They form groups, and
later rebalance them: one member of each joins again with another subscription, all others send a
heartbeat, hear that they must join, join and sync. Once a group is formed its members' requests are
spelled, but for the generation, so that little is left to do while time is taken.
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

from bench.kit import spelling
from kohort.types import ErrorCode
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.envelope import decode_response, encode_request

TOPIC: Final = "orders"
SUBSCRIPTIONS: Final = (spelling.subscription(TOPIC), spelling.subscription(TOPIC, "returns"))

_PATIENCE_S: Final = 120.0
"""Without a word from the broker, though somebody waits for one."""

_SERVED_EVERY: Final = 32
"""Connections made before one of them is known to be served: Kafka lets fifty wait by default."""

_LOOKS: Final = 5_000
"""Polls that find nothing, to learn what one costs."""

_JOIN_AGAIN: Final = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Refused(Exception):
    """The broker said something, or nothing, that ends the matter."""


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
    beat: spelling.Form | None = None
    follow: spelling.Form | None = None


@dataclass(slots=True, eq=False)
class Group:
    name: str
    members: list[Member] = field(default_factory=list)
    nameless: int = 0
    """Members that have no id yet. Nobody joins in earnest before all have one."""
    leader: Member | None = None
    lead: spelling.Form | None = None
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
        """New groups of so many members, so many groups at a time, over the same connections."""
        began, told = time.perf_counter(), {}
        self._connect(min(at_once, len(names)) * size)
        self._is_forming = True
        for first in range(0, len(names), at_once):
            groups = self._gather(names[first : first + at_once], size)
            for group in groups:
                for member in group.members:
                    frame = spelling.join(group.name, "", SUBSCRIPTIONS[0])
                    self._send(member, Doing.JOINING, frame)
            self._listen(groups)
            for group in groups:
                told[group.name] = [group.generation, [each.member_id for each in group.members]]
        self._is_forming = False
        return {"groups": told, "seconds": time.perf_counter() - began}

    def rebalance(self, names: list[str]) -> dict[str, Any]:
        """All these at once; of the last that were formed, whose connections are still theirs."""
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
        """Who begins, with another subscription: not the leader, for which to join is enough."""
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
                lane.sendall(encode_request(ApiVersionsRequest(), 0, 1, spelling.CLIENT_ID))
                size = spelling.INT32.unpack(lane.recv(4, socket.MSG_WAITALL))[0]
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
        """Until nobody waits for an answer; how many looks found nothing."""
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
        error = spelling.error_of(answer)
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
            member.generation = spelling.generation_of(answer)
            group = member.group
            form = group.lead if member is group.leader else member.follow
            assert form is not None, "nobody syncs before it has joined"
            self._send(member, Doing.SYNCING, form.fill(member.generation))

    def _learn(self, member: Member, answer: bytes) -> None:
        """Ids and leaders, while nobody takes the time."""
        joined = decode_response(answer, spelling.JOIN_KEY, spelling.JOIN_VERSION)[1]
        group, own = member.group, joined.member_id
        if own != member.member_id:
            member.member_id = own
            member.joins = tuple(spelling.join(group.name, own, each) for each in SUBSCRIPTIONS)
            member.beat = spelling.Form(
                lambda generation: spelling.heartbeat(group.name, own, generation)
            )
            member.follow = spelling.Form(
                lambda generation: spelling.sync(group.name, own, generation, {})
            )
        if not joined.error_code and joined.leader == own:
            shares = {
                each.member_id: spelling.assignment(TOPIC, [number])
                for number, each in enumerate(group.members)
            }
            group.leader = member
            group.lead = spelling.Form(
                lambda generation: spelling.sync(group.name, own, generation, shares)
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
        assert member.beat is not None, "nobody beats before it has joined"
        self._send(member, Doing.BEATING, member.beat.fill(member.generation))

    def _send(self, member: Member, doing: Doing, frame: bytes | bytearray) -> None:
        member.doing = doing
        self._outstanding += 1
        member.lane.sendall(frame)


def _is_complete(answer: memoryview | bytearray) -> bool:
    return len(answer) >= 4 and len(answer) == spelling.INT32.unpack_from(answer)[0] + 4


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
