"""The one exception family of the wire: whatever the bytes or values, nothing else leaves."""


class WireError(Exception):
    """Something cannot be read from bytes or written to them."""


class MalformedMessage(WireError):
    """Bytes that are not what they claim to be; says which message, which field, and where."""

    def __init__(self, message: str, field: str, position: int, reason: str) -> None:
        super().__init__(f"{message}: {field} at byte {position}: {reason}")
        self.message = message
        self.field = field
        self.position = position
        self.reason = reason


class UnencodableMessage(WireError):
    """A value that has no bytes: out of range, null where none may be, or not in this version."""

    def __init__(self, message: str, field: str, reason: str) -> None:
        super().__init__(f"{message}: {field}: {reason}")
        self.message = message
        self.field = field
        self.reason = reason


class UnsupportedVersion(WireError):
    """A well-framed message whose API key or version is not spoken here."""

    def __init__(self, api_key: int | None, name: str, version: int) -> None:
        super().__init__(f"{name}: version {version} is not supported")
        self.api_key = api_key
        self.name = name
        self.version = version
