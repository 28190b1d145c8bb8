"""The client: its connection, its credential, and its services."""
from __future__ import annotations

import atexit
import importlib
import keyword
import os
import re
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import grpc

from .calls import Metadata, make_call
from .errors import PosternError
from .journal import CONSISTENCY, POSITION, JournalMemory
from .verifier import SESSION_COOKIE, Feed

#: The files of proto/public/postern/v1 that declare services.
_FILES = (
    "accounts", "audit", "email_configs", "hooks", "outbox", "project", "providers", "sessions", "sms", "tenants", "tokens",
    "users")
_MESSAGE_BYTES_MAX = 16 << 20
_METADATA_VALUE = re.compile(r"[ -~]+\Z")

# While calls are in flight, a silent connection is asked whether it is alive; the server allows a hundred PINGs a second.
# gRPC would stop after two PINGs without data, and after an outage it would wait up to two minutes to connect again, or
# 20 seconds for an attempt to connect whose packets were lost.
_CHANNEL_OPTIONS: Sequence[Tuple[str, Any]] = (
    ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX), ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 10_000), ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.http2.max_pings_without_data", 0), ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 5_000))

# The open clients whose channel is watched. A process that ends would wait for gRPC's watching thread without end.
_watched: "weakref.WeakSet[Client]" = weakref.WeakSet()


@atexit.register
def _close_watched() -> None:
    for client in list(_watched):
        client.close()


# The threads of gRPC do not survive a fork: a child that closed its parent's clients would wait for them.
os.register_at_fork(after_in_child=_watched.clear)


@dataclass(frozen=True)
class TLS:
    """How the connection is secured. Each file is PEM."""

    #: The authorities to trust; None means those of gRPC.
    ca_file: Optional[str] = None
    #: A client certificate and its key.
    certificate_file: Optional[str] = None
    key_file: Optional[str] = None
    #: The name in the server's certificate, where it is not the one in the address.
    server_name: Optional[str] = None

    def _credentials(self) -> grpc.ChannelCredentials:
        def content(path: Optional[str]) -> Optional[bytes]:
            if path is None:
                return None
            with open(path, "rb") as file:
                return file.read()

        return grpc.ssl_channel_credentials(
            content(self.ca_file), content(self.key_file), content(self.certificate_file))


class Client:
    """Calls the server's methods. Any thread may use it.

        with Client("127.0.0.1:7400", api_key=key) as client:
            user = client.users.get(tenant_id="acme", uid="ada").user
            client.users.delete(uid="ada", idempotency_key="delete-ada-1")

    A service is an attribute (`client.users`), a method its name in lower case (`get_by_email`, `import_`); see `Service`.
    Without `tls`, key and tokens cross the network in the clear: use that only on loopback, or inside a tunnel.

    In a cluster, every node that answers has seen this client's earlier changes: with each call the client sends the highest
    journal position it knows, unless the call's metadata has `x-postern-position` or `x-postern-consistency`.
    """

    def __init__(
        self, address: str, api_key: Optional[str] = None, *, authorization: Optional[Callable[[], str]] = None,
        tls: Optional[TLS] = None, timeout: float = 10.0, channel: Optional[grpc.Channel] = None,
        reads_own_writes: bool = True
    ) -> None:
        """`authorization`, instead of a key, returns the value of that metadata for each call, such as `Bearer <JWT>`.
        White space around either is left out, because a file's last line often ends with a line feed. Raises ValueError
        for a key that cannot be one. `timeout`: the seconds for a call that names none. `reads_own_writes`: whether
        positions are sent."""
        if api_key is not None:
            api_key = _metadata_value("api_key", api_key)
        self._reads_own_writes, self._journal = reads_own_writes, JournalMemory()
        self._authorization = authorization or (None if api_key is None else lambda: f"Bearer {api_key}")
        self.timeout = timeout
        options: List[Tuple[str, Any]] = list(_CHANNEL_OPTIONS)
        if tls is not None and tls.server_name:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
        if channel is not None:
            self.channel = channel
        elif tls is not None:
            self.channel = grpc.secure_channel(address, tls._credentials(), options)
        else:
            self.channel = grpc.insecure_channel(address, options)
        self._owns_channel, self._is_watched, self._watching = channel is None, False, threading.Lock()
        self._services = {service.name: Service(self, service) for service in _services()}

    def close(self) -> None:
        with self._watching:
            self._owns_channel = False
            if self._is_watched:
                self.channel.unsubscribe(_ignore)
        self.channel.close()

    def _watch(self) -> None:
        """While no call waits, gRPC looks at an attempt to connect every five seconds only, and the attempt would time
        out before it is finished. For a channel that somebody watches, it looks all the time. Not before the first
        call: gRPC's thread fails if the channel is closed before the thread has begun."""
        if self._is_watched or not self._owns_channel:
            return
        with self._watching:
            if self._owns_channel and not self._is_watched:
                self.channel.subscribe(_ignore)
                self._is_watched = True
                _watched.add(self)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> "Service":
        services: Dict[str, Service] = self.__dict__.get("_services", {})
        service = services.get("".join(part.capitalize() for part in name.split("_")))
        if service is None:
            raise AttributeError(f"there is no service {name}")
        return service

    def _metadata(self, idempotency_key: Optional[str], metadata: Metadata) -> Metadata:
        result = list(metadata)
        if self._authorization is not None:
            result.append(("authorization", _metadata_value("authorization", self._authorization())))
        if idempotency_key is not None:
            result.append(("idempotency-key", _metadata_value("idempotency_key", idempotency_key)))
        self._watch()
        return result

    def _with_position(self, metadata: Metadata) -> Metadata:
        position = self._journal.position if self._reads_own_writes else ""
        if not position or any(name.lower() in (POSITION, CONSISTENCY) for name, _ in metadata):
            return metadata
        return [*metadata, (POSITION, position)]

    # As the source of a TokenVerifier

    def issuer_and_audience(self) -> Tuple[str, str]:
        info = self.project.server_info()
        return info.issuer, info.project_id

    def published_keys(self, token_kind: str) -> bytes:
        token_use = 2 if token_kind == SESSION_COOKIE else 1
        try:
            # A node of a cluster asks the others for a key that was made a moment ago.
            answer = self.tokens.list_keys(
                token_use=token_use, timeout=2.0, metadata=((CONSISTENCY, "latest"),))
        except PosternError as error:
            if error.status not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                raise
            # A node that cannot ask gives the keys that it has.
            answer = self.tokens.list_keys(token_use=token_use)
        return bytes(answer.jwks_json)

    def verify_token(self, token: str, token_kind: str, tenant_id: str, any_tenant: bool) -> None:
        if token_kind == SESSION_COOKIE:
            self.tokens.verify_session_cookie(session_cookie=token, tenant_id=tenant_id, any_tenant=any_tenant)
        else:
            self.tokens.verify_id_token(id_token=token, tenant_id=tenant_id, any_tenant=any_tenant)

    def watch_revocations(
        self, tenant_id: str, any_tenant: bool, cursor: str, heartbeat: int, session_cookies: bool
    ) -> Feed:
        stream: Feed = self.tokens.watch_revocations(
            tenant_id=tenant_id, any_tenant=any_tenant, cursor=cursor, heartbeat_seconds=heartbeat,
            session_cookies=session_cookies)
        return stream


class Service:
    """The methods of a service.

    `client.users.get(uid="ada")` takes the request's fields, or one request message. Each call may have a `timeout`
    (seconds, for all attempts), an `idempotency_key` and `metadata`. It returns a message, or for a streaming method an
    iterator with `cancel()`. A client-streaming method takes an iterator of requests. A call raises `PosternError`.

    A call that is safe to send again, by its method or by an idempotency key, is sent up to four times: when the server is
    not available, or when it says after which time to retry and that time ends before the timeout. `tokens.refresh` without
    an `attempt_id` gets one, because its repeat would otherwise end the session.
    """

    def __init__(self, client: Client, descriptor: Any) -> None:
        self._client = client
        self._methods = {_python_name(method.name): method for method in descriptor.methods}

    def __dir__(self) -> Sequence[str]:
        return [*super().__dir__(), *self._methods]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = self.__dict__.get("_methods", {}).get(name)
        if method is None:
            raise AttributeError(f"there is no method {name}")
        call = make_call(self._client, method)
        # Found as an attribute from now on.
        setattr(self, name, call)
        return call


def _ignore(_: object) -> None:
    pass


def _metadata_value(name: str, value: object) -> str:
    """Raises ValueError for what gRPC cannot send, without the value, which may be a secret."""
    stripped = value.strip() if isinstance(value, str) else ""
    if not _METADATA_VALUE.match(stripped):
        raise ValueError(f"{name} is a text of printable ASCII characters")
    return stripped


def _python_name(method: str) -> str:
    """`GetByEmail` is `get_by_email`, `Import` is `import_`."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def _services() -> Iterator[Any]:
    for name in _FILES:
        module = importlib.import_module(f"postern.v1.{name}_pb2")
        yield from module.DESCRIPTOR.services_by_name.values()
