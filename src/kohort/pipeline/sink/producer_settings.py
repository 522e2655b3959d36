"""Read the producer's settings from the `kafka.*` options of a write. Pure.

Settings that could lose records silently are refused. A record counts as written when all in-sync
replicas have it.
"""

from collections.abc import Mapping
from typing import Final

from kohort.pipeline.errors import BadSourceOption
from kohort.settings.readers import read_number
from kohort.types import Millis

DEFAULTS: Final[Mapping[str, str]] = {
    "client.id": "kohort-sink",
    # The Java producer's partitioner, so that all writers send a key to the same partition.
    "partitioner": "murmur2_random",
    # Kafka's default; librdkafka's is five minutes.
    "delivery.timeout.ms": "120000",
    # Protects an executor's memory, because several tasks write at once; librdkafka's is 1 GB.
    "queue.buffering.max.kbytes": "65536",
}
"""Defaults that options may change."""

_ALIASES: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "message.timeout.ms": "delivery.timeout.ms",
    "request.required.acks": "acks",
}
"""librdkafka's aliases of settings that are checked here."""

_REFUSED: Final = {
    "transactional.id": "the sink writes at least once, without transactions",
    "delivery.report.only.error": "a record that is not delivered always fails its task",
    "on_delivery": "a record that is not delivered always fails its task",
    "error_cb": "an option is a string, not a function",
    "key.serializer": "cast the column `key` to a string or to binary",
    "value.serializer": "cast the column `value` to a string or to binary",
    "max.request.size": "use kafka.message.max.bytes",
    "buffer.memory": "use kafka.queue.buffering.max.kbytes",
    "max.block.ms": "use kafka.delivery.timeout.ms",
    "partitioner.class": "use kafka.partitioner with librdkafka's names",
    "sasl.jaas.config": "use kafka.sasl.username and kafka.sasl.password",
    "ssl.truststore.location": "use kafka.ssl.ca.location with a PEM file",
}
"""Settings of the Java producer, or unsafe ones, and what to use instead."""


def read_producer_settings(given: Mapping[str, str]) -> dict[str, str]:
    """All settings of the producer; raises BadSourceOption for a setting that is refused."""
    settings: dict[str, str] = {}
    for name, text in given.items():
        if name in _REFUSED:
            raise BadSourceOption(f"there is no option kafka.{name}: {_REFUSED[name]}")
        proper = _ALIASES.get(name, name)
        if proper in settings:
            raise BadSourceOption(f"kafka.{proper} is given twice, once as an alias")
        settings[proper] = text
    if not settings.get("bootstrap.servers", "").strip():
        raise BadSourceOption("kafka.bootstrap.servers is missing: set it to HOST:PORT of a broker")
    _check_durability(settings)
    return {**DEFAULTS, **settings, "enable.idempotence": "true"}


def delivery_ms(settings: Mapping[str, str]) -> Millis:
    """How long the delivery of a record may take, with all retries."""
    return Millis(_positive("delivery.timeout.ms", settings["delivery.timeout.ms"]))


def _check_durability(settings: Mapping[str, str]) -> None:
    if settings.get("enable.idempotence", "true").strip().lower() not in ("true", "t", "1"):
        raise BadSourceOption(
            "kafka.enable.idempotence cannot be false: a broken connection could duplicate or "
            "reorder records; remove the option"
        )
    if settings.get("acks", "all").strip().lower() not in ("all", "-1"):
        raise BadSourceOption(
            f"kafka.acks cannot be {settings['acks']!r}: records that Spark counts as written "
            "could be lost; remove the option, or set it to all"
        )
    if "delivery.timeout.ms" in settings:
        # For librdkafka, 0 means no timeout.
        _positive("delivery.timeout.ms", settings["delivery.timeout.ms"])


def _positive(name: str, text: str) -> int:
    try:
        return read_number(text, 1)
    except ValueError as error:
        raise BadSourceOption(f"kafka.{name} cannot be {text!r}: {error}") from None
