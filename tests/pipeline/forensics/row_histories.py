"""Small histories of groups as rows with one-letter names, and their silver tables in plain Python.

    build_silver(spark, billing=[
        G(0, 1, M("a", "t0 t1"), M("b", "t2 t3")),      a generation, its members and assignments
        *beats(5, 60, every=5, of="t0 t1 t2 t3"),       commits at regular intervals
        G(63, 2, M("a", "t0 t1 t2 t3")),                b left
        G(90, 3),                                       no members
        D(99),                                          the group is deleted
    ])

Times are seconds, and rows are sorted by time unless told otherwise. A partition is a topic and a
number: t0. The client of a member is its id without the number: a, a2 and a3 are memberships of one
client.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver import commit_runs_table

DAWN = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)

Place: TypeAlias = tuple[str, int]
Rows: TypeAlias = list[dict[str, Any]]


def moment(seconds: float) -> datetime:
    return DAWN + timedelta(milliseconds=round(seconds * 1000))


def places(text: str) -> list[Place]:
    """`t0 t1 pay3` as topics and partitions."""
    found = [re.fullmatch(r"([a-z]+)(\d+)", word) for word in text.split()]
    assert all(found), text
    return [(each.group(1), int(each.group(2))) for each in found if each]


@dataclass(frozen=True, slots=True)
class M:
    """A member: its id, what it got, and whatever else a story needs to say of it."""

    id: str
    got: str = ""
    topics: str = "t"
    owned: str = ""
    instance: str | None = None
    session: float = 10
    rebalance: float = 60
    host: str | None = None

    @property
    def party(self) -> dict[str, Any]:
        client = re.match("[a-z]+", self.id)
        assert client, self.id
        return {
            "member_id": self.id,
            "instance_id": self.instance,
            "client_id": client.group(),
            "client_host": self.host or f"/{client.group()}",
        }

    @property
    def key(self) -> str:
        return f"instance {self.instance}" if self.instance else self.id

    @property
    def row(self) -> dict[str, Any]:
        return {
            **self.party,
            "rebalance_timeout_ms": round(self.rebalance * 1000),
            "session_timeout_ms": round(self.session * 1000),
            "topics": self.topics.split(),
            "owned": places(self.owned),
            "assigned": places(self.got),
        }


class G:
    """A generation that was kept; one without members is a group that has become empty."""

    def __init__(
        self, at: float, number: int, *members: M, leader: str = "", protocol: str = "range"
    ) -> None:
        self.at, self.number, self.members = at, number, members
        self.leader = leader or (members[0].id if members else None)
        self.protocol = protocol if members else None
        self.kind = "formed" if members else "emptied"


@dataclass(frozen=True, slots=True)
class D:
    """The group was deleted."""

    at: float
    number: None = None
    members: tuple[M, ...] = ()
    leader: None = None
    protocol: None = None
    kind: str = "deleted"


@dataclass(frozen=True, slots=True)
class C:
    """A commit, of one offset or of the same one in several places."""

    at: float
    of: str
    offset: int


@dataclass(frozen=True, slots=True)
class X:
    """Offsets were removed or expired."""

    at: float
    of: str


@dataclass(frozen=True, slots=True)
class L:
    """A look at where the log ends."""

    at: float
    of: str
    end: int
    start: int = 0


@dataclass(frozen=True, slots=True)
class E:
    """An event, its fields as in silver's table."""

    at: float
    event: str
    fields: dict[str, Any] = field(default_factory=dict)


def S(  # noqa: N802
    at: float, number: int, trigger: str, initiator: M | None = None, reason: str = ""
) -> E:
    """A rebalance started, in a generation."""
    said = {"generation": number, "trigger": trigger, "client_reason": reason or None}
    return E(at, "rebalance-started", {**said, "initiator": initiator and initiator.party})


@dataclass(frozen=True, slots=True)
class P:
    """A participant: who, after how many seconds its join came, and what it had."""

    member: M
    join: float | None = 0
    had: str = ""

    @property
    def row(self) -> dict[str, Any]:
        return {
            "party": self.member.party,
            "join_took_ms": None if self.join is None else round(self.join * 1000),
            "sync_took_ms": 0,
            "had": places(self.had),
            "got": places(self.member.got),
        }


def R(  # noqa: N802
    at: float,
    number: int,
    trigger: str,
    initiator: M | None,
    *participants: P,
    started: float,
    before: int | None = None,
    ending: str = "stable",
    reason: str = "",
    out: Sequence[tuple[M, str]] = (),
    protocol: str = "range",
) -> E:
    """A rebalance ended: the whole story."""
    joins = [each.join for each in participants if each.join is not None]
    fields = {
        "generation": number,
        "generation_before": number - 1 if before is None else before,
        "trigger": trigger,
        "initiator": initiator and initiator.party,
        "client_reason": reason or None,
        "ending": ending,
        "started_at": moment(started),
        "join_ended_at": moment(started + max(joins, default=0)),
        "join_ended_by": "all-joined",
        "protocol": protocol if participants else None,
        "leader": participants[0].member.id if participants else None,
        "participants": [each.row for each in participants],
        "removals": [{"party": m.party, "departure": departure} for m, departure in out],
    }
    return E(at, "rebalance-ended", fields)


def O(at: float, member: M, departure: str, reason: str = "") -> E:  # noqa: E743, N802
    """A member is out."""
    said = {"party": member.party, "departure": departure, "client_reason": reason or None}
    return E(at, "member-gone", said)


def Z(at: float, member: str, number: int, error: str = "ILLEGAL_GENERATION") -> E:  # noqa: N802
    """A commit was refused."""
    body = f'{{"member_id": "{member}", "generation": {number}, "error": "{error}"}}'
    return E(at, "commit-refused", {"generation": number, "body": body})


Row: TypeAlias = G | D | C | X | L | E


def beats(
    begin: float, end: float, *, every: float, of: str, rate: int = 10, start: int = 0
) -> Iterator[C]:
    """Commits in a rhythm, `rate` records a second since the dawn."""
    count = int((end - begin) // every) + 1
    for at in (begin + every * index for index in range(count)):
        yield C(at, of, start + round(at * rate))


@dataclass
class SilverTables:
    """The silver tables, and bronze's ends."""

    spark: SparkSession
    rows: dict[str, Rows]

    def __getitem__(self, name: str) -> DataFrame:
        table = next(each for each in tables.TABLES if each.name == name)
        return self.spark.createDataFrame(self.rows[name], table.ddl)

    @cached_property
    def generations(self) -> DataFrame:
        return self["generations"]

    @cached_property
    def memberships(self) -> DataFrame:
        return self["memberships"]

    @cached_property
    def ownership(self) -> DataFrame:
        return self["ownership"]

    @cached_property
    def commits(self) -> DataFrame:
        return self["commits"]

    @cached_property
    def commit_runs(self) -> DataFrame:
        return commit_runs_table.build(self.commits)

    @cached_property
    def group_events(self) -> DataFrame:
        return self["group_events"]

    @cached_property
    def ends(self) -> DataFrame:
        return self["ends"]


def build_silver(
    spark: SparkSession,
    groups: Mapping[str, Sequence[Row]] | None = None,
    /,
    *,
    in_order: bool = True,
    **others: Sequence[Row],
) -> SilverTables:
    names = ("generations", "memberships", "ownership", "commits", "group_events", "ends")
    told = SilverTables(spark=spark, rows={name: [] for name in names})
    for name, rows in {**(groups or {}), **others}.items():
        ordered = sorted(rows, key=lambda row: row.at) if in_order else list(rows)
        _Reading(name, told.rows).read(ordered)
    return told


def listed(frame: DataFrame) -> list[dict[str, Any]]:
    """All rows as dictionaries, times as seconds since the dawn."""

    def plain(thing: Any) -> Any:
        if isinstance(thing, datetime):
            return round(thing.timestamp() - DAWN.timestamp(), 3)
        return thing

    return [{k: plain(v) for k, v in row.asDict().items()} for row in frame.collect()]


class _Reading:
    """One group's rows in their order: who is in, who owns what, where each offset is."""

    def __init__(self, group: str, rows: dict[str, Rows]) -> None:
        self.group, self.rows = group, rows
        self.number: int | None = None
        self.members: dict[str, M] = {}
        self.memberships: dict[str, dict[str, Any]] = {}
        self.owned: dict[Place, dict[str, Any]] = {}
        self.lost_at: dict[Place, float] = {}
        self.offsets: dict[Place, int] = {}
        self.owners: dict[Place, M] = {}
        """By the last generation: a commit is its owner's until another generation is kept."""
        self.protocol: str | None = None

    def read(self, rows: Sequence[Row]) -> None:
        for offset, row in enumerate(rows):
            match row:
                case G() | D():
                    self._generation(offset, row)
                case C(at=at, of=of, offset=committed):
                    for place in places(of):
                        self._commit(offset, at, place, committed)
                case X(at=at, of=of):
                    for place in places(of):
                        self._commit(offset, at, place, None)
                case L(at=at, of=of, start=start, end=end):
                    for topic, number in places(of):
                        look = {"at": moment(at), "topic": topic, "partition": number}
                        self.rows["ends"].append({**look, "log_start": start, "log_end": end})
                case E():
                    self._event(offset, row)

    def _generation(self, offset: int, row: G | D) -> None:
        self.rows["generations"].append(
            {
                "group_id": self.group,
                "generation": row.number,
                "at": moment(row.at),
                "partition": 0,
                "offset": offset,
                "kind": row.kind,
                "protocol_type": "consumer",
                "protocol": row.protocol,
                "leader": row.leader,
                "members": [member.row for member in row.members],
            }
        )
        self.number, self.protocol = row.number, row.protocol
        self._join_and_part(row)
        self._share_out(row)

    def _join_and_part(self, row: G | D) -> None:
        present = {member.id: member for member in row.members}
        heirs = {member.instance for member in row.members if member.instance}
        for gone in [each for each in self.members if each not in present]:
            life, member = self.memberships.pop(gone), self.members[gone]
            life["to_at"] = moment(row.at)
            life["ending"] = "replaced" if member.instance in heirs else "gone"
        for member in row.members:
            if member.id not in self.members:
                life = {
                    "group_id": self.group,
                    **member.party,
                    "from_generation": row.number,
                    "from_at": moment(row.at),
                    "is_exact": False,
                }
                self.memberships[member.id] = life
                self.rows["memberships"].append(life)
            self.memberships[member.id]["to_generation"] = row.number
        self.members = present

    def _share_out(self, row: G | D) -> None:
        owners = {place: member for member in row.members for place in places(member.got)}
        self.owners = owners
        for place in [
            each
            for each, held in self.owned.items()
            if each not in owners or owners[each].id != held["member_id"]
        ]:
            self._lose(place, row.at)
        for place, member in owners.items():
            if place not in self.owned:
                self._get(place, member, row)
            self.owned[place]["to_generation"] = row.number

    def _get(self, place: Place, member: M, row: G | D) -> None:
        lost_at = self.lost_at.get(place)
        party = {k: v for k, v in member.party.items() if k != "client_host"}
        held = {
            "group_id": self.group,
            "topic": place[0],
            "partition": place[1],
            **party,
            "from_generation": row.number,
            "from_at": moment(row.at),
            "gap_before_ms": None if lost_at is None else round((row.at - lost_at) * 1000),
        }
        self.owned[place] = held
        self.rows["ownership"].append(held)

    def _lose(self, place: Place, at: float) -> None:
        self.owned.pop(place)["to_at"] = moment(at)
        self.lost_at[place] = at

    def _commit(self, offset: int, at: float, place: Place, committed: int | None) -> None:
        last = self.offsets.get(place)
        owner = self.owners.get(place)
        self.rows["commits"].append(
            {
                "group_id": self.group,
                "topic": place[0],
                "partition": place[1],
                "at": moment(at),
                "log_partition": 0,
                "log_offset": offset,
                "is_removed": committed is None,
                "committed": committed,
                "step": None if last is None or committed is None else committed - last,
                "leader_epoch": -1,
                "metadata": "",
                "owner": owner and owner.id,
                "generation": self.number,
            }
        )
        if committed is None:
            self.offsets.pop(place, None)
        else:
            self.offsets[place] = committed

    def _event(self, offset: int, row: E) -> None:
        where = {"group_id": self.group, "at": moment(row.at), "partition": 0, "offset": offset}
        self.rows["group_events"].append({**where, "event": row.event, "body": "{}", **row.fields})
        is_eager = self.protocol is not None and "cooperative" not in self.protocol
        if row.event == "rebalance-started" and is_eager:
            for place in list(self.owned):
                self._lose(place, row.at)
        if row.event == "member-gone" and row.fields["party"]["member_id"] in self.memberships:
            life = self.memberships[row.fields["party"]["member_id"]]
            life.update(to_at=moment(row.at), ending=row.fields["departure"], is_exact=True)
            del self.memberships[row.fields["party"]["member_id"]]
            del self.members[row.fields["party"]["member_id"]]
