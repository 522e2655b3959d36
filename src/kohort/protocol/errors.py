"""The reasons why a request has no response. The class identifies the step that failed."""


class ProtocolError(Exception):
    """A request failed on the client's side of the protocol."""


class ConnectFailed(ProtocolError):
    """The connection was never ready: host name, connect or version negotiation failed."""


class Disconnected(ProtocolError):
    """A connection that was ready ended before the response came."""


class RequestTimedOut(ProtocolError):
    """The deadline of the request passed."""


class RequestNotSent(ProtocolError):
    """The request cannot be sent to this broker. The connection and other requests go on."""


class UnsupportedByBroker(RequestNotSent):
    """The broker supports no version of the API that we do."""


class UnencodableRequest(RequestNotSent):
    """The request holds a value that the protocol cannot express."""
