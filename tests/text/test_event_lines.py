"""Events as lines of text. tests/cli/test_events.py has the lines of all known events."""

import json

from kohort.events.parser import parse_event
from kohort.text.event_lines import event_line


def test_unknown_event_is_shown_as_json() -> None:
    body = {"event": "new-event", "at": 0, "group_id": "a\x1b[2Jb", "phase": "full"}

    line = event_line(parse_event([json.dumps(body).encode()]))

    assert line == '1970-01-01T00:00:00.000Z  a\\x1b[2Jb  new-event  {"phase":"full"}'
