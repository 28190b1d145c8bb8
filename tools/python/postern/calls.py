"""One call over gRPC: its attempts, and its errors."""
from __future__ import annotations

import os
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
    needs_attempt = path == "/postern.v1.Tokens/Refresh"
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
        sent = client._metadata(idempotency_key, metadata)
        if described.client_streaming:
            requests = _Requests(method, request)
            return Stream(
                stream(requests, timeout=timeout, metadata=client._with_position(sent)), client._journal, requests)
        request = _made(method, request_class, fields) if request is None else _checked(method, request)
        if needs_attempt:
            request = _with_attempt(request)
        if described.server_streaming:
            return Stream(stream(request, timeout=timeout, metadata=client._with_position(sent)), client._journal)
        return _unary(
            client, unary, request, client.timeout if timeout is None else timeout, sent,
            may_repeat=is_idempotent or idempotency_key is not None)

    call.__name__ = method.name
    call.__doc__ = f"{path}: takes {method.input_type.name}, answers {method.output_type.name}."
    return call


def _made(method: Any, request_class: Any, fields: Dict[str, Any]) -> Any:
    """The request with these fields. Raises TypeError with the name of a field whose value has the wrong type, because
    protobuf does not name it; ValueError for a field that there is not."""
    try:
        return request_class(**fields)
    except TypeError:
        for name, value in fields.items():
            try:
                request_class(**{name: value})
            except TypeError as error:
                raise TypeError(
                    f"{method.input_type.name} does not take {_kind(value)} as {name}: "
                    f"{_advice(method.input_type, name, value) or error}") from error
        raise


def _with_attempt(request: Any) -> Any:
    """A refresh as all attempts send it. The server takes one with the same `attempt_id` for the same refresh. It takes a
    repeat without an id that comes more than ten seconds later for a thief's, and ends the session."""
    if request.attempt_id or not request.refresh_token:
        return request
    sent = type(request)()
    sent.CopyFrom(request)
    sent.attempt_id = os.urandom(16)
    return sent


def _kind(value: Any) -> str:
    return type(value).__name__


def _advice(descriptor: Any, name: str, value: Any) -> str:
    is_bytes = descriptor.fields_by_name[name].type == descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
    return "it is bytes, such as text.encode()" if is_bytes and isinstance(value, str) else ""


def _checked(method: Any, request: Any) -> Any:
    """Raises TypeError unless the request is a message of the method's type: gRPC would call it an error of the server."""
    described = getattr(request, "DESCRIPTOR", None)
    if getattr(described, "full_name", None) == method.input_type.full_name:
        return request
    raise TypeError(
        f"{method.name} takes the fields of a {method.input_type.name}, or one such message (postern.v1.*_pb2), "
        f"and not {_kind(request)}")


class _Requests:
    """The requests of a client-streaming call. gRPC reads them on a thread of its own, and says nothing of an exception
    there but that there was one: it is kept, for `Stream`."""

    def __init__(self, method: Any, requests: Any) -> None:
        if requests is None or hasattr(requests, "DESCRIPTOR"):
            raise TypeError(f"{method.name} takes an iterator of {method.input_type.name}")
        self._method, self._requests = method, iter(requests)
        self.error: Optional[Exception] = None

    def __iter__(self) -> _Requests:
        return self

    def __next__(self) -> Any:
        try:
            return _checked(self._method, next(self._requests))
        except StopIteration:
            raise
        except Exception as error:
            self.error = error
            raise


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
    """The messages of a stream, in order. Ends when the server ends it, or by `cancel`. Raises what the iterator of the
    requests raised."""

    def __init__(self, call: Any, journal: JournalMemory, requests: Optional[_Requests] = None) -> None:
        self._call, self._journal, self._requests = call, journal, requests

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._call
        except grpc.RpcError as failure:
            if self._requests is not None and self._requests.error is not None:
                raise self._requests.error from failure
            error = _error(failure)
            if error.reason == "INVALID_POSITION":
                # Else the next stream would be refused as well.
                self._journal.forget()
            raise error from failure

    def cancel(self) -> None:
        self._call.cancel()
