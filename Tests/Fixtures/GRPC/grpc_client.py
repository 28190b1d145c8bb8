#!/usr/bin/env python3
"""What a program does that calls Postern with a stock gRPC client (grpcio); GRPCClientTests runs it against a server.

    grpc_client.py 127.0.0.1:7400 [--key-file FILE] [--ca-file FILE [--certificate FILE --certificate-key FILE]] [CASE]...

With --ca-file it speaks TLS, and with a certificate it may do without an API key.
Each function named check_… is one case. A line "ok NAME" is printed for each that held; the first that does not ends the
run. Needs python3-grpcio, python3-protobuf and protoc; the messages are compiled from proto/.
"""
import argparse
import subprocess
import threading
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).resolve().parents[3] / "proto"
UNARY, SERVER, BIDI = "unary_unary", "unary_stream", "stream_stream"


def compile_protos():
    files = [str(path) for folder in ("google", "grpc", "postern/v1") for path in PROTO.joinpath(folder).rglob("*.proto")]
    command = ["protoc", f"-I{PROTO}", "--include_imports", "-o/dev/stdout", *files]
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(subprocess.run(
            command, check=True, stdout=subprocess.PIPE).stdout).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = compile_protos()
message_class = getattr(message_factory, "GetMessageClass", 0) or message_factory.MessageFactory(POOL).GetPrototype


def message(name, **fields):
    return message_class(POOL.FindMessageTypeByName(name))(**fields)


class Client:
    """`key` is an API key or None, `tls` what grpc.ssl_channel_credentials takes or None."""

    def __init__(self, address, key, tls, **options):
        self.address, self.tls = address, tls
        options = list(options.items())
        if tls:
            self.channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*tls), options=options)
        else:
            self.channel = grpc.insecure_channel(address, options=options)
        self.metadata = [("authorization", f"Bearer {key}")] if key else []

    def stranger(self):
        """Another connection, without a key and without a certificate."""
        return Client(self.address, None, self.tls and self.tls[:1], **{"grpc.use_local_subchannel_pool": 1})

    def method(self, kind, name):
        service, _, method = name.partition("/")
        described = POOL.FindServiceByName(service).methods_by_name[method]
        return getattr(self.channel, kind)(
            f"/{name}", request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=message_class(described.output_type).FromString)

    def call(self, name, request, **options):
        options.setdefault("metadata", self.metadata)
        return self.method(UNARY, name)(request, timeout=options.pop("timeout", 30), **options)


def sign_up(client, email):
    return client.call("postern.v1.Accounts/SignUp", message(
        "postern.v1.AccountsSignUpRequest", email=email, password="correct horse"))


def expect_failure(code, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        return error
    raise AssertionError(f"no failure, but {code} was expected")


def status_of(error):
    """The google.rpc.Status of a failure, and its ErrorInfo."""
    details = dict(error.trailing_metadata())["grpc-status-details-bin"]
    status = message_class(POOL.FindMessageTypeByName("google.rpc.Status")).FromString(details)
    info = message("google.rpc.ErrorInfo")
    assert status.details[0].Unpack(info)
    return status, info


def check_unary(client):
    user = sign_up(client, "ada@example.com")
    got = client.call("postern.v1.Users/GetByEmail", message(
        "postern.v1.UsersGetByEmailRequest", email="ada@example.com"))
    assert got.user.email == "ada@example.com", got
    assert user.tokens.id_token or user, user


def check_request_id(client):
    request = message("grpc.health.v1.HealthCheckRequest")
    _, call = client.method(UNARY, "grpc.health.v1.Health/Check").with_call(
        request, metadata=[("x-request-id", "mine-1"), ("other-bin", b"\x00\xff")])
    assert ("x-request-id", "mine-1") in [(key, value) for key, value in call.initial_metadata()], call.initial_metadata()


def check_error_details(client):
    error = expect_failure(grpc.StatusCode.NOT_FOUND, lambda: client.call(
        "postern.v1.Users/GetByEmail", message("postern.v1.UsersGetByEmailRequest", email="nobody@example.com"),
        metadata=client.metadata + [("x-request-id", "mine-2")]))
    status, info = status_of(error)
    assert (info.reason, info.domain) == ("USER_NOT_FOUND", "postern"), info
    assert status.message == error.details(), (status.message, error.details())
    assert status.code == 5
    request_info = message("google.rpc.RequestInfo")
    assert any(packed.Unpack(request_info) for packed in status.details)
    assert request_info.request_id == "mine-2"


def check_unauthenticated(client):
    error = expect_failure(grpc.StatusCode.UNAUTHENTICATED, lambda: client.call(
        "postern.v1.Users/List", message("postern.v1.UsersListRequest"), metadata=[("authorization", "Bearer pk_no")]))
    assert status_of(error)[1].reason == "CALLER_UNAUTHENTICATED"


def check_unknown_method(client):
    call = client.channel.unary_unary("/postern.v1.Users/Nothing")
    expect_failure(grpc.StatusCode.UNIMPLEMENTED, lambda: call(b"", metadata=client.metadata, timeout=10))
    call = client.channel.unary_unary("/nothing")
    expect_failure(grpc.StatusCode.UNIMPLEMENTED, lambda: call(b"", metadata=client.metadata, timeout=10))


def check_wrong_shape(client):
    call = client.channel.stream_unary("/postern.v1.Users/Get")
    expect_failure(grpc.StatusCode.UNIMPLEMENTED, lambda: call(
        iter([b"", b""]), metadata=client.metadata, timeout=10))
    expect_failure(grpc.StatusCode.UNIMPLEMENTED, lambda: call(iter([]), metadata=client.metadata, timeout=10))


def check_server_stream(client):
    watch = client.method(SERVER, "grpc.health.v1.Health/Watch")(message("grpc.health.v1.HealthCheckRequest"))
    assert next(watch).status == 1
    watch.cancel()
    expect_failure(grpc.StatusCode.CANCELLED, lambda: next(watch))


def check_deadline(client):
    watch = client.method(SERVER, "grpc.health.v1.Health/Watch")(
        message("grpc.health.v1.HealthCheckRequest"), timeout=0.5)
    assert next(watch).status == 1
    expect_failure(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: next(watch))


def check_bidirectional(client):
    def requests():
        for batch in range(3):
            users = [message("postern.v1.ImportUser", uid=f"user-{batch}-{n}", email=f"u{batch}-{n}@example.com")
                     for n in range(100)]
            yield message("postern.v1.UsersImportRequest", users=users)
    answers = list(client.method(BIDI, "postern.v1.Users/Import")(requests(), metadata=client.metadata, timeout=30))
    got = client.call("postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="user-2-99"))
    assert got.user.uid == "user-2-99" and answers, (got, answers)


def check_reflection(client):
    for version in ("v1", "v1alpha"):
        call = client.channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=message_class(
                POOL.FindMessageTypeByName("grpc.reflection.v1.ServerReflectionResponse")).FromString)
        answers = call(iter([message("grpc.reflection.v1.ServerReflectionRequest", list_services="*")]),
                       metadata=client.metadata, timeout=10)
        names = [service.name for service in next(answers).list_services_response.service]
        assert "postern.v1.Users" in names, names


def check_gzip(client):
    got = client.call("postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="user-0-0"),
                      compression=grpc.Compression.Gzip)
    assert got.user.uid == "user-0-0"


def check_large_message(client):
    """One that is far above the first windows, on a new connection."""
    users = [message("postern.v1.ImportUser", uid=f"large-{n}", email=f"large-{n}@example.com",
                     display_name="x" * 200, photo_url="https://example.com/" + "y" * 1900) for n in range(400)]
    request = message("postern.v1.UsersImportRequest", users=users)
    assert request.ByteSize() > 800_000
    answers = list(client.method(BIDI, "postern.v1.Users/Import")(
        iter([request]), metadata=client.metadata, timeout=30))
    assert answers


def check_large_unary(client):
    """Above what a stranger may send: the credential in the headers allows it."""
    error = expect_failure(grpc.StatusCode.INVALID_ARGUMENT, lambda: client.call(
        "postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="z" * 500_000)))
    assert status_of(error)[1].domain == "postern"
    stranger = client.stranger()
    for metadata in ([], [("authorization", "Bearer pk_no")]):
        error = expect_failure(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: stranger.call(
            "postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="z" * 200_000), metadata=metadata))
        assert status_of(error)[1].reason == "FRAME_TOO_LARGE"
    error = expect_failure(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: client.call(
        "postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="z" * 5_000_000)))


def check_thousand_calls(client):
    get = client.method(UNARY, "postern.v1.Users/Get")
    calls = [(f"user-{n % 3}-{n % 100}", get.future(
        message("postern.v1.UsersGetRequest", uid=f"user-{n % 3}-{n % 100}"), metadata=client.metadata, timeout=60))
        for n in range(1_000)]
    for uid, call in calls:
        assert call.result().user.uid == uid


def check_pages(client):
    """Many answers that are larger than a window, at once."""
    pages = client.method(UNARY, "postern.v1.Users/List")
    calls = [pages.future(message("postern.v1.UsersListRequest", page_size=1_000), metadata=client.metadata, timeout=60)
             for _ in range(50)]
    for call in calls:
        assert len(call.result().users) > 100


def check_threads(client):
    failures = []

    def work(number):
        try:
            for _ in range(50):
                client.call("postern.v1.Users/Get", message("postern.v1.UsersGetRequest", uid="user-1-1"))
        except Exception as error:
            failures.append(error)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("cases", nargs="*")
    for name in ["--key-file", "--ca-file", "--certificate", "--certificate-key"]:
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    key = given.key_file and given.key_file.read_text().strip()
    # In the order of grpc.ssl_channel_credentials: the authorities, the key, the certificate.
    files = [given.ca_file, given.certificate_key, given.certificate]
    tls = [file.read_bytes() for file in files if file] if given.ca_file else None
    client = Client(given.address, key, tls)
    for name, check in list(globals().items()):
        if name.startswith("check_") and (not given.cases or name[6:] in given.cases):
            # Those that are about a connection's first bytes get one of their own.
            own = Client(given.address, key, tls, **{"grpc.use_local_subchannel_pool": 1}) if "large" in name else client
            check(own)
            print("ok", name[6:], flush=True)


if __name__ == "__main__":
    main()
