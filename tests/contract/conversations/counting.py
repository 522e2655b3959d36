"""What the recordings hold: how many exchanges, of which API and version, with which errors."""

from collections import Counter
from collections.abc import Iterator

from kohort.types import value
from tests.contract.conversations import recording
from tests.contract.conversations.comparing import Exchange
from tests.contract.conversations.conversation import find_conversations
from tests.contract.conversations.masking import Json
from tests.contract.conversations.recording import RECORDED


@value
class Held:
    """An exchange that was compared, and the version it was in; None for bytes of no API."""

    file: str
    sentence: str
    version: int | None
    exchange: Exchange


def find_held() -> Iterator[Held]:
    """Every exchange that is compared, once for each version it is held in."""
    for each in find_conversations():
        for run in recording.read(RECORDED / f"{each.file}.json").get(each.sentence, ()):
            for version in run.versions:
                for exchange in run.exchanges:
                    spoken = version if exchange.version is None else exchange.version
                    yield Held(
                        file=each.file, sentence=each.sentence, version=spoken, exchange=exchange
                    )


def errors_in(answer: Json) -> Iterator[str]:
    """The names of all errors in an answer, NONE among them."""
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
    """How many exchanges differ, by the reason they do."""
    return Counter(
        held.exchange.deviation.because for held in find_held() if held.exchange.deviation
    )
