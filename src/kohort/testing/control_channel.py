"""How the control operations of a node are requested: from its process or over HTTP."""

from collections.abc import Mapping
from typing import Any, Protocol


class ControlChannel(Protocol):
    def request(self, operation: str, body: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Raises ControlError if the operation is refused."""
