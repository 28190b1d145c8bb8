"""The verifier without a server: every rule for tokens and revocations, with keys made here."""
import json
import logging
import random
import re
import threading
import time
import unittest
from base64 import urlsafe_b64encode
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

import postern
from postern import errors, revocations, verifier as verifiers
from postern.jwt import KeySet, OfflineVerifier
from postern.revocations import FeedClock, FeedPauses, Revocation, RevocationState
from postern.verifier import TokenVerifier

ISSUER, AUDIENCE, NOW = "https://issuer.test/test", "test", 1_800_000_000
SESSION = "0123456789abcdef" * 2
REASONS = Path(__file__).resolve().parents[3] / "proto" / "public" / "postern" / "v1" / "reasons.proto"


def b64(raw):
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Signer:
    def __init__(self, algorithm, key_id="k1"):
        self.algorithm, self.key_id = algorithm, key_id
        if algorithm == "RS256":
            self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            numbers = self.key.public_key().public_numbers()
            self.jwk = {"kty": "RSA", "n": b64(numbers.n.to_bytes(256, "big")), "e": b64(b"\1\0\1")}
        elif algorithm == "ES256":
            self.key = ec.generate_private_key(ec.SECP256R1())
            numbers = self.key.public_key().public_numbers()
            self.jwk = {"kty": "EC", "crv": "P-256", "x": b64(numbers.x.to_bytes(32, "big")),
                        "y": b64(numbers.y.to_bytes(32, "big"))}
        else:
            self.key = ed25519.Ed25519PrivateKey.generate()
            raw = self.key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64(raw)}
        self.jwk.update(alg=algorithm, kid=key_id, use="sig")

    def sign(self, signed):
        if self.algorithm == "RS256":
            return self.key.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        if self.algorithm == "ES256":
            r, s = decode_dss_signature(self.key.sign(signed, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return self.key.sign(signed)

    def token(self, payload=None, header=None, **claims):
        if payload is None:
            payload = json.dumps(claims_of(**claims), separators=(",", ":")).encode()
        if header is None:
            header = json.dumps({"alg": self.algorithm, "kid": self.key_id, "typ": "JWT"}, separators=(",", ":"))
        signed = f"{b64(header.encode())}.{b64(payload)}".encode()
        return f"{signed.decode()}.{b64(self.sign(signed))}"


def claims_of(**changes):
    claims = {
        "iss": ISSUER, "aud": AUDIENCE, "auth_time": NOW - 10, "user_id": "ada", "sub": "ada", "iat": NOW,
        "exp": NOW + 3600, "sid": SESSION, "gen": 100,
        "firebase": {"identities": {}, "sign_in_provider": "password", "tenant": "acme"}, "plan": "pro",
    }
    claims.update(changes)
    return {name: value for name, value in claims.items() if value is not ...}


def jwks(*signers):
    return json.dumps({"keys": [signer.jwk for signer in signers]}).encode()


class TokenTests(unittest.TestCase):
    def setUp(self):
        self.signer = Signer("ES256")
        self.verifier = OfflineVerifier(KeySet(jwks(self.signer)), ISSUER, AUDIENCE, postern.ANY_TENANT)

    def refused(self, token, reason="INVALID_ID_TOKEN", now=NOW + 1):
        with self.assertRaises(postern.PosternError) as caught:
            self.verifier.verify(token, now)
        self.assertEqual((caught.exception.reason, caught.exception.status), (reason, errors._STATUSES[reason]), token)
        return caught.exception

    def test_each_algorithm_is_verified_and_a_changed_token_refused(self):
        for algorithm in ("RS256", "ES256", "EdDSA"):
            signer = Signer(algorithm)
            self.verifier = OfflineVerifier(KeySet(jwks(signer)), ISSUER, AUDIENCE, "acme")
            token = signer.token()
            decoded = self.verifier.verify(token, NOW + 1)
            self.assertEqual((decoded.uid, decoded.tenant_id, decoded.claims["plan"]), ("ada", "acme", "pro"))
            for place in range(0, len(token), 7):
                changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1:]
                self.refused(changed)

    def test_the_tenant_is_compared(self):
        tokens = {tenant: self.signer.token(firebase={"sign_in_provider": "password", **claims})
                  for tenant, claims in (("acme", {"tenant": "acme"}), ("other", {"tenant": "other"}), ("", {}))}
        keys = KeySet(jwks(self.signer))
        for own in tokens:
            self.verifier = OfflineVerifier(keys, ISSUER, AUDIENCE, tenants=own)
            for tenant, token in tokens.items():
                if tenant == own:
                    self.assertEqual(self.verifier.verify(token, NOW).tenant_id, tenant)
                else:
                    self.assertEqual(self.refused(token, "TENANT_ID_MISMATCH").metadata, {"tenant": tenant})
        self.assertRaises(TypeError, OfflineVerifier, keys, ISSUER, AUDIENCE)
        for tenants in (None, ["acme"], object()):
            self.assertRaises(TypeError, OfflineVerifier, keys, ISSUER, AUDIENCE, tenants)

    def test_a_token_with_its_scheme_is_refused_with_advice(self):
        for scheme in ("Bearer ", "bearer "):
            self.assertIn("without `Bearer `", self.refused(scheme + self.signer.token()).message)
        self.assertNotIn("Bearer", self.refused("x").message)

    @unittest.skipUnless(REASONS.is_file(), "not in a checkout")
    def test_the_statuses_are_those_of_the_protocol(self):
        told = re.findall(r"// Status: (\w+).*\n  (\w+) = ", REASONS.read_text())
        for reason, status in errors._STATUSES.items():
            self.assertIn((status, reason), told)

    def test_the_algorithm_is_the_keys_own(self):
        signer = self.signer
        for header in ('{"alg":"none","kid":"k1","typ":"JWT"}', '{"alg":"HS256","kid":"k1","typ":"JWT"}',
                       '{"kid":"k1","alg":"ES256","typ":"JWT"}', '{"alg":"ES256","kid":"k2","typ":"JWT"}',
                       '{"alg":"ES256","kid":"k1","typ":"JWT","crit":["x"]}', '{"alg": "ES256","kid":"k1","typ":"JWT"}'):
            self.refused(signer.token(header=header))
        # A key's `alg` must fit the kind of key; otherwise the key is left out.
        self.assertEqual(KeySet(json.dumps({"keys": [{**signer.jwk, "alg": "RS256"}]}).encode()).key_ids, [])

    def test_rsa_keys_that_the_server_would_not_use_are_left_out(self):
        jwk = Signer("RS256").jwk
        for changes in ({"e": "Aw"}, {"e": "AQ"}, {"e": "AQAC"}, {"e": "AQAAAAE"}, {"n": b64(b"\xc1" * 513)}):
            self.assertEqual(KeySet(json.dumps({"keys": [{**jwk, **changes}]}).encode()).key_ids, [], changes)
        self.assertEqual(KeySet(json.dumps({"keys": [jwk]}).encode()).key_ids, ["k1"])

    def test_claims_have_to_be_there_and_of_their_type(self):
        names = ("iss", "aud", "auth_time", "user_id", "sub", "iat", "exp", "sid", "gen", "firebase")
        for name in names:
            for value in (..., None, 1.5, True, [], ["test"], "x"):
                self.refused(self.signer.token(**{name: value}))
        for firebase in ({}, {"sign_in_provider": 1}, {"sign_in_provider": "password", "tenant": 1},
                         {"sign_in_provider": "password", "tenant": None}):
            self.refused(self.signer.token(firebase=firebase))
        self.refused(self.signer.token(sid="0" * 31))
        self.refused(self.signer.token(sid="0" * 31 + "g"))
        self.refused(self.signer.token(user_id="bob"))
        decoded = self.verifier.verify(self.signer.token(firebase={"sign_in_provider": "password"}), NOW)
        self.assertEqual(decoded.tenant_id, "")

    def test_times(self):
        token = self.signer.token()
        self.verifier.verify(token, NOW + 3599.999)
        self.assertEqual(self.refused(token, "TOKEN_EXPIRED", NOW + 3600).metadata, {"cause": "EXPIRED"})
        self.verifier.verify(token, NOW - 60)
        self.refused(token, now=NOW - 60.001)

    def test_what_is_no_token(self):
        good = self.signer.token()
        for token in ("", ".", "..", "...", good + ".", good + "=", good.replace(".", ""), " " + good, good + "\n",
                      good + "é", good.rsplit(".", 1)[0], good.rsplit(".", 1)[0] + ".", "x" * 9000, good + "\ud800"):
            self.refused(token)
        for payload in (b"", b"[]", b"{", b"null", b"\xff", b'{"a":1,"a":2}', b'{"a":NaN}', b"[" * 4000):
            self.refused(self.signer.token(payload=payload))
        self.refused(self.signer.token(plan="x" * 9000))
        # json.dumps escapes it, so that the payload is good UTF-8.
        self.refused(self.signer.token(plan="\ud800"))
        self.assertRaises(ValueError, KeySet, b"{}")
        self.assertRaises(ValueError, KeySet, b'{"keys":[' + b",".join([b"{}"] * 65) + b"]}")
        self.assertEqual(KeySet(b'{"keys":[{},1,null,{"kty":"RSA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}').key_ids, [])


class RevocationTests(unittest.TestCase):
    def token(self, tenant="acme", uid="ada", session=SESSION, generation=100, key_id="k1"):
        return postern.DecodedToken(uid, tenant, session, "password", 0, 0, 0, generation, key_id, {})

    def test_a_generation_is_refused_below_its_limit_only(self):
        state = RevocationState(7200, 0)
        for limit in (100, 50):
            state.apply(Revocation(revocations.USER, "acme", "ada", valid_after_micros=limit), 0)
            self.assertEqual(state.refusal(self.token(generation=99)), revocations.REVOKED)
            self.assertIsNone(state.refusal(self.token()))
            self.assertIsNone(state.refusal(self.token(uid="bob", generation=1)))
            self.assertIsNone(state.refusal(self.token(tenant="other", generation=1)))

    def test_a_tenant_is_refused_while_it_is_disabled_and_for_good_once_it_is_deleted(self):
        state = RevocationState(7200, 0)
        for kind, expected in ((revocations.TENANT_DISABLED, revocations.IS_DISABLED), (revocations.TENANT_ENABLED, None),
                               (revocations.TENANT_DELETED, revocations.IS_DELETED),
                               (revocations.TENANT_ENABLED, revocations.IS_DELETED)):
            state.apply(Revocation(kind, "acme"), 0)
            self.assertEqual(state.refusal(self.token()), expected)
            self.assertIsNone(state.refusal(self.token(tenant="other")))

    def test_keys_tenants_and_what_is_not_known(self):
        state = RevocationState(7200, 0, only_tenant_id="acme")
        state.apply(Revocation(0, "acme", "ada"), 0)
        state.apply(Revocation(99, "acme", "ada"), 0)
        state.apply(Revocation(revocations.SESSION, "acme", "ada", "zz"), 0)
        self.assertIsNone(state.refusal(self.token()))
        self.assertEqual(state.refusal(self.token(tenant="other")), revocations.OTHER_TENANT)
        state.apply(Revocation(revocations.SIGNING_KEY, key_id="k1"), 0)
        state.apply(Revocation(revocations.SESSION, session_id="f" * 32), 10_000_000)
        self.assertEqual(state.refusal(self.token()), revocations.KEY_REVOKED)

    def test_a_token_is_refused_as_long_as_it_could_live(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        chance, now, retention = random.Random(seed), 0.0, 7200.0
        state, said = RevocationState(retention, now), {}
        for _ in range(3000):
            now += chance.uniform(0, 60)
            session = f"{chance.randrange(50):032x}"
            if chance.random() < 0.3:
                state.apply(Revocation(revocations.SESSION, session_id=session), now)
                said[session] = now
            elif now - said.get(session, -1e9) <= retention:
                self.assertEqual(state.refusal(self.token(session=session)), revocations.REVOKED)
            elif session not in said:
                self.assertIsNone(state.refusal(self.token(session=session)))

    def test_a_snapshot_counts_once_it_is_whole_and_an_unfinished_one_is_dropped(self):
        feed = postern.RevocationFeed(7200, 0)

        def apply(sessions, cursor, begins=False, continues=False):
            feed.apply([Revocation(revocations.SESSION, session_id=session) for session in sessions], cursor=cursor,
                       server_time=NOW, begins_snapshot=begins, continues=continues, only_tenant_id=None, now=5)

        apply(["a" * 32], "1", begins=True, continues=True)
        self.assertEqual((feed.is_complete, feed.cursor, feed.heard(6)), (False, "", None))
        apply([SESSION], "2")
        self.assertEqual((feed.is_complete, feed.cursor, feed.heard(6)), (True, "2", (1, NOW + 1)))
        apply([], "3", begins=True, continues=True)
        self.assertEqual(feed.refusal(self.token()), revocations.REVOKED)
        feed.stream_ended()
        apply([], "4")
        self.assertEqual(feed.refusal(self.token()), revocations.REVOKED)
        apply([], "5", begins=True)
        self.assertIsNone(feed.refusal(self.token()))
        # What follows a cursor is not complete before the message that ends it.
        apply([], "6", continues=True)
        self.assertEqual((feed.cursor, feed.heard(9)), ("6", (4, NOW + 4)))

    def test_after_a_large_correction_a_feed_is_stale_until_it_has_a_new_snapshot(self):
        feed = postern.RevocationFeed(7200, 0)

        def apply(now, ahead=0, begins=False):
            return feed.apply([], cursor="c", server_time=NOW + now + ahead, begins_snapshot=begins, continues=False,
                              only_tenant_id=None, now=now)

        self.assertFalse(apply(0, ahead=7_200, begins=True))
        self.assertFalse(apply(10) or apply(609))
        self.assertEqual(feed.cursor, "c")
        self.assertTrue(apply(610))
        self.assertEqual((feed.cursor, feed.heard(610)), ("", (7_200, NOW + 610 + 7_200)))
        self.assertFalse(apply(620, begins=True))
        self.assertEqual((feed.cursor, feed.heard(620)), ("c", (0, NOW + 620)))


class FeedClockTests(unittest.TestCase):
    """The table is also that of FeedClockTests.swift."""

    #: (our time, the time that a message tells or None, the server's time now, staleness)
    TABLE = {
        "between messages the time goes on": [(10, 10, 10, 0), (15, None, 15, 5), (20, 20, 20, 0)],
        "a server that is ahead is followed at once": [(10, 15, 15, 0), (20, 25, 25, 0)],
        "a node that is cut off grows stale although it sends": [
            (20, 15, 20, 5), (30, 15, 30, 15), (400, 15, 400, 385), (800, 15, 800, 785), (1_500, 15, 1_500, 1_485),
            (1_510, 1_510, 1_510, 0)],
        "a node that lags is as stale as it is late": [(320, 300, 320, 20), (330, 329, 330, 1), (340, 340, 340, 0)],
        "after ten minutes a lower time is believed": [
            (10, 1_010, 1_010, 0), (20, 20, 1_020, 1_000), (320, 320, 1_320, 1_000), (619, 619, 1_619, 1_000),
            (620, 620, 620, 0), (630, 630, 630, 0)],
        "a server that lowers its time runs at half speed": [
            (10, 110, 110, 0), (20, 115, 120, 5), (320, 265, 420, 155), (620, 415, 715, 300), (630, 530, 725, 195)],
    }

    def test_the_time_goes_on_and_what_was_told_grows_old(self):
        for name, rows in self.TABLE.items():
            clock = FeedClock(0, 0)
            for now, told, server_time, staleness in rows:
                if told is not None:
                    self.assertFalse(clock.hear(told, now), f"{name}, {now}")
                self.assertEqual((clock.time(now), clock.staleness(now)), (server_time, staleness), f"{name}, {now}")

    def test_a_clock_of_ours_that_runs_fast_makes_nothing_stale(self):
        clock = FeedClock(0, 0)
        for now in range(10, 100_000, 10):
            self.assertFalse(clock.hear(now * 0.999, now))
            self.assertLess(clock.staleness(now), 2)

    def test_a_time_that_is_far_lower_is_not_followed_without_a_snapshot(self):
        clock = FeedClock(0, 0)
        clock.hear(7_210, 10)
        for now, is_far_lower in [(20, False), (619, False), (620, True), (630, False), (1_230, True)]:
            self.assertEqual(clock.hear(now, now), is_far_lower, now)
            self.assertEqual((clock.time(now), clock.staleness(now)), (now + 7_200, 7_200))


class FeedPausesTests(unittest.TestCase):
    def test_streams_that_end_soon_come_ever_less_often(self):
        for life in (None, 0.0, 4.0):
            pauses, now = FeedPauses(), 0.0
            for expected in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0):
                if life is not None:
                    pauses.heard(now)
                    now += life
                    pauses.heard(now)
                self.assertEqual(pauses.ended(now), expected)
            pauses.heard(now)
            self.assertEqual(pauses.ended(now + 5.0), 0.1)
            self.assertEqual(pauses.ended(now + 3600.0), 0.2)


class FakeSource:
    """A server whose feed sends its first message, and then the messages that the test gives it."""

    def __init__(self, signer, time, bound_to=None):
        # The tenant that the credential is for; None: all tenants.
        self.bound_to = bound_to
        self.signer, self.time, self.asked, self.fetched, self.opened = signer, time, [], 0, 0
        # What goes wrong in the application itself, as in a function `authorization`.
        self.trouble, self.is_silent = None, False
        self.messages = [self.message(snapshot_reason=1)]

    def message(self, told=(), **changes):
        kind = "all" if self.bound_to is None else "tenant_id"
        scope = SimpleNamespace(tenant_id=self.bound_to or "", WhichOneof=lambda _: kind)
        fields = {"revocations": list(told), "cursor": "c", "time_micros": int(self.time * 1e6), "snapshot_reason": 0,
                  "continues": False, "scope": scope}
        return SimpleNamespace(**{**fields, **changes})

    def issuer_and_audience(self):
        return ISSUER, AUDIENCE

    def published_keys(self, token_kind):
        self.fetched += 1
        if self.trouble:
            raise self.trouble
        return jwks(self.signer)

    def verify_token(self, token, *_):
        self.asked.append(token)

    def watch_revocations(self, tenant_id, any_tenant, *_):
        self.opened += 1
        self.watched = (tenant_id, any_tenant)
        if self.trouble:
            raise self.trouble
        if self.is_silent:
            messages, self.messages = self.messages, []
            return _SilentFeed(messages)
        if not self.messages:
            raise postern.PosternError("UNAVAILABLE", "", "away")
        messages, self.messages = self.messages, []
        return _Feed(iter(messages))


class _Feed:
    def __init__(self, messages):
        self.messages = messages

    def __iter__(self):
        return self.messages

    def cancel(self):
        pass


class _SilentFeed:
    """Sends its messages, and then nothing until it is cancelled."""

    def __init__(self, messages):
        self.messages, self.cancelled = messages, threading.Event()

    def __iter__(self):
        yield from self.messages
        if not self.cancelled.wait(60):
            raise AssertionError("nobody cancelled the feed")
        raise postern.PosternError("CANCELLED", "", "cancelled")

    def cancel(self):
        self.cancelled.set()


class VerifierTests(unittest.TestCase):
    def setUp(self):
        self.signer = Signer("ES256")

    def becomes(self, condition):
        for _ in range(4_000):
            if condition():
                return
            time.sleep(0.005)
        self.fail("it did not happen")

    def verifier(self, **options):
        source = FakeSource(self.signer, NOW)
        verifier = TokenVerifier(source, **{"tenants": "acme", **options})
        self.addCleanup(verifier.close)
        return verifier, source

    def test_a_good_token_is_accepted_and_one_of_another_tenant_is_not(self):
        verifier, source = self.verifier()
        self.assertEqual(verifier.verify(self.signer.token()).uid, "ada")
        other = {"sign_in_provider": "password", "tenant": "other"}
        with self.assertRaises(postern.PosternError) as caught:
            verifier.verify(self.signer.token(firebase=other))
        self.assertEqual(
            (caught.exception.reason, caught.exception.status), ("TENANT_ID_MISMATCH", "INVALID_ARGUMENT"))
        self.assertEqual(caught.exception.message, 'The token is of tenant "other"; this verifier is for tenant "acme".')
        self.assertEqual(caught.exception.metadata, {"tenant": "other"})
        anybodys, _ = self.verifier(tenants=postern.ANY_TENANT)
        self.assertEqual(anybodys.verify(self.signer.token(firebase=other)).tenant_id, "other")

    def test_without_a_name_the_tenant_is_that_of_the_credential_or_the_default_pool(self):
        for bound_to, accepted in ((None, ""), ("", ""), ("acme", "acme")):
            source = FakeSource(self.signer, NOW, bound_to)
            verifier = TokenVerifier(source)
            self.addCleanup(verifier.close)
            self.assertEqual(source.watched, ("", False))
            for tenant in ("", "acme", "other"):
                token = self.signer.token(firebase={"sign_in_provider": "password", **({"tenant": tenant} if tenant else {})})
                if tenant == accepted:
                    self.assertEqual(verifier.verify(token).tenant_id, tenant)
                    continue
                with self.assertRaises(postern.PosternError) as caught:
                    verifier.verify(token)
                self.assertEqual(caught.exception.reason, "TENANT_ID_MISMATCH")
            # Later the tenant is named, so that a credential with another scope is refused.
            source.messages = [source.message()]
            self.becomes(lambda: source.opened > 1 and source.watched == (accepted, False))
        for tenants in (None, ["acme"]):
            self.assertRaises(TypeError, TokenVerifier, FakeSource(self.signer, NOW), tenants)

    def test_a_tenant_that_is_off_or_gone_has_the_statuses_of_the_protocol(self):
        for kind, reason, status in (
                (revocations.TENANT_DISABLED, "PROJECT_DISABLED", "PERMISSION_DENIED"),
                (revocations.TENANT_DELETED, "TENANT_NOT_FOUND", "NOT_FOUND")):
            verifier, source = self.verifier()
            source.messages = [source.message([Revocation(kind, "acme")])]

            def is_refused():
                try:
                    verifier.verify_now(self.signer.token())
                except postern.PosternError as error:
                    return (error.reason, error.status) == (reason, status)
            self.becomes(is_refused)

    def test_stale_refuses_accepts_or_asks(self):
        for policy in ("refuse", "accept", "ask_server"):
            verifier, source = self.verifier(when_stale=policy, stale_after=0.0)
            token = self.signer.token()
            if policy == "accept":
                self.assertEqual(verifier.verify(token).uid, verifier.verify_now(token).uid)
                continue
            with self.assertRaises(postern.PosternError) as caught:
                verifier.verify_now(token)
            self.assertEqual(caught.exception.reason, "VERIFIER_STALE")
            if policy == "ask_server":
                self.assertEqual(verifier.verify(token).uid, "ada")
                self.assertEqual(source.asked, [token])
            else:
                self.assertRaises(postern.PosternError, verifier.verify, token)

    def test_a_stale_verifier_says_that_the_server_refuses_the_feed(self):
        verifier, source = self.verifier(stale_after=0.0)
        token = self.signer.token()

        def cause():
            with self.assertRaises(postern.PosternError) as caught:
                verifier.verify_now(token)
            self.assertEqual(caught.exception.reason, "VERIFIER_STALE")
            return caught.exception.metadata.get("cause")

        source.trouble = postern.PosternError("UNAUTHENTICATED", "CALLER_UNAUTHENTICATED", "The key was revoked.")
        self.becomes(lambda: cause() == "CALLER_UNAUTHENTICATED")
        source.trouble = postern.PosternError("RESOURCE_EXHAUSTED", "TOO_MANY_STREAMS", "Later.")
        self.becomes(lambda: cause() == "TOO_MANY_STREAMS")
        source.trouble = postern.PosternError("UNAVAILABLE", "", "away")
        self.becomes(lambda: cause() is None)

    def test_what_is_no_text_is_no_token(self):
        verifier, source = self.verifier(key_refresh_floor=0.0)
        for token in (None, b"a.b.c", self.signer.token().encode(), 7, ["a.b.c"]):
            for verify in (verifier.verify, verifier.verify_now):
                with self.assertRaises(postern.PosternError) as caught:
                    verify(token)
                self.assertEqual(caught.exception.reason, "INVALID_ID_TOKEN")
        self.assertEqual(source.fetched, 1)

    def test_trouble_of_the_application_ends_no_thread(self):
        verifier, source = self.verifier(key_refresh_interval=0.01)
        source.trouble = KeyError("no credential")
        with self.assertLogs("postern", logging.WARNING):
            opened, fetched = source.opened, source.fetched
            self.becomes(lambda: source.opened > opened + 2 and source.fetched > fetched + 2)
        self.assertGreater(verifier.staleness, 0)
        source.messages = [source.message([Revocation(revocations.SESSION, session_id=SESSION)])]
        token = self.signer.token()
        self.assertEqual(verifier.verify_now(token).uid, "ada")
        source.trouble = None

        def is_revoked():
            try:
                verifier.verify_now(token)
            except postern.PosternError as error:
                return error.reason == "TOKEN_EXPIRED"
        self.becomes(is_revoked)

    @mock.patch.object(verifiers, "_SILENCE_MIN", 0.1)
    def test_a_feed_that_is_silent_for_three_heartbeats_is_opened_again(self):
        source = FakeSource(self.signer, NOW)
        source.is_silent = True
        verifier = TokenVerifier(source, tenants="acme", heartbeat=1)
        self.addCleanup(verifier.close)
        source.messages = [source.message([Revocation(revocations.SESSION, session_id=SESSION)])]
        self.becomes(lambda: source.opened > 1)
        self.becomes(lambda: not source.messages)

    def test_a_feed_with_short_heartbeats_has_ten_seconds(self):
        source = FakeSource(self.signer, NOW)
        source.is_silent = True
        verifier = TokenVerifier(source, tenants="acme", heartbeat=1)
        self.addCleanup(verifier.close)
        # Three heartbeats, and the watchdog's step.
        time.sleep(4)
        self.assertEqual(source.opened, 1)

    @mock.patch.object(verifiers, "_SILENCE_MIN", 0.1)
    def test_a_first_feed_that_says_nothing_is_an_error(self):
        source = FakeSource(self.signer, NOW)
        source.is_silent, source.messages = True, []
        with self.assertRaises(postern.PosternError):
            TokenVerifier(source, tenants="acme", heartbeat=1)
        self.assertEqual(source.opened, 1)

    def test_a_key_that_the_first_message_revokes_has_its_successor_fetched(self):
        source = FakeSource(self.signer, NOW)
        source.messages = [source.message([Revocation(revocations.SIGNING_KEY, key_id="k0")], snapshot_reason=1)]
        self.addCleanup(TokenVerifier(source, tenants="acme").close)
        self.assertEqual(source.fetched, 2)

    def test_revocations_are_read_while_the_keys_are_fetched_for_a_revoked_one(self):
        verifier, source = self.verifier()
        asked, may_answer, fetch = threading.Event(), threading.Event(), source.published_keys
        self.addCleanup(may_answer.set)

        def slow(kind):
            asked.set()
            may_answer.wait(60)
            return fetch(kind)

        source.published_keys = slow
        source.messages = [source.message([Revocation(revocations.SIGNING_KEY, key_id="k0")]),
                           source.message([Revocation(revocations.SESSION, session_id=SESSION)])]

        def is_revoked():
            try:
                verifier.verify_now(self.signer.token())
            except postern.PosternError as error:
                return error.reason == "TOKEN_EXPIRED"
        self.becomes(is_revoked)
        self.assertTrue(asked.wait(20))
        may_answer.set()
        self.becomes(lambda: source.fetched == 2)

    def test_unknown_keys_are_fetched_for_once_per_floor(self):
        verifier, source = self.verifier(key_refresh_floor=0.0)
        successor = Signer("EdDSA", "k2")
        source.signer = successor
        self.assertEqual(verifier.verify(successor.token()).key_id, "k2")
        slow, source = self.verifier(key_refresh_floor=3600.0)
        for _ in range(5):
            self.assertRaises(postern.PosternError, slow.verify, Signer("EdDSA", "k3").token())
        self.assertEqual(source.fetched, 1)

    def test_what_cannot_be_a_good_token_causes_no_fetch(self):
        verifier, source = self.verifier(key_refresh_floor=0.0)
        other = Signer("EdDSA", "k2")
        source.signer = other
        foreign = [other.token(aud="another"), other.token(iss="https://other.example"), other.token(exp=NOW - 1),
                   other.token(iat=NOW + 3600), other.token(header='{"kid":"k2","alg":"EdDSA","typ":"JWT"}')]
        for token in ["", "x", "a.b.c", "Bearer " + other.token(), *foreign]:
            with self.assertRaises(postern.PosternError) as caught:
                verifier.verify(token)
            self.assertEqual(caught.exception.reason, "INVALID_ID_TOKEN")
        self.assertEqual(source.fetched, 1)
        self.assertEqual(verifier.verify(other.token()).key_id, "k2")

    def test_no_thread_waits_long_for_a_server_that_does_not_answer(self):
        verifier, source = self.verifier(key_refresh_floor=0.0)
        may_answer, fetch = threading.Event(), source.published_keys

        def slow(kind):
            may_answer.wait(20)
            return fetch(kind)

        source.published_keys = slow
        with mock.patch("postern.verifier._FETCH_WAIT_MAX", 0.01):
            for _ in range(3):
                self.assertRaises(postern.PosternError, verifier.verify, Signer("EdDSA", "k2").token())
                self.assertIsNotNone(verifier._fetching)
        may_answer.set()
        self.becomes(lambda: verifier._fetching is None)
        # All of them asked for the same fetch.
        self.assertEqual(source.fetched, 2)

    def test_threads_with_a_key_that_is_new_share_one_fetch_and_wait_for_it(self):
        verifier, source = self.verifier(key_refresh_floor=0.0)
        source.signer = Signer("EdDSA", "k2")
        token, verified = source.signer.token(), []
        asked, may_answer, fetch = threading.Event(), threading.Event(), source.published_keys

        def slow(kind):
            asked.set()
            may_answer.wait(20)
            return fetch(kind)

        source.published_keys = slow
        threads = [threading.Thread(target=lambda: verified.append(verifier.verify(token).key_id)) for _ in range(8)]
        threads[0].start()
        self.assertTrue(asked.wait(20))
        for thread in threads[1:]:
            thread.start()
        may_answer.set()
        for thread in threads:
            thread.join()
        self.assertEqual((verified, source.fetched), (["k2"] * 8, 2))

    def test_a_slow_answer_does_not_replace_the_keys_of_a_later_fetch(self):
        verifier, source = self.verifier()
        former, asked, may_answer = jwks(self.signer), threading.Event(), threading.Event()

        def slow(_):
            asked.set()
            may_answer.wait(20)
            return former

        fetch, source.published_keys = source.published_keys, slow
        late = threading.Thread(target=verifier._refresh)
        late.start()
        self.assertTrue(asked.wait(20))
        source.signer, source.published_keys = Signer("EdDSA", "k2"), fetch
        verifier._refresh()
        may_answer.set()
        late.join()
        self.assertEqual(verifier.verify_now(source.signer.token()).key_id, "k2")

    def test_session_cookies_have_another_issuer(self):
        verifier, _ = self.verifier(token_kind="session_cookie")
        self.assertEqual(verifier.verify(self.signer.token(iss=f"{ISSUER}/session-cookie")).uid, "ada")
        with self.assertRaises(postern.PosternError) as caught:
            verifier.verify(self.signer.token())
        self.assertEqual(caught.exception.reason, "INVALID_SESSION_COOKIE")


if __name__ == "__main__":
    unittest.main()
