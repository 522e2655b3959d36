"""Counts the recorded exchanges by API, version and error."""

from collections import Counter
from collections.abc import Iterator

from kohort.types import value
from tests.contract.conversations import recordings
from tests.contract.conversations.comparison import Exchange
from tests.contract.conversations.conversation import find_conversations
from tests.contract.conversations.masks import Json
from tests.contract.conversations.recordings import RECORDED


@value
class RecordedExchange:
    """A recorded exchange and its version; None for raw bytes."""

    file: str
    sentence: str
    version: int | None
    exchange: Exchange


def find_recorded_exchanges() -> Iterator[RecordedExchange]:
    """Every recorded exchange, once for each version."""
    for each in find_conversations():
        for run in recordings.read(RECORDED / f"{each.file}.json").get(each.sentence, ()):
            for version in run.versions:
                for exchange in run.exchanges:
                    spoken = version if exchange.version is None else exchange.version
                    yield RecordedExchange(
                        file=each.file, sentence=each.sentence, version=spoken, exchange=exchange
                    )


def errors_in(answer: Json) -> Iterator[str]:
    """The names of all error codes in a response, including NONE."""
    match answer:
        case dict():
            for name, content in answer.items():
                if name == "error_code" and isinstance(content, str):
                    yield content
                else:
                    yield from errors_in(content)
        case list():
            for item in answer:
                yield from errors_in(item)
        case _:
            return


def count_by_deviation() -> Counter[str]:
    """The number of exchanges with each declared deviation."""
    return Counter(
        held.exchange.deviation.because
        for held in find_recorded_exchanges()
        if held.exchange.deviation
    )
