"""Formats an event of the demo as a subject and one sentence. Pure."""

from typing import assert_never

from kohort.demo.demo_events import (
    ActionTaken,
    DemoStopping,
    GroupRebalanced,
    LoggedEvent,
    OrdersIngested,
    PartFailed,
    PartSkipped,
    ReportStarted,
    ReportWritten,
    SparkStarted,
    StaticMemberReturned,
)
from kohort.demo.schedule import Action, ActionKind, Incident
from kohort.demo.services import WAREHOUSE
from kohort.text.numbers import count, duration
from kohort.text.rebalances import ended_rebalance

_ACTIONS = {
    (ActionKind.STOP, Incident.STORM): "stops and restarts at once: restart storm",
    (ActionKind.STOP, Incident.DEPLOY): "stops for a deployment",
    (ActionKind.STOP, Incident.STATIC_DEPLOY): "stops for a deployment; static, so no rebalance",
    (ActionKind.START, Incident.STARTUP): "starts",
    (ActionKind.START, Incident.DEPLOY): "starts in its new version",
    (ActionKind.START, Incident.STATIC_DEPLOY): "starts in its new version",
    (ActionKind.START, Incident.CRASH): "is restarted by its supervisor",
    (ActionKind.START, Incident.STORM): "starts again",
    (ActionKind.CRASH, Incident.CRASH): "crashes: its process is killed",
    (ActionKind.RESUME, Incident.SUSPENSION): "is resumed",
}


def subject_of(event: LoggedEvent) -> str:
    """Return the group, consumer or part that the event is about."""
    match event:
        case ActionTaken():
            return event.action.consumer
        case GroupRebalanced() | StaticMemberReturned():
            return event.group_id
        case OrdersIngested() | SparkStarted():
            return WAREHOUSE
        case ReportStarted() | ReportWritten():
            return "forensics"
        case PartFailed():
            return event.part
        case PartSkipped() | DemoStopping():
            return "demo"
        case _:
            assert_never(event)


def sentence_of(event: LoggedEvent) -> str:
    """Return what happened."""
    match event:
        case ActionTaken():
            return _describe_action(event.action)
        case GroupRebalanced():
            return _describe_rebalance(event)
        case StaticMemberReturned():
            return f"{event.name} rejoined without a rebalance"
        case SparkStarted() | OrdersIngested():
            return _describe_ingest(event)
        case ReportStarted() | ReportWritten():
            return _describe_report(event)
        case PartFailed():
            return f"failed: {event.why}"
        case PartSkipped():
            return f"{event.what} is skipped: {event.why}"
        case DemoStopping():
            return f"shutting down: {event.why}"
        case _:
            assert_never(event)


def _describe_action(action: Action) -> str:
    seconds = duration(action.duration_ms)
    if action.kind is ActionKind.STALL:
        return f"processes one order for {seconds} without polling"
    if action.kind is ActionKind.SUSPEND:
        return f"is suspended for {seconds}"
    return _ACTIONS[action.kind, action.incident]


def _describe_rebalance(event: GroupRebalanced) -> str:
    return ended_rebalance(
        trigger=event.trigger,
        initiator=event.initiator,
        reason=event.reason,
        ending=event.result,
        generation=event.generation,
        members=event.members,
        took_ms=event.took_ms,
    )


def _describe_ingest(event: SparkStarted | OrdersIngested) -> str:
    if isinstance(event, SparkStarted):
        return "Spark has started and joins the group to store all orders as Parquet"
    bad = f", {event.bad:,} invalid" if event.bad else ""
    lag = "" if event.lag is None else f", lag {event.lag:,}"
    return f"{count(event.rows, 'order')} in the table{bad}{lag}"


def _describe_report(event: ReportStarted | ReportWritten) -> str:
    if isinstance(event, ReportStarted):
        return "analysing all rebalances so far"
    rebalances = count(event.rebalances, "rebalance")
    findings = count(len(event.findings), "finding")
    return f"{rebalances} analysed in {event.seconds:.0f} s, {findings}: {event.path}"
