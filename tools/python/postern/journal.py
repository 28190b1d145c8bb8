"""The position in a cluster's journal that a client remembers. No input or output."""
from __future__ import annotations

import re
import threading

#: The metadata of a call that tell up to where its node must have read the journal.
POSITION, CONSISTENCY = "x-postern-position", "x-postern-consistency"


class JournalMemory:
    """The highest position in a cluster's journal that a client's servers sent. Servers outside of a cluster send none. Any
    thread may use it."""

    # The cluster's id, and a number without leading zeros that has at most as many digits as a 64-bit number.
    _PATTERN = re.compile(r"([0-9a-f]{32})\.(0|[1-9][0-9]{0,19})", re.ASCII)

    def __init__(self) -> None:
        self._lock, self._told = threading.Lock(), ("", 0)

    @property
    def position(self) -> str:
        """Empty while no position is known."""
        with self._lock:
            cluster, number = self._told
        return f"{cluster}.{number}" if cluster else ""

    def note(self, text: str) -> None:
        """Stores a position, unless it is before the known one. A position of another cluster replaces the known one."""
        match = self._PATTERN.fullmatch(text)
        if match is None:
            return
        new = (match.group(1), int(match.group(2)))
        with self._lock:
            if new[0] != self._told[0] or new[1] > self._told[1]:
                self._told = new

    def forget(self) -> None:
        """Forgets the position, because a server refused it: the cluster is another one, or was begun anew."""
        with self._lock:
            self._told = ("", 0)
