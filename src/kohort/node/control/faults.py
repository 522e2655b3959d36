"""The operations on faults: add, remove, list, clear and wait.

A fault is a rule about requests, or a fault of the disk. Rules are in memory only, so a restart of
the node removes them.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kohort.node.control.errors import ControlError
from kohort.node.control.fault_rules import (
    COORDINATOR_APIS,
    AnswerError,
    Delay,
    Drop,
    FaultAction,
    FaultRule,
    FillDisk,
    RequestMatch,
    Silence,
    SlowSync,
    Truncate,
)
from kohort.node.control.parameters import Parameters
from kohort.node.dispatch import API_NAMES
from kohort.types import ErrorCode

if TYPE_CHECKING:
    from kohort.node.server import Server

Body = Mapping[str, Any]

_WAIT_S: Final = 10.0

_SYNC_GROUP: Final = 14

_WHILE_LOADING: Final[Mapping[int, ErrorCode]] = {
    12: ErrorCode.NONE,
    14: ErrorCode.REBALANCE_IN_PROGRESS,
}
"""As in Kafka: the member may be alive, and clients expect no other error here."""


# Operations


async def add_fault(server: "Server", body: Body) -> Body:
    """Return the fault, with its id."""
    parameters = Parameters(body)
    name = parameters.get_text("action")
    make = _ACTIONS.get(name)
    if make is None:
        raise ControlError(f"unknown action {name}: use one of {', '.join(_ACTIONS)}")
    action, match = make(parameters)
    nth, times = None, None
    if match is not None:
        default_times = 1 if match.is_of_leader else None
        nth = parameters.find_integer("nth", at_least=1)
        times = parameters.find_integer("times", at_least=1)
        if nth is not None and times is not None:
            raise ControlError(f"nth={nth} and times={times} exclude each other: use one of them")
        times = times if times is not None or nth is not None else default_times
        match.check()
    parameters.finish()
    table = server.faults
    if isinstance(action, SlowSync) and not table.has_syncs:
        raise ControlError(
            "slow-sync has no effect with kohort.durability=os, because no response waits for a"
            " sync: start the node with kohort.durability=fsync"
        )
    given = {key: each for key, each in body.items() if each is not None}
    rule = FaultRule(table.next_id(), action, given, match=match, nth=nth, times=times)
    table.add(rule)
    return rule.describe()


async def remove_fault(server: "Server", body: Body) -> Body:
    """Return the fault with its last count. A fault may be removed twice."""
    parameters = Parameters(body)
    rule = _find_rule(server, parameters)
    parameters.finish()
    server.faults.remove(rule.rule_id)
    return rule.describe()


async def list_faults(server: "Server", body: Body) -> Body:
    Parameters(body).finish()
    return {"faults": [rule.describe() for rule in server.faults]}


async def read_fault(server: "Server", body: Body) -> Body:
    """Also one that was removed."""
    parameters = Parameters(body)
    rule = _find_rule(server, parameters)
    parameters.finish()
    return rule.describe()


async def clear_faults(server: "Server", body: Body) -> Body:
    Parameters(body).finish()
    server.faults.clear()
    return {}


async def wait_for_fault(server: "Server", body: Body) -> Body:
    """Return when the fault has acted `count` times."""
    parameters = Parameters(body)
    rule = _find_rule(server, parameters)
    count = parameters.find_integer("count", at_least=1) or 1
    timeout_s = parameters.get_seconds("timeout", _WAIT_S)
    parameters.finish()
    reached = asyncio.Event()
    rule.watch(count, reached.set)
    try:
        async with asyncio.timeout(timeout_s):
            await reached.wait()
    except TimeoutError:
        reason = f"within {timeout_s:g} s"
    else:
        reason = "before it was removed"
    if rule.count < count:
        raise ControlError(
            f"{rule.name} acted {rule.count} times {reason}, but {count} times were expected",
            rule.describe(),
        )
    return rule.describe()


def _find_rule(server: "Server", parameters: Parameters) -> FaultRule:
    rule_id = parameters.get_text("id")
    rule = server.faults.find(rule_id)
    if rule is None:
        known = ", ".join(rule.rule_id for rule in server.faults) or "none"
        raise ControlError(f"there is no fault {rule_id}; the faults of this node are: {known}")
    return rule


# Actions


def _read_error(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    action = AnswerError(error=_read_code(parameters.get_text("error")), error_by_api={})
    return action, _read_match(parameters)


def _read_delay(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    return Delay(seconds=parameters.get_seconds("seconds")), _read_match(parameters)


def _read_drop(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    return Drop(is_after=parameters.get_flag("after")), _read_match(parameters)


def _read_silence(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    return Silence(is_after=parameters.get_flag("after")), _read_match(parameters)


def _read_truncate(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    return Truncate(size=parameters.get_integer("size", at_least=1)), _read_match(parameters)


def _read_moved(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    action = AnswerError(error=ErrorCode.NOT_COORDINATOR, error_by_api={})
    return action, RequestMatch(apis=COORDINATOR_APIS, group=parameters.find_text("group"))


def _read_loading(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    action = AnswerError(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error_by_api=_WHILE_LOADING)
    return action, RequestMatch(apis=COORDINATOR_APIS, group=parameters.find_text("group"))


def _read_lost_sync(parameters: Parameters) -> tuple[FaultAction, RequestMatch]:
    match = RequestMatch(
        apis=frozenset((_SYNC_GROUP,)), group=parameters.get_text("group"), is_of_leader=True
    )
    return Drop(is_after=True), match


def _read_full_disk(_: Parameters) -> tuple[FaultAction, None]:
    return FillDisk(), None


def _read_slow_sync(parameters: Parameters) -> tuple[FaultAction, None]:
    return SlowSync(seconds=parameters.get_seconds("seconds")), None


_ACTIONS: Final[Mapping[str, Callable[[Parameters], tuple[FaultAction, RequestMatch | None]]]] = {
    "error": _read_error,
    "delay": _read_delay,
    "drop": _read_drop,
    "silence": _read_silence,
    "truncate": _read_truncate,
    "coordinator-moved": _read_moved,
    "coordinator-loading": _read_loading,
    "lose-sync-answer": _read_lost_sync,
    "disk-full": _read_full_disk,
    "slow-sync": _read_slow_sync,
}


def _read_match(parameters: Parameters) -> RequestMatch:
    return RequestMatch(
        apis=frozenset(_read_api(each) for each in parameters.get_texts("api")),
        client_id=parameters.find_text("client_id"),
        group=parameters.find_text("group"),
        member=parameters.find_text("member"),
        topic=parameters.find_text("topic"),
    )


def _read_api(text: str) -> int:
    """By name, in any case, or by key."""
    for key, name in API_NAMES.items():
        if text.lower() in (name.lower(), str(key)):
            return key
    raise ControlError(f"unknown API {text}: use one of {', '.join(API_NAMES.values())}")


def _read_code(text: str) -> ErrorCode:
    for code in ErrorCode:
        if text.upper() in (code.name, str(int(code))) and code is not ErrorCode.NONE:
            return code
    from difflib import get_close_matches  # noqa: PLC0415  # only an error needs it

    names = [code.name for code in ErrorCode if code is not ErrorCode.NONE]
    similar = get_close_matches(text.upper(), names) or ("UNKNOWN_MEMBER_ID",)
    raise ControlError(
        f"unknown error {text}: use Kafka's name or number of an error, such as"
        f" {', '.join(similar)}"
    )
