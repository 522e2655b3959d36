"""The findings of forensics that the console was told of, read again when they were built anew."""

import threading

from kohort.pipeline.forensics.found import Found, NoFindings, read_findings, stamp_of


class Findings:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._stamp: int | None = None
        self._found: tuple[Found, ...] = ()

    def read(self) -> tuple[Found, ...]:
        """The worst first; NoFindings while there are none to read."""
        with self._lock:
            stamp = stamp_of(self.directory)
            if stamp is None or stamp != self._stamp:
                self._found = read_findings(self.directory)
                self._stamp = stamp
            return self._found

    def about(self, group_id: str) -> tuple[Found, ...]:
        """Of one group; none where there is nothing to read."""
        try:
            return tuple(each for each in self.read() if each.group_id == group_id)
        except NoFindings:
            return ()
