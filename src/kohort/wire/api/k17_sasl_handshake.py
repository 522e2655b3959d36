"""SaslHandshake, API key 17: a client chooses the SASL mechanism.

There can be no new version: clients up to Kafka 2.4 send the broker's highest version even if they
do not support it.

Version notes:
 0  the tokens of the mechanism follow with a length and no header
 1  the tokens follow in SaslAuthenticate (KIP-152)
"""

from kohort.wire.schema import array, int16, message, string


@message(api_key=17, versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: str = string()


@message(api_key=17, versions=(0, 1))
class SaslHandshakeResponse:
    error_code: int = int16()
    # All mechanisms that the broker supports, whether or not it accepted the requested one.
    mechanisms: tuple[str, ...] = array("string")
