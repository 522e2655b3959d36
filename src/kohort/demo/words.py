"""What news are in words: who it is about, and one sentence. Pure."""

from typing import assert_never

from kohort.demo.cast import WAREHOUSE
from kohort.demo.news import (
    Acted,
    Died,
    Ending,
    Explained,
    Explaining,
    Ingested,
    LeftOut,
    Line,
    Rebalanced,
    Returned,
    SparkReady,
)
from kohort.demo.schedule import Act, Deed, Scene
from kohort.types import Millis

TRIGGERS = {
    "member-joined": "{who} joined",
    "subscription-changed": "{who} wants other topics",
    "leader-rejoined": "its leader {who} asked for it",
    "instance-restarted": "{who} was started again",
    "protocol-changed": "{who} came back with other protocols",
    "member-left": "{who} left",
    "member-removed": "{who} was removed",
    "session-expired": "{who} was not heard of any more",
    "join-expired": "{who} did not come back to join",
    "sync-expired": "{who} did not ask for its assignment",
    "assignment-not-stored": "an assignment could not be kept",
    "over-capacity": "it has too many members",
}

_DEEDS = {
    (Deed.STOP, Scene.STORM): "ends, and will be back in a moment: a storm",
    (Deed.STOP, Scene.DEPLOY): "is stopped for a deploy",
    (Deed.STOP, Scene.STATIC_DEPLOY): "is stopped for a deploy; it is static, so nobody will mind",
    (Deed.START, Scene.OPENING): "starts",
    (Deed.START, Scene.DEPLOY): "starts in its new version",
    (Deed.START, Scene.STATIC_DEPLOY): "starts in its new version",
    (Deed.START, Scene.CRASH): "is started again by its supervisor",
    (Deed.START, Scene.STORM): "starts again",
    (Deed.CRASH, Scene.CRASH): "crashes: its process was killed",
    (Deed.THAW, Scene.FREEZE): "goes on as if nothing had happened",
}


def subject_of(news: Line) -> str:
    """Whom a line is about."""
    match news:
        case Acted():
            return news.act.name
        case Rebalanced() | Returned():
            return news.group_id
        case Ingested() | SparkReady():
            return WAREHOUSE
        case Explaining() | Explained():
            return "forensics"
        case Died():
            return news.part
        case LeftOut() | Ending():
            return "demo"
        case _:
            assert_never(news)


def sentence_of(news: Line) -> str:
    """What happened."""
    match news:
        case Acted():
            return say_act(news.act)
        case Rebalanced():
            return say_rebalance(news)
        case Returned():
            return f"{news.name} is back in its place, and nobody had to rebalance"
        case SparkReady() | Ingested():
            return say_warehouse(news)
        case Explaining() | Explained():
            return say_forensics(news)
        case Died():
            return f"has died: {news.why}"
        case LeftOut():
            return f"{news.what} is left out: {news.why}"
        case Ending():
            return f"ends, for {news.why}"
        case _:
            assert_never(news)


def say_act(act: Act) -> str:
    seconds = _seconds(act.for_ms)
    if act.deed is Deed.STALL:
        return f"works on one order for {seconds}, and does not poll meanwhile"
    if act.deed is Deed.FREEZE:
        return f"is frozen for {seconds}, as if its machine was suspended"
    return _DEEDS[act.deed, act.scene]


def say_rebalance(news: Rebalanced) -> str:
    cause = TRIGGERS.get(news.trigger, news.trigger).format(who=news.culprit or "somebody")
    # Why somebody joins is told by its joining; clients add nothing but their ids to it.
    if news.reason and news.trigger != "member-joined":
        cause += f' ("{news.reason}")'
    return f"{cause}; {_say_end(news)}"


def _say_end(news: Rebalanced) -> str:
    took = _seconds(news.took_ms)
    if news.ending == "stable":
        members = _count(news.members, "member")
        return f"generation {news.generation} of {members}, after {took}"
    if news.ending == "empty":
        return f"nobody is left, after {took}"
    if news.ending == "interrupted":
        return f"interrupted by the next rebalance, after {took}"
    return f"{news.ending}, after {took}"


def say_warehouse(news: SparkReady | Ingested) -> str:
    if isinstance(news, SparkReady):
        return "Spark has started, and joins to keep all orders as Parquet"
    bad = f", {news.bad:,} bad ones aside" if news.bad else ""
    lag = "" if news.lag is None else f", lag {news.lag:,}"
    return f"{_count(news.rows, 'order')} in the table{bad}{lag}"


def say_forensics(news: Explaining | Explained) -> str:
    if isinstance(news, Explaining):
        return "begins to explain what has happened so far"
    rebalances = _count(news.rebalances, "rebalance")
    findings = _count(len(news.findings), "finding")
    return f"{rebalances} explained in {news.seconds:.0f} s, {findings}: {news.path}"


def _seconds(millis: Millis) -> str:
    return f"{millis / 1_000:.1f} s"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
