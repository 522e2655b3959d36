"""The client libraries that are held against the contract, in the order of the matrix."""

from functools import cache
from importlib import import_module

from tests.contract.clients.library import Library

HOMES = {
    "kohort.Consumer": "ours.Ours",
    "confluent-kafka": "librdkafka.Librdkafka",
    "kafka-python": "kafka_python.KafkaPython",
    "aiokafka": "aio.Aio",
    "Java kafka-clients": "java.Java",
}


@cache
def library_named(name: str) -> Library:
    """Loaded when it is first asked for: who needs one of them does not load them all."""
    module, _, word = HOMES[name].partition(".")
    library: Library = getattr(import_module(f"tests.contract.clients.{module}"), word)()
    assert library.name == name
    return library


def every_library() -> tuple[Library, ...]:
    return tuple(library_named(name) for name in HOMES)
