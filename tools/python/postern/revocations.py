"""Knows which tokens to refuse although they are genuine and have not expired. No input or output, no clock."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Dict, Iterable, Optional, Set, Tuple

from .jwt import DecodedToken

USER, SESSION, TENANT_DISABLED, TENANT_ENABLED, TENANT_DELETED, SIGNING_KEY = 1, 2, 3, 4, 5, 6

REVOKED = "revoked"
OTHER_TENANT = "other tenant"
IS_DISABLED = "tenant disabled"
IS_DELETED = "tenant deleted"
KEY_REVOKED = "key revoked"


@dataclass(frozen=True)
class Revocation:
    """As postern.v1.Revocation; `kind` is one of the numbers above."""

    kind: int
    tenant_id: str = ""
    uid: str = ""
    session_id: str = ""
    valid_after_micros: int = 0
    key_id: str = ""


class RevocationState:
    """The revocations of a feed. They are forgotten a whole generation at a time, after `retention` seconds at least."""

    def __init__(self, retention: float, now: float, only_tenant_id: Optional[str] = None) -> None:
        self._retention, self.only_tenant_id = retention, only_tenant_id
        self._begun_at = now
        self._current: Tuple[Dict[Tuple[str, str], int], Set[str]] = ({}, set())
        self._previous: Tuple[Dict[Tuple[str, str], int], Set[str]] = ({}, set())
        self._disabled: Set[str] = set()
        self._deleted: Set[str] = set()
        # Never forgotten: somebody who has a revoked key can make tokens with it at any time.
        self._revoked_keys: Set[str] = set()

    def apply(self, revocation: Revocation, now: float) -> None:
        if now - self._begun_at > self._retention:
            self._previous, self._current, self._begun_at = self._current, ({}, set()), now
        users, sessions = self._current
        if revocation.kind == USER:
            user = (revocation.tenant_id, revocation.uid)
            users[user] = max(users.get(user, -(1 << 63)), revocation.valid_after_micros)
        elif revocation.kind == SESSION:
            if len(revocation.session_id) == 32:
                sessions.add(revocation.session_id.lower())
        elif revocation.kind == TENANT_DISABLED:
            self._disabled.add(revocation.tenant_id)
        elif revocation.kind == TENANT_ENABLED:
            self._disabled.discard(revocation.tenant_id)
        elif revocation.kind == TENANT_DELETED:
            self._deleted.add(revocation.tenant_id)
        elif revocation.kind == SIGNING_KEY:
            self._revoked_keys.add(revocation.key_id)

    def refusal(self, token: DecodedToken) -> Optional[str]:
        """Why the token is refused; None if the feed has no reason to."""
        if token.key_id in self._revoked_keys:
            return KEY_REVOKED
        if self.only_tenant_id is not None and token.tenant_id != self.only_tenant_id:
            return OTHER_TENANT
        if token.tenant_id in self._deleted:
            return IS_DELETED
        if token.tenant_id in self._disabled:
            return IS_DISABLED
        for users, sessions in (self._current, self._previous):
            if token.session_id in sessions:
                return REVOKED
            if token.generation < users.get((token.tenant_id, token.uid), -(1 << 63)):
                return REVOKED
        return None


class FeedClock:
    """The server's time as the messages of a feed tell it, and how old what they tell may be. All in seconds.

    The time goes on with a clock of this machine that cannot be set, from the highest time that was heard: a node of a
    cluster that is cut off goes on sending messages, all with the time at which it was.
    """

    #: The server's clock was corrected, or this machine's clock runs too fast, if the feed told lower times for so long.
    CORRECTION_TIME = 600.0
    #: The server leaves old revocations out of a snapshot, with a margin of an hour. If its clock was that far ahead, they
    #: were not old, and a correction makes their tokens good again.
    CORRECTION_MAX = 1_800.0

    def __init__(self, server: float, local: float) -> None:
        """Begins with the time of a first message. Each pair is a time that the server told, and our own when it came."""
        self._base = self._newest = (server, local)
        # Since a time at or above ours: the first one, and the one that predicts the highest time.
        self._lower: Optional[Tuple[Tuple[float, float], Tuple[float, float]]] = None

    @staticmethod
    def _predicted(told: Tuple[float, float], now: float) -> float:
        return told[0] + max(0.0, now - told[1])

    def time(self, now: float) -> float:
        return self._predicted(self._base, now)

    def staleness(self, now: float) -> float:
        """How long revocations may have been missed: since the last message, or since the time that it told."""
        server, local = self._newest
        return max(0.0, now - local, self.time(now) - server)

    def hear(self, server: float, local: float) -> bool:
        """Returns whether the server's time is lower by more than CORRECTION_MAX. Then the time goes on as before: a clock
        that begins with a new snapshot has to take its place."""
        told = self._newest = (server, local)
        if server >= self.time(local):
            self._base, self._lower = told, None
            return False
        first, highest = self._lower or (told, told)
        if server > self._predicted(highest, local):
            highest = told
        self._lower = (first, highest)
        passed = local - first[1]
        if passed < self.CORRECTION_TIME:
            return False
        self._lower = None
        # The time of a node that is cut off stands still. A server that lowers its own time lets it run at half speed.
        if (server - first[0]) * 4 < passed:
            return False
        if self.time(local) - self._predicted(highest, local) > self.CORRECTION_MAX:
            return True
        self._base = highest
        return False


class FeedPauses:
    """The pauses between the streams of a feed, in seconds. The first ones are short, because no revocations arrive
    meanwhile.

    They grow until a stream has lived for a while. A server that answers each stream and then ends it, with an error or
    without, is therefore asked ever less often.
    """

    LONGEST = 5.0
    _COUNT_MAX = 7

    def __init__(self) -> None:
        self._count = 0
        self._heard_at: Optional[float] = None

    def heard(self, now: float) -> None:
        """The present stream brought a message."""
        if self._heard_at is None:
            self._heard_at = now

    def ended(self, now: float) -> float:
        """The present stream is over. Returns the longest time to wait before the next one."""
        life = 0.0 if self._heard_at is None else now - self._heard_at
        self._heard_at = None
        self._count = 1 if life >= self.LONGEST else min(self._count + 1, self._COUNT_MAX)
        return min(self.LONGEST, 0.05 * 2 ** self._count)


class RevocationFeed:
    """The feed's contents, shared between the thread that follows it and those that verify."""

    def __init__(self, retention: float, now: float) -> None:
        """Here and below, `now` comes from a clock that only goes forward and also counts while the machine sleeps."""
        self._lock = threading.Lock()
        self._retention = retention
        self._state = RevocationState(retention, now)
        # A snapshot that is still arriving. It replaces the state when it is complete.
        self._incoming: Optional[RevocationState] = None
        self._cursor = ""
        self._is_complete = False
        self._clock: Optional[FeedClock] = None
        # The server's time is far lower than it was: the next snapshot begins a new clock.
        self._awaits_snapshot = False

    @property
    def cursor(self) -> str:
        with self._lock:
            return self._cursor

    @property
    def only_tenant_id(self) -> Optional[str]:
        """The only tenant that the newest complete snapshot is about; None if it is about every tenant."""
        with self._lock:
            return self._state.only_tenant_id

    @property
    def is_complete(self) -> bool:
        """Whether enough is known to accept tokens."""
        with self._lock:
            return self._is_complete

    def apply(
        self, revocations: Iterable[Revocation], *, cursor: str, server_time: float, begins_snapshot: bool,
        continues: bool, only_tenant_id: Optional[str], now: float
    ) -> bool:
        """Takes in a message of the feed. `only_tenant_id`: the only tenant of a snapshot; None means every tenant.

        Returns whether a new stream has to begin, with a new snapshot: the server's time was corrected so far downwards
        that the present snapshot may lack revocations. Until then the state counts as stale.
        """
        with self._lock:
            if begins_snapshot:
                self._incoming = RevocationState(self._retention, now, only_tenant_id)
            state = self._incoming or self._state
            for revocation in revocations:
                state.apply(revocation, now)
            if self._incoming is not None:
                if continues:
                    return False
                self._state, self._incoming = self._incoming, None
                if self._awaits_snapshot:
                    self._clock, self._awaits_snapshot = None, False
            self._cursor = cursor
            # While more messages follow, one of them may tell of a revocation of long ago.
            if continues:
                return False
            self._is_complete = True
            self._clock = self._clock or FeedClock(server_time, now)
            if not self._clock.hear(server_time, now):
                return False
            self._cursor, self._awaits_snapshot = "", True
            return True

    def stream_ended(self) -> None:
        """Drops the snapshot that the ended stream left unfinished."""
        with self._lock:
            self._incoming = None

    def heard(self, now: float) -> Optional[Tuple[float, float]]:
        """For how many seconds revocations may have been missed, and the server's time now; None before the first
        snapshot is complete."""
        with self._lock:
            if self._clock is None:
                return None
            return self._clock.staleness(now), self._clock.time(now)

    def refusal(self, token: DecodedToken) -> Optional[str]:
        with self._lock:
            return self._state.refusal(token)
