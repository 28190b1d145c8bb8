"""One call over gRPC: its attempts, and its errors."""
from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

import grpc
from google.protobuf import descriptor_pb2, message_factory

from .errors import PosternError, error_of
from .journal import POSITION, JournalMemory

if TYPE_CHECKING:
    from .client import Client

_ATTEMPTS_MAX = 4
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 2.0

#: The reasons of UNAVAILABLE after which a call may have been executed. A lost connection has no reason.
_UNKNOWN_OUTCOMES = ("", "STORE_UNAVAILABLE")

#: The statuses of refusals that say nothing about an earlier attempt: the server did not look whether it was executed.
_SAYS_NOTHING_OF_EARLIER_ATTEMPTS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")

Metadata = Sequence[Tuple[str, str]]


def _message_class(descriptor: Any) -> Any:
    # The second is the name before protobuf 4.22.
    get = getattr(message_factory, "GetMessageClass", None)
    return get(descriptor) if get else message_factory.MessageFactory().GetPrototype(descriptor)


def make_call(client: Client, method: Any) -> Callable[..., Any]:
    """The function that calls a method; see `Service`."""
    described = descriptor_pb2.MethodDescriptorProto()
    method.CopyToProto(described)
    request_class, response_class = _message_class(method.input_type), _message_class(method.output_type)
    path = f"/{method.containing_service.full_name}/{method.name}"
    is_idempotent = described.options.idempotency_level != descriptor_pb2.MethodOptions.IDEMPOTENCY_UNKNOWN
    serialize, parse = request_class.SerializeToString, response_class.FromString
    if described.client_streaming:
        stream = client.channel.stream_stream(path, serialize, parse)
    elif described.server_streaming:
        stream = client.channel.unary_stream(path, serialize, parse)
    else:
        unary = client.channel.unary_unary(path, serialize, parse)

    def call(
        request: Any = None, *, timeout: Optional[float] = None, idempotency_key: Optional[str] = None,
        metadata: Metadata = (), **fields: Any
    ) -> Any:
        if request is not None and fields:
            raise TypeError("either a request or its fields")
        request = request_class(**fields) if request is None else request
        sent = client._metadata(idempotency_key, metadata)
        if described.client_streaming or described.server_streaming:
            return Stream(stream(request, timeout=timeout, metadata=client._with_position(sent)), client._journal)
        return _unary(
            client, unary, request, client.timeout if timeout is None else timeout, sent,
            may_repeat=is_idempotent or idempotency_key is not None)

    call.__name__ = method.name
    call.__doc__ = f"{path}: takes {method.input_type.name}, answers {method.output_type.name}."
    return call


def _unary(client: Client, unary: Any, request: Any, timeout: float, metadata: Metadata, may_repeat: bool) -> Any:
    end, attempt, has_forgotten = time.monotonic() + timeout, 1, False
    # The error of an attempt that the server may have executed. It outranks a later refusal that says nothing about that
    # attempt: for example, NODE_BEHIND and QUOTA_EXCEEDED only say that the last attempt did nothing.
    lost: Optional[PosternError] = None
    while True:
        sent = client._with_position(metadata)
        try:
            answer, call = unary.with_call(request, timeout=max(0.0, end - time.monotonic()), metadata=sent)
            for name, value in call.initial_metadata() or ():
                if name == POSITION:
                    client._journal.note(value)
            return answer
        except grpc.RpcError as failure:
            error = _error(failure)
            if error.reason == "INVALID_POSITION":
                client._journal.forget()
                # Nothing was done, and the position that was refused is not sent again.
                if len(sent) > len(metadata) and not has_forgotten:
                    has_forgotten = True
                    continue
            outcome = error
            if error.status == "UNAVAILABLE" and error.reason in _UNKNOWN_OUTCOMES:
                lost = error
            elif lost is not None and (
                    error.status in _SAYS_NOTHING_OF_EARLIER_ATTEMPTS or error.reason == "INVALID_POSITION"):
                outcome = lost
                outcome.retry_after = lost.retry_after if error.retry_after is None else error.retry_after
            delay = _delay(error, attempt)
            if not may_repeat or delay is None or attempt == _ATTEMPTS_MAX or time.monotonic() + delay >= end:
                raise outcome from failure
        attempt += 1
        time.sleep(delay)


def _delay(error: PosternError, attempt: int) -> Optional[float]:
    """Seconds before the next attempt; None if another attempt would fail as this one did."""
    if error.retry_after is not None:
        return error.retry_after
    if error.status != "UNAVAILABLE":
        return None
    longest = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** (attempt - 1))
    return random.uniform(longest / 2, longest)


def _error(failure: Any) -> PosternError:
    trailers: Dict[str, Any] = {key: value for key, value in (failure.trailing_metadata() or ())}
    return error_of(failure.code().name, failure.details() or "", trailers.get("grpc-status-details-bin"))


class Stream:
    """The messages of a stream, in order. Ends when the server ends it, or by `cancel`."""

    def __init__(self, call: Any, journal: JournalMemory) -> None:
        self._call, self._journal = call, journal

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._call
        except grpc.RpcError as failure:
            error = _error(failure)
            if error.reason == "INVALID_POSITION":
                # Else the next stream would be refused as well.
                self._journal.forget()
            raise error from failure

    def cancel(self) -> None:
        self._call.cancel()
