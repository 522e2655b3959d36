"""The exceptions of the wire package. Its functions raise no others, whatever their input."""


class WireError(Exception):
    """Base class: a message cannot be decoded or encoded."""


class MalformedMessage(WireError):
    """The bytes are invalid. Reports the message, the field and the position."""

    def __init__(self, message: str, field: str, position: int, reason: str) -> None:
        super().__init__(f"{message}: {field} at byte {position}: {reason}")
        self.message = message
        self.field = field
        self.position = position
        self.reason = reason


class TooLarge(MalformedMessage):
    """The bytes may be valid, but their content exceeds a limit."""


class UnencodableMessage(WireError):
    """A value cannot be encoded: out of range, not nullable, or not in this version."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(f"{message}: {field}: {reason}")
        self.message = message
        self.field = field
        self.reason = reason


class UnsupportedVersion(WireError):
    """The API key or version of a message is not supported."""

    def __init__(self, api_key: int | None, name: str, version: int) -> None:
        super().__init__(f"{name}: version {version} is not supported")
        self.api_key = api_key
        self.name = name
        self.version = version
