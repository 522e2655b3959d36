"""Numbers, times and Kohort's own words, as people say them. Pure; nothing here is markup."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

TRIGGERS: Final = {
    "member-joined": "a new member joined",
    "subscription-changed": "a member changed what it subscribes to",
    "leader-rejoined": "the leader joined again",
    "instance-restarted": "a static member restarted in mid-assignment",
    "protocol-changed": "a static member came back with another assignor",
    "member-left": "a member left",
    "member-removed": "an administrator removed a member",
    "session-expired": "a member was not heard of within its session timeout",
    "join-expired": "a new member waited too long to get in",
    "sync-expired": "a member never asked for its assignment",
    "assignment-not-stored": "an assignment could not be kept",
    "over-capacity": "the group had more members than it may have",
}

DEEDS: Final = {
    "member-joined": "by joining",
    "subscription-changed": "by changing its subscription",
    "leader-rejoined": "by joining again as the leader",
    "instance-restarted": "by restarting in mid-assignment",
    "protocol-changed": "by coming back with another assignor",
    "member-left": "by leaving",
    "member-removed": "by being removed",
    "session-expired": "by falling silent for longer than its session timeout",
    "join-expired": "by waiting too long to get in",
    "sync-expired": "by never asking for its assignment",
    "assignment-not-stored": "by an assignment that could not be kept",
    "over-capacity": "by being one too many",
}
"""The same triggers, told of whoever pulled them."""

ENDINGS: Final = {
    "stable": "done",
    "empty": "nobody was left",
    "interrupted": "cut short by another one",
    "abandoned": "the broker stopped in the middle",
}

DEPARTURES: Final = {
    "left": "left",
    "removed": "removed by an administrator",
    "session-expired": "session expired",
    "join-expired": "never got in",
    "sync-expired": "never asked for its assignment",
    "not-rejoined": "did not rejoin in time",
    "group-full": "the group was full",
    "replaced": "restarted under the same name",
    "gone": "gone",
}

STATUSES: Final = ("stopped", "stalled", "rewound", "warning", "ok")
"""Of a partition's lag, the worst first."""

SEVERITIES: Final = ("critical", "warning", "notice")


def duration(ms: float) -> str:
    """Two units at the most, and none that says nothing: 850 ms, 4.2 s, 3 min 20 s, 2 d 4 h."""
    if ms < 1000:
        return f"{round(ms)} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    if ms < 3_599_500:
        return _in_two(round(ms / 1_000), 60, "min", "s")
    if ms < 86_370_000:
        return _in_two(round(ms / 60_000), 60, "h", "min")
    return _in_two(round(ms / 3_600_000), 24, "d", "h")


def _in_two(number: int, per: int, large: str, small: str) -> str:
    whole, rest = divmod(number, per)
    return f"{whole:,} {large}" + (f" {rest} {small}" if rest else "")


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """1 rebalance, 1,204 rebalances."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def percent(share: float) -> str:
    """As many digits as mean something."""
    points = share * 100
    if points == 0:
        return "0 %"
    if points < 0.1:
        return "under 0.1 %"
    return f"{points:.1f} %" if points < 10 else f"{points:.0f} %"


def stretch(since_ms: int, until_ms: int) -> str:
    """From when to when; the day is told once where it is the same one."""
    since, until = _at(since_ms), _at(until_ms)
    is_same_day = since.date() == until.date()
    return f"{since:%Y-%m-%d %H:%M} to {until:{'%H:%M' if is_same_day else '%Y-%m-%d %H:%M'}} UTC"


def machine_moment(ms: int) -> str:
    """As HTML's time element wants it."""
    return _at(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _at(ms: int) -> datetime:
    # Any number of milliseconds that Kafka may hold; far ones are cut to what a calendar has.
    return _EPOCH + timedelta(milliseconds=min(max(ms, _LEAST), _MOST))


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST: Final = -62_135_596_800_000
_MOST: Final = 253_402_300_799_999
