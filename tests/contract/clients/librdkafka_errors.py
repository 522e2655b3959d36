"""What librdkafka's errors mean."""

from confluent_kafka import KafkaError

from kohort.types import ErrorCode
from tests.contract.clients.library import NoOffset, Refused


def refusal_of(error: KafkaError) -> Exception:
    """One of our errors for one of its own."""
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._NO_OFFSET):  # noqa: SLF001
        return NoOffset(error.str())
    if error.name() in ("_FATAL", "_FENCED"):
        # A consumer has one reason for it.
        return Refused("FENCED_INSTANCE_ID", error.str())
    if error.code() > 0:
        return Refused(ErrorCode(error.code()).name, error.str())
    return Refused(error.name(), error.str())
