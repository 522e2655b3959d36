"""Kohort answers the same requests as Apache Kafka does, except for declared deviations.

Kohort is compared with recorded responses of Kafka; the long tests also compare Kafka with the
recording. `pytest tests/contract/conversations --rewrite` records Kafka's responses again.
"""

from collections.abc import Mapping, Sequence

import pytest

from tests.contract.conversations import recordings
from tests.contract.conversations.broker_pairs import BrokerProfiles
from tests.contract.conversations.comparison import ADDITIONAL_MESSAGE, Exchange, compare
from tests.contract.conversations.conversation import Conversation, find_conversations
from tests.contract.conversations.recordings import RECORDED, find_run, merge

every_conversation = pytest.mark.parametrize(
    "each", find_conversations(), ids=lambda each: f"{each.file}: {each.sentence}"
)


@pytest.mark.full
@every_conversation
def test_kafka_still_answers_as_recorded(
    each: Conversation, kafkas: BrokerProfiles, request: pytest.FixtureRequest
) -> None:
    address = kafkas.address(each.profile)

    found_by_version = {version: each.run(address, version) for version in each.versions}

    if request.config.getoption("rewrite"):
        rewrite(each, found_by_version)
    complaints = find_complaints(each, found_by_version, is_same_broker=True)
    assert not complaints, complaints


@every_conversation
def test_kohort_answers_as_kafka(each: Conversation, kohorts: BrokerProfiles) -> None:
    address = kohorts.address(each.profile)

    found_by_version = {version: each.run(address, version) for version in each.versions}

    complaints = find_complaints(each, found_by_version)
    assert not complaints, complaints


def test_kohort_still_sends_additional_error_messages(kohorts: BrokerProfiles) -> None:
    """Otherwise the tolerance for them could be removed."""
    (each,) = (one for one in find_conversations() if one.sentence == "a damaged batch is refused")
    newest = each.versions[-1]

    found_by_version = each.run(kohorts.address(each.profile), newest)

    assert ADDITIONAL_MESSAGE in compare(recorded(each, newest), found_by_version).tolerated


def find_complaints(
    each: Conversation,
    found_by_version: Mapping[int | None, Sequence[Exchange]],
    *,
    is_same_broker: bool = False,
) -> str:
    """The differences, grouped by versions with equal differences."""
    faults: dict[str, list[str]] = {}
    for version, exchanges in found_by_version.items():
        verdict = compare(recorded(each, version), exchanges, is_same_broker=is_same_broker)
        if not verdict.is_clean:
            faults.setdefault(verdict.explain(), []).append(str(version))
    return "\n".join(f"versions {', '.join(who)}:\n{what}" for what, who in faults.items())


def recorded(each: Conversation, version: int | None) -> tuple[Exchange, ...]:
    """The recorded responses of Kafka; empty if there is no recording."""
    kept = recordings.read(RECORDED / f"{each.file}.json").get(each.sentence, ())
    return find_run(kept, version) or ()


def rewrite(each: Conversation, found_by_version: dict[int | None, list[Exchange]]) -> None:
    path = RECORDED / f"{each.file}.json"
    kept = {**recordings.read(path), each.sentence: merge(found_by_version)}
    order = [one.sentence for one in find_conversations() if one.file == each.file]
    recordings.write(path, {sentence: kept[sentence] for sentence in order if sentence in kept})
