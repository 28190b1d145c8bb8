"""Verifies ID tokens and session cookies with the project's published keys. No input or output, no clock of its own.

The rules are those of the server's own verifier: the header has to be, byte for byte, the one that a published key's tokens
are made with. So nothing in the header is trusted, and the algorithm is the key's own.
"""
from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Union

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from .errors import PosternError, refusal

TOKEN_BYTES_MAX = 8 * 1024
#: A server makes no more.
_KEYS_MAX = 64
_DEPTH_MAX = 64
_BASE64URL = re.compile(rb"[A-Za-z0-9_-]*\Z")
_SESSION_ID = re.compile(r"[0-9a-fA-F]{32}\Z")
_ISSUED_AHEAD_SECONDS = 60
_ALGORITHMS = ("RS256", "ES256", "EdDSA")
MICROS = 1_000_000


class AnyTenant:
    """The type of `ANY_TENANT`."""

    def __repr__(self) -> str:
        return "postern.ANY_TENANT"


#: For the `tenants` of a verifier. For a `TokenVerifier` these are the tenants in the credential's scope.
ANY_TENANT = AnyTenant()
Tenants = Union[str, AnyTenant]


@dataclass(frozen=True)
class DecodedToken:
    """The contents of a verified token."""

    uid: str
    #: Empty for the default pool.
    tenant_id: str
    #: 32 hexadecimal digits, the claim `sid`.
    session_id: str
    #: "password", "anonymous", "google.com", …
    sign_in_provider: str
    #: Seconds since 1970, by the server's clock.
    auth_time: int
    issued_at: int
    expires_at: int
    #: The user's tokens-valid-after in microseconds when this was signed.
    generation: int
    key_id: str
    claims: Dict[str, Any] = field(hash=False)


class KeySet:
    """The keys of a JWK set as the server publishes it, without those that are not sound or have no id."""

    def __init__(self, jwks: bytes) -> None:
        """Raises ValueError if `jwks` is not a JWK set."""
        keys = _parsed(jwks)
        keys = keys.get("keys") if isinstance(keys, dict) else None
        if not isinstance(keys, list) or len(keys) > _KEYS_MAX:
            raise ValueError("not a JWK set")
        #: (what every token of the key begins with, key id, algorithm, key)
        self._entries: List[Tuple[bytes, str, str, Any]] = []
        for jwk in keys:
            entry = _entry(jwk)
            if entry is not None:
                self._entries.append(entry)

    @property
    def key_ids(self) -> List[str]:
        return [entry[1] for entry in self._entries]

    def _entry_of(self, token: bytes) -> Optional[Tuple[bytes, str, str, Any]]:
        return next((entry for entry in self._entries if token.startswith(entry[0])), None)

    def knows(self, token: str) -> bool:
        """Whether there is a key whose tokens begin as this one does. The signature is not checked."""
        return isinstance(token, str) and self._entry_of(token.encode("utf-8", "replace")) is not None


class OfflineVerifier:
    """Verifies signature, issuer, audience, times and tenant, but not revocations: see `TokenVerifier` for those.

        verifier = OfflineVerifier(KeySet(jwks), "https://auth.example.com", "my-project", tenants="acme")
        token = verifier.verify(id_token, now=time.time())

    `tenants` is the tenant whose tokens are accepted; "" is the default pool. All tenants of a project share its keys,
    issuer and audience, and a uid is unique within its tenant only: whoever passes `ANY_TENANT` looks at the token's
    `tenant_id` beside its `uid`.
    """

    def __init__(
        self, keys: KeySet, issuer: str, audience: str, tenants: Tenants, *, refused_with: str = "INVALID_ID_TOKEN"
    ) -> None:
        self.keys, self.tenants = keys, checked_tenants(tenants)
        self._issuer, self._audience, self._refused_with = issuer, audience, refused_with

    def verify(self, token: str, now: float) -> DecodedToken:
        """Raises `PosternError` INVALID_ID_TOKEN (or what `refused_with` says), TOKEN_EXPIRED, TENANT_ID_MISMATCH."""
        decoded = self._decoded(token)
        if decoded is None:
            raise self.invalid(token)
        if now >= decoded.expires_at:
            raise expired("EXPIRED")
        if decoded.issued_at > now + _ISSUED_AHEAD_SECONDS:
            raise self.invalid(token)
        if isinstance(self.tenants, str) and decoded.tenant_id != self.tenants:
            raise tenant_mismatch(decoded, _title(self.tenants))
        return decoded

    def invalid(self, token: object) -> PosternError:
        """The error for what is not a token of the project."""
        message = "The token is not one of this project's."
        if isinstance(token, str) and token[:7].lower() == "bearer ":
            message += " Pass it without `Bearer `."
        return refusal(self._refused_with, message)

    def names_unknown_key(self, token: object, now: float) -> bool:
        """Whether the token might be accepted if its key were known: all is right but the signature, which cannot be checked
        without the key."""
        raw = _raw(token)
        if raw is None or self.keys._entry_of(raw) is not None:
            return False
        head, _, rest = raw.partition(b".")
        body, _, signature = rest.rpartition(b".")
        header, payload = _decode(head), _decode(body)
        if header is None or payload is None or _decode(signature) is None:
            return False
        try:
            members = _parsed(header)
        except ValueError:
            return False
        if not isinstance(members, dict):
            return False
        algorithm, key_id = members.get("alg"), members.get("kid")
        if algorithm not in _ALGORITHMS or not isinstance(key_id, str) or key_id in self.keys.key_ids:
            return False
        decoded = self._claims(payload, key_id) if head + b"." == _prefix(algorithm, key_id) else None
        return decoded is not None and decoded.issued_at - _ISSUED_AHEAD_SECONDS <= now < decoded.expires_at

    def _decoded(self, token: str) -> Optional[DecodedToken]:
        raw = _raw(token)
        entry = None if raw is None else self.keys._entry_of(raw)
        if raw is None or entry is None:
            return None
        prefix, key_id, algorithm, key = entry
        signed, _, signature = raw.rpartition(b".")
        if len(signed) < len(prefix):
            return None
        payload, decoded_signature = _decode(signed[len(prefix):]), _decode(signature)
        if payload is None or decoded_signature is None:
            return None
        if not _is_signed(algorithm, key, decoded_signature, signed):
            return None
        return self._claims(payload, key_id)

    def _claims(self, payload: bytes, key_id: str) -> Optional[DecodedToken]:
        try:
            claims = _parsed(payload)
        except ValueError:
            return None
        if not isinstance(claims, dict) or claims.get("iss") != self._issuer or claims.get("aud") != self._audience:
            return None
        firebase, uid, session = claims.get("firebase"), claims.get("sub"), claims.get("sid")
        times = [claims.get(name) for name in ("iat", "exp", "auth_time", "gen")]
        if not isinstance(firebase, dict) or not isinstance(uid, str) or claims.get("user_id") != uid:
            return None
        if not all(type(time) is int for time in times) or not isinstance(session, str):
            return None
        provider, tenant = firebase.get("sign_in_provider"), firebase.get("tenant", "")
        if not isinstance(provider, str) or not isinstance(tenant, str) or not _SESSION_ID.match(session):
            return None
        issued_at, expires_at, auth_time, generation = (int(time) for time in times)  # type: ignore[arg-type]
        return DecodedToken(
            uid, tenant, session.lower(), provider, auth_time, issued_at, expires_at, generation, key_id, claims)


def checked_tenants(tenants: object) -> Tenants:
    """Raises TypeError for what is neither a tenant's id nor `ANY_TENANT`, such as None or a list."""
    if isinstance(tenants, (str, AnyTenant)):
        return tenants
    raise TypeError('tenants is the id of a tenant ("" is the default pool), or postern.ANY_TENANT')


def expired(cause: str) -> PosternError:
    return refusal("TOKEN_EXPIRED", "The token is no longer valid; sign in again.", {"cause": cause})


def tenant_mismatch(token: DecodedToken, accepted: str) -> PosternError:
    """The token is genuine, so its tenant may be told. `accepted`: the words for the tenant of the verifier."""
    return refusal(
        "TENANT_ID_MISMATCH", f"The token is of {_title(token.tenant_id)}; this verifier is for {accepted}.",
        {"tenant": token.tenant_id})


def _title(tenant_id: str) -> str:
    return f'tenant "{tenant_id}"' if tenant_id else "the default pool"


def _raw(token: object) -> Optional[bytes]:
    """The token's bytes. None: it is too long, or not even ASCII text."""
    try:
        raw = token.encode("ascii") if isinstance(token, str) else None
    except UnicodeEncodeError:
        return None
    return None if raw is None or len(raw) > TOKEN_BYTES_MAX else raw


def _prefix(algorithm: str, key_id: str) -> bytes:
    """What every token of the key begins with."""
    header = json.dumps({"alg": algorithm, "kid": key_id, "typ": "JWT"}, separators=(",", ":"), ensure_ascii=False)
    return urlsafe_b64encode(header.encode()).rstrip(b"=") + b"."


def _entry(jwk: Any) -> Optional[Tuple[bytes, str, str, Any]]:
    if not isinstance(jwk, dict) or not all(isinstance(value, str) for value in jwk.values()):
        return None
    try:
        algorithm, key = _key(jwk)
    except (KeyError, ValueError, TypeError):
        return None
    key_id = jwk.get("kid")
    if key_id is None or jwk.get("alg") != algorithm:
        return None
    return _prefix(algorithm, key_id), key_id, algorithm, key


def _key(jwk: Dict[str, str]) -> Tuple[str, Any]:
    def number(name: str) -> int:
        return int.from_bytes(content(name), "big")

    def content(name: str) -> bytes:
        decoded = _decode(jwk[name].encode("ascii"))
        if decoded is None:
            raise ValueError(name)
        return decoded

    if jwk["kty"] == "RSA":
        modulus, exponent = number("n"), number("e")
        if not 2048 <= modulus.bit_length() <= 4096 or not 65537 <= exponent < 1 << 32 or exponent % 2 == 0:
            raise ValueError("size")
        return "RS256", rsa.RSAPublicNumbers(exponent, modulus).public_key()
    if jwk["kty"] == "EC" and jwk["crv"] == "P-256":
        return "ES256", ec.EllipticCurvePublicNumbers(number("x"), number("y"), ec.SECP256R1()).public_key()
    if jwk["kty"] == "OKP" and jwk["crv"] == "Ed25519":
        return "EdDSA", ed25519.Ed25519PublicKey.from_public_bytes(content("x"))
    raise ValueError("kind of key")


def _is_signed(algorithm: str, key: Any, signature: bytes, signed: bytes) -> bool:
    try:
        if algorithm == "RS256":
            key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        elif algorithm == "ES256":
            if len(signature) != 64:
                return False
            pair = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            key.verify(encode_dss_signature(*pair), signed, ec.ECDSA(hashes.SHA256()))
        else:
            key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _decode(text: bytes) -> Optional[bytes]:
    """base64url without padding, foreign characters or unused bits that are not zero."""
    if not _BASE64URL.match(text) or len(text) % 4 == 1:
        return None
    decoded = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    return decoded if urlsafe_b64encode(decoded).rstrip(b"=") == text else None


def _parsed(text: bytes) -> Any:
    """Parses JSON without duplicate members, NaN, lone surrogates or deep nesting. Raises ValueError."""

    def members(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a member twice")
        return result

    def refuse(name: str) -> Any:
        raise ValueError(name)

    decoded = text.decode("utf-8")
    depth = deepest = 0
    for character in decoded:
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    if deepest > _DEPTH_MAX:
        # Brackets within strings count too, which is harmless: no token of ours has so many.
        raise ValueError("too deep")
    parsed = json.loads(decoded, object_pairs_hook=members, parse_constant=refuse)
    # An escaped lone surrogate has no form in UTF-8: UnicodeEncodeError is a ValueError.
    json.dumps(parsed, ensure_ascii=False).encode("utf-8")
    return parsed
