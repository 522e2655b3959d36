"""The table of control operations.

An operation takes a JSON object and returns one, so that it is the same over HTTP and from another
thread of the process. It runs on the node's event loop, where it may wait.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kohort.node.control import clock_operations, faults, group_faults, reset, status, waits
from kohort.node.control.errors import UnknownOperation

if TYPE_CHECKING:
    from kohort.node.server import Server

Body = Mapping[str, Any]
"""What a JSON object contains. Values may be strings, because those of an HTTP query are."""

Operation = Callable[["Server", Body], Awaitable[Body]]

OPERATIONS: Final[Mapping[str, Operation]] = {
    "advance": clock_operations.advance,
    "clock": clock_operations.read_clock,
    "status": status.read_status,
    "reset": reset.reset_node,
    "add-fault": faults.add_fault,
    "fault": faults.read_fault,
    "faults": faults.list_faults,
    "wait-for-fault": faults.wait_for_fault,
    "remove-fault": faults.remove_fault,
    "clear-faults": faults.clear_faults,
    "expire-session": group_faults.expire_session,
    "fence-member": group_faults.fence_member,
    "remove-member": group_faults.remove_member,
    "rebalance": group_faults.rebalance_group,
    "wait": waits.wait,
    "wait-rebalance": waits.wait_rebalance,
    "wait-commit": waits.wait_commit,
}
"""By name, which is also the path over HTTP: `POST /status`."""


async def run_operation(server: "Server", name: str, body: Body) -> Body:
    """Raises `ControlError` if the operation is unknown or refused."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise UnknownOperation(f"unknown operation {name!r}: use one of {', '.join(OPERATIONS)}")
    return await operation(server, body)
