"""How a control operation is refused."""

from collections.abc import Mapping
from typing import Any, ClassVar


class ControlError(Exception):
    """The operation is refused, or did not succeed in time. `details` is a JSON object."""

    http_status: ClassVar[str] = "400 Bad Request"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = details or {}


class UnknownOperation(ControlError):
    http_status = "404 Not Found"
