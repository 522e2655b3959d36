"""How a test reaches the control operations of a node: in the process, or over HTTP."""

from collections.abc import Mapping
from typing import Any, Protocol


class ControlChannel(Protocol):
    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a control operation and return its result; raises `ControlError`."""
