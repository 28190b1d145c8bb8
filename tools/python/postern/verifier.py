"""Verifies tokens inside a service, without a call per token: the server pushes its revocations."""
from __future__ import annotations

import logging
import random
import threading
import time
from typing import Callable, Iterator, Optional, Protocol, Tuple

from . import revocations
from .errors import PosternError, refusal
from .jwt import (
    MICROS, DecodedToken, KeySet, OfflineVerifier, Tenants, checked_tenants, expired, tenant_mismatch)
from .revocations import FeedPauses, Revocation, RevocationFeed

_log = logging.getLogger("postern")

ID_TOKEN, SESSION_COOKIE = "id_token", "session_cookie"
REFUSE, ACCEPT, ASK_SERVER = "refuse", "accept", "ask_server"

#: How long threads wait for a fetch of the keys: longer than a node of a cluster asks the others. Forged tokens must not
#: hold up all threads of a service while the server does not answer.
_FETCH_WAIT_MAX = 3.0

#: How long a feed may be silent in any case, in seconds: docs/verifier.md.
_SILENCE_MIN = 10.0

#: The statuses of a feed that the server is away for, or that nobody wants any more.
_ABSENCES = ("UNAVAILABLE", "CANCELLED", "DEADLINE_EXCEEDED")
#: The statuses of a feed that nobody gets later without doing something, such as another credential.
_REFUSALS = ("UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "UNIMPLEMENTED")


def boot_time() -> float:
    """Seconds since the machine was started, sleep included."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Feed(Protocol):
    """Messages of Tokens.WatchRevocations, until the server or `cancel` ends them."""

    def __iter__(self) -> Iterator[object]: ...
    def cancel(self) -> object: ...


class Source(Protocol):
    """The calls that a verifier makes to the server. `Client` implements them."""

    def issuer_and_audience(self) -> Tuple[str, str]: ...
    def published_keys(self, token_kind: str) -> bytes: ...
    def verify_token(self, token: str, token_kind: str, tenant_id: str, any_tenant: bool) -> None: ...
    def watch_revocations(
        self, tenant_id: str, any_tenant: bool, cursor: str, heartbeat: int, session_cookies: bool) -> Feed: ...


class TokenVerifier:
    """Verifies ID tokens, or session cookies, with the project's keys and the server's feed of revocations.

        with postern.TokenVerifier(client, tenants="acme") as verifier:
            token = verifier.verify(bearer_token)

    `tenants` is the id of the tenant whose tokens are accepted, or `ANY_TENANT`. Without it, this is the credential's
    tenant if the credential is bound to one, and else the default pool.

    The credential needs the role `verifier` and nothing more. One verifier serves a process; any thread may use it. Times
    are the server's, continued by a local clock that also counts sleep, so a wrong wall clock here changes nothing.

    If revocations may have been missed for `stale_after` seconds, `when_stale` decides: "refuse" (VERIFIER_STALE, the
    default), "accept", or "ask_server" (one call per token).
    """

    def __init__(
        self, source: Source, tenants: Tenants = "", token_kind: str = ID_TOKEN, when_stale: str = REFUSE,
        stale_after: float = 30.0, heartbeat: int = 10, key_refresh_interval: float = 300.0,
        key_refresh_floor: float = 10.0
    ) -> None:
        """Fetches the keys and the first snapshot of revocations. Raises the errors of these calls."""
        if when_stale not in (REFUSE, ACCEPT, ASK_SERVER) or token_kind not in (ID_TOKEN, SESSION_COOKIE):
            raise ValueError("when_stale is refuse, accept or ask_server; token_kind is id_token or session_cookie")
        self._source, self._kind, self._when_stale, self._stale_after = source, token_kind, when_stale, stale_after
        self._tenants = checked_tenants(tenants)
        self._heartbeat = min(300, max(1, heartbeat))
        self._interval, self._floor = key_refresh_interval, key_refresh_floor
        is_cookie = token_kind == SESSION_COOKIE
        issuer, audience = source.issuer_and_audience()
        self._tokens = OfflineVerifier(
            KeySet(source.published_keys(token_kind)), f"{issuer}/session-cookie" if is_cookie else issuer, audience,
            self._tenants, refused_with="INVALID_SESSION_COOKIE" if is_cookie else "INVALID_ID_TOKEN")
        self._keys_lock = threading.Lock()
        # How many fetches of the keys have begun, and the number of the one whose keys are used.
        self._begun_fetches = self._used_fetch = 0
        self._fetched_at = boot_time()
        # Set to wake the thread that fetches the keys.
        self._fetch_wanted = threading.Event()
        # Set when the fetch ends for which an unknown key was the reason, and the time until which threads wait for that.
        # None: no such fetch is under way.
        self._fetching: Optional[threading.Event] = None
        self._fetching_until = 0.0
        retention = (14 * 24 + 1) * 3600.0 if is_cookie else 2 * 3600.0
        self._feed = RevocationFeed(retention, boot_time())
        self._stopped = threading.Event()
        self._stream: Optional[Feed] = None
        # The error with which the newest stream ended, if it says why. None: a message came since, or the server is away.
        self._feed_refusal: Optional[PosternError] = None
        # When the feed was opened, or a message came.
        self._moved_at = boot_time()
        self._start("watchdog", self._watch)
        try:
            messages = self._begin()
            self._start("revocations", self._follow, messages)
            if self._fetch_wanted.is_set():
                # The snapshot revoked a key. Its successor is known before the first token comes.
                self._fetch_wanted.clear()
                self._refresh()
        except BaseException:
            self.close()
            raise
        self._start("keys", self._keep_keys_fresh)

    @staticmethod
    def _start(name: str, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=target, args=arguments, name=f"postern-{name}", daemon=True).start()

    def close(self) -> None:
        """Stops following the feed; the verifier goes stale."""
        self._stopped.set()
        self._fetch_wanted.set()
        if self._stream is not None:
            self._stream.cancel()

    def __enter__(self) -> "TokenVerifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def staleness(self) -> float:
        """For how many seconds revocations may be unknown here: since the feed was heard, or since the time up to which
        the server itself knew everything, if that is longer."""
        heard = self._feed.heard(boot_time())
        return heard[0] if heard else 0.0

    def verify(self, token: str) -> DecodedToken:
        """The token's contents. If the token is of an unknown key and all but its signature is right, the keys are fetched
        first, 10 s after the end of the last such fetch at the earliest. Threads wait for it, 3 s at most.

        Raises `PosternError`: INVALID_ID_TOKEN or INVALID_SESSION_COOKIE, TOKEN_EXPIRED (metadata `cause` EXPIRED or
        REVOKED), TENANT_ID_MISMATCH, PROJECT_DISABLED, TENANT_NOT_FOUND, VERIFIER_STALE (metadata `cause`: the reason for
        which the server does not give the feed, if it told one).
        """
        if isinstance(token, str):
            self._learn_key(token)
        decoded, is_stale = self._check(token)
        if not is_stale or self._when_stale == ACCEPT:
            return decoded
        if self._when_stale == ASK_SERVER:
            self._source.verify_token(token, self._kind, *self._asked_tenants())
            return decoded
        raise self._stale()

    def verify_now(self, token: str) -> DecodedToken:
        """As `verify`, but without a call, only with what is known here. While the feed is stale, "ask_server" refuses."""
        decoded, is_stale = self._check(token)
        if is_stale and self._when_stale != ACCEPT:
            raise self._stale()
        return decoded

    # What is known

    def _check(self, token: str) -> Tuple[DecodedToken, bool]:
        heard = self._feed.heard(boot_time())
        if heard is None:
            raise self._stale()
        staleness, now = heard
        decoded = self._tokens.verify(token, now)
        cause = self._feed.refusal(decoded)
        if cause == revocations.REVOKED:
            raise expired("REVOKED")
        if cause == revocations.KEY_REVOKED:
            raise self._tokens.invalid(token)
        if cause == revocations.OTHER_TENANT:
            raise tenant_mismatch(decoded, "the tenant of its own key")
        if cause == revocations.IS_DISABLED:
            raise refusal("PROJECT_DISABLED", "Authentication is switched off for this tenant (disable_auth).")
        if cause == revocations.IS_DELETED:
            raise refusal("TENANT_NOT_FOUND", "The token's tenant was deleted.")
        return decoded, staleness >= self._stale_after

    def _stale(self) -> PosternError:
        refused = self._feed_refusal
        if refused is not None:
            # Waiting alone rarely helps.
            return refusal(
                "VERIFIER_STALE", f"The server does not tell this verifier what was revoked: {refused.message}",
                {"cause": refused.reason})
        return refusal(
            "VERIFIER_STALE",
            "The server was not heard of for too long to know what was revoked; try again when it is back.")

    # Keys

    def _learn_key(self, token: str) -> None:
        """Has the keys fetched if the token might be valid and its key is unknown, at most once per floor, so that forged
        tokens cost the server nothing. All who come during such a fetch wait for it, and for no other one; nobody waits
        any more once it has taken 3 s."""
        if self._tokens.keys.knows(token):
            return
        heard = self._feed.heard(boot_time())
        if heard is None or not self._tokens.names_unknown_key(token, heard[1]):
            return
        with self._keys_lock:
            now = boot_time()
            if self._fetching is None:
                # A fetch may have ended since the look above.
                if self._tokens.keys.knows(token) or now - self._fetched_at < self._floor or self._stopped.is_set():
                    return
                self._fetching, self._fetching_until = threading.Event(), now + _FETCH_WAIT_MAX
                self._fetch_wanted.set()
            fetching, left = self._fetching, self._fetching_until - now
        if left > 0:
            fetching.wait(left)

    def _refresh(self) -> None:
        """Fetches the keys. The present ones stay if that fails, for whatever reason, and if they are of a later fetch: a
        slow answer may be one from before a key was revoked, without its successor."""
        with self._keys_lock:
            self._begun_fetches += 1
            fetch = self._begun_fetches
        try:
            keys = KeySet(self._source.published_keys(self._kind))
        except Exception as error:
            self._note(error, "the keys were not fetched")
            return
        with self._keys_lock:
            self._fetched_at = boot_time()
            if fetch > self._used_fetch:
                self._used_fetch, self._tokens.keys = fetch, keys

    def _keep_keys_fresh(self) -> None:
        """Fetches the keys regularly, when a key was revoked, and when a token names an unknown one."""
        while True:
            self._fetch_wanted.wait(self._interval)
            with self._keys_lock:
                self._fetch_wanted.clear()
                asked = self._fetching
            # After clearing: close() sets both, in the other order.
            if self._stopped.is_set():
                return
            self._refresh()
            if asked is None:
                continue
            with self._keys_lock:
                # The floor counts from here: a server that answers slowly is not asked again at once.
                self._fetched_at, self._fetching = boot_time(), None
            asked.set()

    # The feed

    def _asked_tenants(self) -> Tuple[str, bool]:
        """The tenant that calls to the server name, and whether they are about any tenant."""
        return (self._tenants, False) if isinstance(self._tenants, str) else ("", True)

    def _open(self) -> Iterator[object]:
        self._moved_at = boot_time()
        self._stream = self._source.watch_revocations(
            *self._asked_tenants(), self._feed.cursor, self._heartbeat, self._kind == SESSION_COOKIE)
        if self._stopped.is_set():
            self._stream.cancel()
        return iter(self._stream)

    def _begin(self) -> Iterator[object]:
        """Reads the first snapshot."""
        messages = self._open()
        while not self._feed.is_complete:
            try:
                self._take(next(messages))
            except StopIteration:
                raise refusal("STREAM_ENDED", "The server ended the feed.") from None
        if self._tenants == "":
            # The credential's tenant if it is bound to one. It stays, also if the credential gets another scope.
            self._tenants = self._tokens.tenants = self._feed.only_tenant_id or ""
        return messages

    def _watch(self) -> None:
        """Cancels a feed that is silent for three heartbeats, ten seconds at least: its connection is dead, though nothing
        said so. Connecting counts, which takes up to five seconds."""
        silence = max(_SILENCE_MIN, 3 * self._heartbeat)
        while not self._stopped.wait(self._heartbeat / 2):
            stream = self._stream
            if stream is not None and boot_time() - self._moved_at > silence:
                self._moved_at = boot_time()
                stream.cancel()

    @staticmethod
    def _note(error: Exception, what: str) -> None:
        """Logs what is not of the server's making: without it, the application would only see the verifier go stale."""
        if not isinstance(error, PosternError):
            _log.warning("postern: %s", what, exc_info=error)

    def _take(self, message: object) -> bool:
        """Takes in a message of the feed. A revoked key has a successor: another thread fetches the keys again, because no
        revocation is read while this thread waits.

        Returns whether a new stream has to begin; see RevocationFeed.apply.
        """
        self._moved_at = boot_time()
        self._feed_refusal = None
        told = [
            Revocation(r.kind, r.tenant_id, r.uid, r.session_id, r.valid_after_micros, r.key_id)
            for r in message.revocations  # type: ignore[attr-defined]
        ]
        scope = message.scope  # type: ignore[attr-defined]
        only = scope.tenant_id if scope.WhichOneof("tenants") == "tenant_id" else None
        must_begin_anew = self._feed.apply(
            told, cursor=message.cursor, server_time=message.time_micros / MICROS,  # type: ignore[attr-defined]
            begins_snapshot=message.snapshot_reason != 0, continues=message.continues,  # type: ignore[attr-defined]
            only_tenant_id=only, now=boot_time())
        if any(revocation.kind == revocations.SIGNING_KEY for revocation in told):
            self._fetch_wanted.set()
        return must_begin_anew

    def _follow(self, messages: Optional[Iterator[object]]) -> None:
        pauses = FeedPauses()
        pauses.heard(boot_time())
        while not self._stopped.is_set():
            refused: Optional[PosternError] = None
            try:
                if messages is None:
                    messages = self._open()
                for message in messages:
                    pauses.heard(boot_time())
                    if self._take(message):
                        if self._stream is not None:
                            self._stream.cancel()
                        break
            except Exception as error:
                self._note(error, "the feed of revocations was cut")
                if isinstance(error, PosternError) and (
                        error.status in _REFUSALS or error.reason and error.status not in _ABSENCES):
                    refused = error
                if self._stream is not None:
                    self._stream.cancel()
            messages = None
            self._feed_refusal = refused
            self._feed.stream_ended()
            longest = pauses.ended(boot_time())
            self._stopped.wait(random.uniform(longest / 2, longest))
