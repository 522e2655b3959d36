"""Kohort and Apache Kafka, asked the same, say the same; where they differ, the code says why.

Kohort is compared with what Kafka was heard to say, and Kafka, where it can be had, too: so the
recording is true, and both are compared with each other. `pytest tests/contract --rewrite` writes
down what Kafka says now.
"""

from collections.abc import Mapping, Sequence

import pytest

from tests.contract.conversations import recording
from tests.contract.conversations.comparing import FURTHER_WORDS, Exchange, compare
from tests.contract.conversations.conversation import Conversation, find_conversations
from tests.contract.conversations.houses import Houses
from tests.contract.conversations.recording import RECORDED, find_run, merge

every_conversation = pytest.mark.parametrize(
    "each", find_conversations(), ids=lambda each: f"{each.file}: {each.sentence}"
)


@every_conversation
def test_kafka_still_says_what_was_recorded(
    each: Conversation, kafkas: Houses, request: pytest.FixtureRequest
) -> None:
    side = kafkas.side(each.house)

    heard = {version: each.hold(side, version) for version in each.versions}

    if request.config.getoption("rewrite"):
        rewrite(each, heard)
    complaints = judge(each, heard, is_same_broker=True)
    assert not complaints, complaints


@every_conversation
def test_kohort_says_what_kafka_said(each: Conversation, kohorts: Houses) -> None:
    side = kohorts.side(each.house)

    heard = {version: each.hold(side, version) for version in each.versions}

    complaints = judge(each, heard)
    assert not complaints, complaints


def test_reasons_beyond_those_of_kafka_are_still_given(kohorts: Houses) -> None:
    """Or else the tolerance for them could go."""
    (each,) = (one for one in find_conversations() if one.sentence == "a damaged batch is refused")
    newest = each.versions[-1]

    heard = each.hold(kohorts.side(each.house), newest)

    assert FURTHER_WORDS in compare(recorded(each, newest), heard).tolerated


def judge(
    each: Conversation,
    heard: Mapping[int | None, Sequence[Exchange]],
    *,
    is_same_broker: bool = False,
) -> str:
    """What is wrong with what was heard, versions with the same faults together."""
    faults: dict[str, list[str]] = {}
    for version, exchanges in heard.items():
        verdict = compare(recorded(each, version), exchanges, is_same_broker=is_same_broker)
        if not verdict.is_clean:
            faults.setdefault(verdict.explain(), []).append(str(version))
    return "\n".join(f"versions {', '.join(who)}:\n{what}" for what, who in faults.items())


def recorded(each: Conversation, version: int | None) -> tuple[Exchange, ...]:
    """What Kafka said; nothing, if nobody has asked it yet."""
    kept = recording.read(RECORDED / f"{each.file}.json").get(each.sentence, ())
    return find_run(kept, version) or ()


def rewrite(each: Conversation, heard: dict[int | None, list[Exchange]]) -> None:
    path = RECORDED / f"{each.file}.json"
    kept = {**recording.read(path), each.sentence: merge(heard)}
    order = [one.sentence for one in find_conversations() if one.file == each.file]
    recording.write(path, {sentence: kept[sentence] for sentence in order if sentence in kept})
