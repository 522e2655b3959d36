"""SaslHandshake, API key 17: a client names the mechanism it will authenticate by.

It cannot grow: clients up to Kafka 2.4 send the broker's highest version, known to them or not.

Version notes:
 0  the mechanism's tokens follow bare, with a length and no header
 1  they follow in SaslAuthenticate (KIP-152)
"""

from kohort.wire.schema import array, int16, message, string


@message(api_key=17, versions=(0, 1))
class SaslHandshakeRequest:
    mechanism: str = string()


@message(api_key=17, versions=(0, 1))
class SaslHandshakeResponse:
    error_code: int = int16()
    # What the broker would accept, whether or not it accepted what was asked for.
    mechanisms: tuple[str, ...] = array("string")
