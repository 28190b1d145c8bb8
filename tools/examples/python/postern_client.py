#!/usr/bin/env python3
"""A Postern client in one file, written from docs/protocol.md and proto/ alone: read it beside that page.

    postern_client.py 127.0.0.1:7400 --api-key-file KEY demo|watch-revocations

Needs Python 3.10, protoc and protobuf (Debian: protobuf-compiler, python3-protobuf). To use it elsewhere copy this file and
the folder proto/ beside it. Blocking; threads may share a connection, a stream belongs to one thread. A connection answers
PINGs and notices GOAWAY while something waits on it. No TLS: the key travels in the clear, stay on loopback.
"""
import argparse, os, selectors, shutil, signal, socket, struct, subprocess, sys, threading, time, uuid
from pathlib import Path
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
except ModuleNotFoundError:
    sys.exit("postern_client: protobuf is missing (Debian: python3-protobuf; pip install protobuf)")

REQUEST, RESPONSE, DATA, HELLO, PING, GOAWAY, CANCEL, WINDOW = 1, 2, 3, 0x10, 0x11, 0x12, 0x13, 0x14
UNARY, SERVER_STREAM = 0, 0x01  # flags of REQUEST
LAST, NO_MESSAGE, ANSWER = 0x01, 0x04, 0x01  # flags of DATA, DATA and PING
CANCELLED, DEADLINE_EXCEEDED = 1, 2  # WireCode of CANCEL
HEADER_BYTES, INITIAL_WINDOW = 10, 64 << 10  # the window: bytes of DATA frames under way to us on a stream
STATUS_CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
                "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE "
                "DATA_LOSS UNAUTHENTICATED").split()


def proto_folder():
    """proto/ beside this file or above it, or this file's own folder."""
    here = Path(__file__).resolve().parent
    for folder in [here / "proto", here, *(parent / "proto" for parent in here.parents)]:
        if (folder / "postern").is_dir():
            return folder
    sys.exit(f"postern_client: the .proto files are missing: copy the folder proto to {here}")


def compile_protos(folder):
    """Every message and method of the .proto files in `folder`, to be found by name."""
    if not shutil.which("protoc"):
        sys.exit("postern_client: protoc is missing (Debian: protobuf-compiler)")
    files = [path for package in ("google", "grpc", "postern") for path in (folder / package).rglob("*.proto")]
    command = ["protoc", f"-I{folder}", "--include_imports", "-o/dev/stdout", *map(str, files)]
    compiled = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = compile_protos(proto_folder())
# The first is the name since protobuf 4.22.
message_class = getattr(message_factory, "GetMessageClass", 0) or message_factory.MessageFactory(POOL).GetPrototype


def message(name):
    return message_class(POOL.FindMessageTypeByName(name))


def enum_name(message, field):
    return message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(message, field)].name


class ClientError(Exception):
    """A call got no answer, or its answer is a failure."""


class CallFailed(ClientError):
    """The answer is a failure. Switch on `reason`; `metadata` says more, `retry_after` (seconds) when to try again."""

    def __init__(self, status):
        def detail(name):  # empty where the status has none
            found = message("google.rpc." + name)()
            for packed in status.details:
                packed.Unpack(found)  # does nothing with a detail of another kind
            return found
        self.code = dict(enumerate(STATUS_CODES)).get(status.code, "UNKNOWN")
        self.reason, self.metadata = detail("ErrorInfo").reason, dict(detail("ErrorInfo").metadata)
        self.retry_after = detail("RetryInfo").retry_delay.ToNanoseconds() / 1e9
        self.request_id = detail("RequestInfo").request_id
        more = [f"{key}: {value}" for key, value in sorted(self.metadata.items())]
        more += [f"retry after {self.retry_after:g} s"] if self.retry_after else []
        super().__init__("; ".join([f"{self.code} {self.reason}: {status.message}", *more, f"id {self.request_id}"]))


class Connection:
    """A TCP connection that began with HELLO. Calls run on it side by side, each on a stream of its own.

    Of the threads that wait for answers, one reads, and puts each frame into the inbox of its stream."""

    def __init__(self, address, api_key, timeout=10.0):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(10)
        self.readable = selectors.DefaultSelector()
        self.readable.register(self.socket, selectors.EVENT_READ)
        self.sending = threading.RLock()  # held for a whole frame; REQUESTs leave in the order of their streams
        self.changed, self.is_reading = threading.Condition(), False  # notified when frames came
        self.api_key, self.going_away, self.next_stream = api_key, None, 1
        self.received, self.inboxes = bytearray(), {}  # an inbox: frames that came for a stream in flight
        hello = message("postern.wire.v1.WireHello")
        self.send(HELLO, 0, 0, hello(protocol_version=1, initial_window=INITIAL_WINDOW, software="postern_client.py"))
        if self.read_frame(time.monotonic() + timeout)[0] != HELLO:
            raise ClientError("the server does not begin with HELLO")

    def call(self, method, timeout=10.0, metadata=(), **fields):
        """A unary call: call("postern.v1.Users/Get", uid="ann"). Raises ClientError."""
        stream = Stream(self, UNARY, method, timeout, dict(metadata), fields)
        try:
            return stream.read(timeout)
        except TimeoutError:
            stream.cancel(DEADLINE_EXCEEDED)
            raise ClientError(f"{method} was not answered within {timeout:g} s; it may have taken effect") from None

    def watch(self, method, **fields):
        """Begins a server stream; it has no deadline."""
        return Stream(self, SERVER_STREAM, method, 0, {}, fields)

    def send(self, kind, stream, flags, payload):
        payload = payload if isinstance(payload, bytes) else payload.SerializeToString()
        with self.sending:
            self.socket.sendall(struct.pack(">IIBB", len(payload), stream, kind, flags) + payload)

    def read_frame(self, deadline):
        """The next frame: type, stream, flags, payload. After a TimeoutError its first bytes are kept for the next call."""
        while True:
            if len(self.received) >= HEADER_BYTES:
                length, stream, kind, flags = struct.unpack_from(">IIBB", self.received)
                if len(self.received) >= HEADER_BYTES + length:
                    payload = bytes(self.received[HEADER_BYTES:HEADER_BYTES + length])
                    del self.received[:HEADER_BYTES + length]
                    return kind, stream, flags, payload
            # Does not use the socket's timeout, which is for the threads that send meanwhile.
            if (remaining := deadline - time.monotonic()) <= 0 or not self.readable.select(remaining):
                raise TimeoutError("the server does not answer")
            if not (chunk := self.socket.recv(65536)):
                raise ClientError("the server closed the connection")
            self.received += chunk

    def process_frames(self, stream, deadline):
        """Returns when a frame came, for this stream or another; waits while another thread reads."""
        with self.changed:
            if self.is_reading:
                if not stream.inbox and not self.changed.wait(deadline - time.monotonic()):
                    raise TimeoutError("the server does not answer")
                return
            self.is_reading = True
        try:
            if not stream.inbox:  # it may have come before the lock was taken
                self.process_frame(deadline)
        finally:
            with self.changed:
                self.is_reading = False
                self.changed.notify_all()

    def process_frame(self, deadline):
        """Reads a frame and puts it into its stream's inbox, or does what it asks for."""
        kind, stream, flags, payload = self.read_frame(deadline)
        if kind == PING and not flags & ANSWER:
            self.send(PING, 0, ANSWER, payload)
        elif kind == GOAWAY:
            self.going_away = message("postern.wire.v1.WireGoAway").FromString(payload)
            print(f"GOAWAY: {self.going_away.text}", file=sys.stderr)
        elif kind in (RESPONSE, DATA, CANCEL):
            self.inboxes.get(stream, []).append((kind, flags, payload))  # of a stream that is over: dropped
        elif kind >= 0x80:
            raise ClientError(f"the server sent a frame of type {kind:#x}, which must not be skipped")


class Stream:
    """A call in flight."""

    def __init__(self, connection, flags, method, timeout, metadata, fields):
        if connection.going_away:
            raise ClientError("the server stops: connect again")
        service, _, name = method.partition("/")
        descriptor = POOL.FindServiceByName(service).methods_by_name[name]
        self.response_class = message_class(descriptor.output_type)
        metadata = {"authorization": f"Bearer {connection.api_key}", **metadata}
        request = message("postern.wire.v1.WireRequest")(
            service=service, method=name, timeout_nano=int(timeout * 1e9),
            payload=message_class(descriptor.input_type)(**fields).SerializeToString(),
            metadata=[{"key": key, "value": value} for key, value in metadata.items()])
        with connection.sending:
            self.connection, self.id, self.inbox, self.ungranted = connection, connection.next_stream, [], 0
            connection.next_stream += 2
            connection.inboxes[self.id] = self.inbox
            connection.send(REQUEST, self.id, flags, request)

    def read(self, timeout):
        """The next message, or None when the stream has ended. Raises ClientError, and TimeoutError: read again."""
        deadline = time.monotonic() + timeout
        while not self.inbox:
            if self.id not in self.connection.inboxes:
                return None
            if (away := self.connection.going_away) and self.id > away.last_stream_id:
                raise ClientError("the server stops and did not begin the call: send it again on a new connection")
            self.connection.process_frames(self, deadline)
        kind, flags, payload = self.inbox.pop(0)
        if kind == DATA and not flags & LAST:
            self.ungranted += HEADER_BYTES + len(payload)
            if self.ungranted >= INITIAL_WINDOW // 2:  # not for every message: that would double the frames
                window = message("postern.wire.v1.WireWindow")
                self.connection.send(WINDOW, self.id, 0, window(credit=self.ungranted))
                self.ungranted = 0
            return self.response_class.FromString(payload)
        self.connection.inboxes.pop(self.id, None)
        if kind == DATA:
            return None if flags & NO_MESSAGE or not payload else self.response_class.FromString(payload)
        if kind == CANCEL:
            cancel = message("postern.wire.v1.WireCancel").FromString(payload)
            raise ClientError(f"the server ended the call: {enum_name(cancel, 'code')}")
        response = message("postern.wire.v1.WireResponse").FromString(payload)
        if response.status.code != 0:
            raise CallFailed(response.status)
        return self.response_class.FromString(response.payload)

    def cancel(self, code=CANCELLED):
        """Ends the call, if it has not ended. Frames of it that come later are dropped."""
        if self.connection.inboxes.pop(self.id, None) is not None:
            self.connection.send(CANCEL, self.id, 0, message("postern.wire.v1.WireCancel")(code=code))


def demo(arguments, api_key):
    """Signs a user up or in, watches its session, refreshes its tokens on another connection and signs it out."""
    first, second = Connection(arguments.address, api_key), Connection(arguments.address, api_key)
    tenant = {"tenant_id": arguments.tenant}
    password = Path(arguments.password_file).read_text().strip() if arguments.password_file else str(uuid.uuid4())
    login = {"email": arguments.email, "password": password, "device_name": "postern_client.py", **tenant}
    once = {"idempotency-key": str(uuid.uuid4())}  # sent again after a lost answer, the change is made once
    try:
        user = first.call("postern.v1.Accounts/SignUp", metadata=once, **login)
    except CallFailed as failure:
        if failure.reason != "EMAIL_EXISTS":
            raise
        user = first.call("postern.v1.Accounts/SignInWithPassword", metadata=once, **login)
    print(f"signed in: {user.user.email}")
    verified = first.call("postern.v1.Tokens/VerifyIdToken", id_token=user.tokens.id_token, **tenant)
    print(f"verified: uid {verified.uid}, session {verified.session_id}")
    events = first.watch("postern.v1.Sessions/WatchAuthState", id_token=user.tokens.id_token, **tenant)
    while event := events.read(10):
        change = enum_name(event, "change")
        print(f"event: {change} {event.end_cause or enum_name(event, 'refresh_cause')}")
        if change == "AUTH_STATE_CHANGE_INITIAL":
            # The attempt is kept before it is sent: after a lost answer the same attempt gets the same tokens.
            attempt = {"refresh_token": user.tokens.refresh_token, "attempt_id": os.urandom(16), **tenant}
            tokens = second.call("postern.v1.Tokens/Refresh", **attempt).tokens
            print("refreshed on another connection")
        elif change == "AUTH_STATE_CHANGE_TOKEN_REFRESHED":
            second.call("postern.v1.Sessions/SignOut", refresh_token=tokens.refresh_token, **tenant)
    print("the stream ended")


def watch_revocations(arguments, api_key):
    """Prints what revokes tokens until it is interrupted."""
    heartbeat, scope = 10, {"tenant_id": arguments.tenant} if arguments.tenant else {"any_tenant": True}
    feed = Connection(arguments.address, api_key).watch(
        "postern.v1.Tokens/WatchRevocations", cursor=arguments.cursor, heartbeat_seconds=heartbeat, **scope)
    try:
        while batch := feed.read(3 * heartbeat):  # without heartbeats nothing is known of what was revoked
            if batch.snapshot_reason:
                print(f"snapshot: {enum_name(batch, 'snapshot_reason')}; forget what was known before")
            for revocation in batch.revocations:
                print("revoked:", text_format.MessageToString(revocation, as_one_line=True))
            if not batch.continues:
                print(f"complete up to {batch.time_micros}, cursor {batch.cursor}", flush=True)
    except KeyboardInterrupt:
        feed.cancel()


def main():
    parser = argparse.ArgumentParser(description="An example client of Postern.")
    parser.add_argument("address", metavar="ADDRESS", help="HOST:PORT")
    parser.add_argument("--api-key-file", required=True, help="holds `pk_…`; the role app, or verifier to watch")
    parser.add_argument("--tenant", default="", help="none: the key's own tenant, or the default pool")
    parser.add_argument("--email", default=f"{uuid.uuid4()}@example.com", help="demo's user; none: a new one")
    parser.add_argument("--password-file", help="none: a random password")
    parser.add_argument("--cursor", default="", help="where watch-revocations goes on")
    parser.add_argument("command", choices=["demo", "watch-revocations"])
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run = demo if arguments.command == "demo" else watch_revocations
        run(arguments, api_key=Path(arguments.api_key_file).read_text().strip())
    except (ClientError, OSError, ValueError) as error:
        sys.exit(f"postern_client: {error}")


if __name__ == "__main__":
    main()
