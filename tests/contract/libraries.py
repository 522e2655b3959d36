"""The client libraries under contract, in the order of the matrix."""

from functools import cache
from importlib import import_module

from tests.contract.clients.client_library import ClientLibrary

CLASSES = {
    "kohort.Consumer": "kohort_client.KohortLibrary",
    "confluent-kafka": "librdkafka_client.LibrdkafkaLibrary",
    "kafka-python": "kafka_python_client.KafkaPythonLibrary",
    "aiokafka": "aiokafka_client.AiokafkaLibrary",
    "Java kafka-clients": "java_client.JavaLibrary",
}


@cache
def library_named(name: str) -> ClientLibrary:
    """Imports a library on first use: a process that needs one does not import all."""
    module, _, word = CLASSES[name].partition(".")
    library: ClientLibrary = getattr(import_module(f"tests.contract.clients.{module}"), word)()
    assert library.name == name
    return library


def every_library() -> tuple[ClientLibrary, ...]:
    return tuple(library_named(name) for name in CLASSES)
