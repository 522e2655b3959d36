"""The producer's settings, from the `kafka.*` options of a write.

Pure. A setting that would let records be lost without a word is refused here: what the sink
reports as written has been kept by all replicas that are in sync.
"""

from collections.abc import Mapping
from typing import Final

from kohort.pipeline.errors import BadSourceOption
from kohort.types import Millis

DEFAULTS: Final[Mapping[str, str]] = {
    "client.id": "kohort-sink",
    # As a Java producer does, so that a key goes to the same partition whoever writes it.
    "partitioner": "murmur2_random",
    # Kafka's default; librdkafka's is five minutes.
    "delivery.timeout.ms": "120000",
    # Protects an executor's memory, where several tasks write at once; librdkafka's is 1 GB.
    "queue.buffering.max.kbytes": "65536",
}
"""What a write may change."""

_ALIASES: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "message.timeout.ms": "delivery.timeout.ms",
    "request.required.acks": "acks",
}
"""librdkafka's second names for settings that matter here."""

_REFUSED: Final = {
    "transactional.id": "a write is no transaction: it is made at least once",
    "delivery.report.only.error": "every record that is not delivered fails its task",
    "on_delivery": "every record that is not delivered fails its task",
    "error_cb": "an option is a text, and this is a function",
    "key.serializer": "cast the column `key` to a string or to binary",
    "value.serializer": "cast the column `value` to a string or to binary",
    "max.request.size": "it is called kafka.message.max.bytes here",
    "buffer.memory": "it is called kafka.queue.buffering.max.kbytes here",
    "max.block.ms": "a write waits as long as kafka.delivery.timeout.ms lets records wait",
    "partitioner.class": "it is called kafka.partitioner here, and takes librdkafka's names",
    "sasl.jaas.config": "give kafka.sasl.username and kafka.sasl.password",
    "ssl.truststore.location": "give kafka.ssl.ca.location, a file in PEM format",
}
"""What Java's producer has or what would break a promise, and what to do instead."""


def read_settings(given: Mapping[str, str]) -> dict[str, str]:
    """All that the producer is to be told; BadSourceOption where that cannot be."""
    settings: dict[str, str] = {}
    for name, text in given.items():
        if name in _REFUSED:
            raise BadSourceOption(f"there is no option kafka.{name}: {_REFUSED[name]}")
        proper = _ALIASES.get(name, name)
        if proper in settings:
            raise BadSourceOption(f"kafka.{proper} is given twice, once under another name")
        settings[proper] = text
    if not settings.get("bootstrap.servers", "").strip():
        raise BadSourceOption(
            "kafka.bootstrap.servers is missing: say where a broker is, as HOST:PORT"
        )
    _check_promises(settings)
    return {**DEFAULTS, **settings, "enable.idempotence": "true"}


def delivery_ms(settings: Mapping[str, str]) -> Millis:
    """How long a record may take to be kept, with all attempts."""
    return Millis(_positive("delivery.timeout.ms", settings["delivery.timeout.ms"]))


def _check_promises(settings: Mapping[str, str]) -> None:
    if settings.get("enable.idempotence", "true").strip().lower() not in ("true", "t", "1"):
        raise BadSourceOption(
            "kafka.enable.idempotence cannot be off: records could be written twice or out of "
            "order whenever a connection breaks; leave it out"
        )
    if settings.get("acks", "all").strip().lower() not in ("all", "-1"):
        raise BadSourceOption(
            f"kafka.acks cannot be {settings['acks']!r}: Spark would be told that records are "
            "written which may be lost; leave it out, or say all"
        )
    if "delivery.timeout.ms" in settings:
        # For librdkafka, 0 means for ever.
        _positive("delivery.timeout.ms", settings["delivery.timeout.ms"])


def _positive(name: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise BadSourceOption(f"kafka.{name} cannot be {text!r}: a number of at least 1")
    return number
