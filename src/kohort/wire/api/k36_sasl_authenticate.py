"""SaslAuthenticate, API key 36: one token of the mechanism that SaslHandshake chose (KIP-152).

Client and broker exchange tokens until authentication succeeds or fails.

Version notes:
 1  the session lifetime in the response (KIP-368)
 2  flexible (KIP-482)
"""

from kohort.types import Millis
from kohort.wire.schema import blob, int16, int64, message, string


@message(api_key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateRequest:
    auth_bytes: bytes = blob()


@message(api_key=36, versions=(0, 2), flexible_since=2)
class SaslAuthenticateResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    auth_bytes: bytes = blob()
    # 0 for a session without a time limit.
    session_lifetime_ms: Millis = int64(since=1, ignorable=True)
