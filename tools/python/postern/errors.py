"""The error that a refused call raises, and how it is read from a gRPC failure."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple

#: The statuses of the reasons that this package makes itself, as in reasons.proto.
_STATUSES = {
    "INVALID_ID_TOKEN": "UNAUTHENTICATED", "INVALID_SESSION_COOKIE": "UNAUTHENTICATED",
    "PROJECT_DISABLED": "PERMISSION_DENIED", "STREAM_ENDED": "UNAVAILABLE", "TENANT_ID_MISMATCH": "INVALID_ARGUMENT",
    "TENANT_NOT_FOUND": "NOT_FOUND", "TOKEN_EXPIRED": "UNAUTHENTICATED", "VERIFIER_STALE": "UNAVAILABLE",
}

_TYPE_PREFIX = "type.googleapis.com/google.rpc."


# Without eq, which would take the hash away: libraries put exceptions into sets.
@dataclass(eq=False)
class PosternError(Exception):
    """A refused call, or a token that is not accepted.

    `reason` is what to switch on: the name of a `postern.v1.Reason`, or a name that only a newer server knows. It is empty
    where the failure did not come from a Postern server. `message` says what happened and what to do.
    """

    status: str
    reason: str
    message: str
    metadata: Dict[str, str] = field(default_factory=dict)
    #: Seconds after which the same call may be tried again.
    retry_after: Optional[float] = None
    #: (field of the request, what is wrong with it)
    violations: List[Tuple[str, str]] = field(default_factory=list)
    request_id: str = ""

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"


def refusal(reason: str, message: str, metadata: Optional[Dict[str, str]] = None) -> PosternError:
    """An error that the package makes itself, with the status that the reason has everywhere."""
    return PosternError(_STATUSES[reason], reason, message, metadata or {})


def error_of(status: str, message: str, details: Optional[bytes]) -> PosternError:
    """The error of a gRPC status; `details` is the trailer grpc-status-details-bin."""
    error = PosternError(status, "", message)
    try:
        for number, value in _fields(details or b""):
            if number == 3 and isinstance(value, bytes):
                _read_detail(error, value)
    except ValueError:
        pass
    return error


def _read_detail(error: PosternError, any_message: bytes) -> None:
    parts = dict(_fields(any_message))
    type_url, value = parts.get(1, b""), parts.get(2, b"")
    if not isinstance(type_url, bytes) or not isinstance(value, bytes):
        return
    name = type_url.decode("utf-8", "replace")
    if not name.startswith(_TYPE_PREFIX):
        return
    kind = name[len(_TYPE_PREFIX):]
    if kind == "ErrorInfo":
        for number, content in _fields(value):
            if number == 1:
                error.reason = _text(content)
            elif number == 3 and isinstance(content, bytes):
                entry = dict(_fields(content))
                error.metadata[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
    elif kind == "RetryInfo":
        delay = dict(_fields(value)).get(1, b"")
        if isinstance(delay, bytes):
            parts = dict(_fields(delay))
            error.retry_after = _number(parts.get(1, 0)) + _number(parts.get(2, 0)) / 1e9
    elif kind == "BadRequest":
        for number, content in _fields(value):
            if number == 1 and isinstance(content, bytes):
                entry = dict(_fields(content))
                error.violations.append((_text(entry.get(1, b"")), _text(entry.get(2, b""))))
    elif kind == "RequestInfo":
        error.request_id = _text(dict(_fields(value)).get(1, b""))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _fields(message: bytes) -> Iterator[Tuple[int, object]]:
    """The fields of a protobuf message: numbers and bytes. google.rpc's own stubs would be one more dependency."""
    position = 0

    def varint() -> int:
        nonlocal position
        result = shift = 0
        while True:
            if position >= len(message) or shift > 63:
                raise ValueError("cut short")
            byte = message[position]
            position += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    while position < len(message):
        tag = varint()
        wire_type = tag & 7
        if wire_type == 0:
            yield tag >> 3, varint()
        else:
            length = varint() if wire_type == 2 else {1: 8, 5: 4}.get(wire_type, -1)
            if length < 0 or position + length > len(message):
                raise ValueError("cut short")
            yield tag >> 3, message[position:position + length]
            position += length
