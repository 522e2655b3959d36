"""The schema agrees with itself, and with its meanings."""

import dataclasses

import pytest

from kohort.events.fields import ALWAYS, FIELDS, MEANINGS, OBJECTS
from kohort.events.schema import EVENTS

CLASSES = [*EVENTS.values(), *OBJECTS.values()]


def test_every_event_and_object_has_a_meaning() -> None:
    assert set(MEANINGS) == set(FIELDS) == set(CLASSES)
    assert len(set(EVENTS.values())) == len(EVENTS)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_has_a_meaning(cls: type) -> None:
    fields = [field.name for field in dataclasses.fields(cls)]

    assert fields == list(FIELDS[cls])
    assert not set(fields) & set(ALWAYS)
