"""The client against a gRPC server in this process, which answers what a test tells it to."""
import importlib
import pickle
import subprocess
import sys
import threading
import time
import unittest
from concurrent import futures
from pathlib import Path

import grpc

import postern
from postern.client import _CHANNEL_OPTIONS, _FILES
from postern.errors import error_of
from postern.v1 import tokens_pb2, users_pb2

from .test_tokens import AUDIENCE, ISSUER, Signer, jwks


def field(number, content):
    """A field of a protobuf message: a number, or bytes."""
    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def detail(kind, content):
    return field(3, field(1, f"type.googleapis.com/google.rpc.{kind}".encode()) + field(2, content))


def failure_details(reason, retry_nanos=0):
    info = field(1, reason.encode()) + field(2, b"postern") + field(3, field(1, b"quota") + field(2, b"rows"))
    retry = detail("RetryInfo", field(1, field(2, retry_nanos))) if retry_nanos else b""
    violation = detail("BadRequest", field(1, field(1, b"uid") + field(2, b"is required")))
    return field(1, 8) + detail("ErrorInfo", info) + retry + violation + detail("RequestInfo", field(1, b"r-1"))


class Server(grpc.GenericRpcHandler):
    """Plays a script: each call of a method takes the next of its steps."""

    def __init__(self):
        self.calls, self.script = [], {}
        self.server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[self])
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def service(self, details):
        def step(request, context):
            self.calls.append((details.method, dict(context.invocation_metadata()), request))
            steps = self.script.get(details.method.rpartition("/")[2], [])
            return steps.pop(0)(request, context) if len(steps) > 1 else steps[0](request, context)

        if details.method.endswith("WatchRevocations"):
            return grpc.unary_stream_rpc_method_handler(step)
        if details.method.endswith("Import"):
            return grpc.stream_stream_rpc_method_handler(step)
        return grpc.unary_unary_rpc_method_handler(step)


def fails(code, reason="", retry_nanos=0):
    def step(_, context):
        if reason:
            context.set_trailing_metadata([("grpc-status-details-bin", failure_details(reason, retry_nanos))])
        context.abort(code, "what to do")
    return step


def answers(message):
    return lambda *_: message.SerializeToString()


class ClientTests(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.server.stop, None)
        self.client = postern.Client(f"127.0.0.1:{self.server.port}", api_key="pk_1")
        self.addCleanup(self.client.close)
        self.ada = answers(users_pb2.UsersGetResponse())

    def test_a_call_has_its_fields_its_credential_and_its_metadata(self):
        made = users_pb2.UsersGetResponse()
        made.user.uid = "ada"
        self.server.script["Get"] = [answers(made)]
        got = self.client.users.get(uid="ada", tenant_id="acme", metadata=[("x-request-id", "mine")])
        self.assertEqual(got.user.uid, "ada")
        method, metadata, request = self.server.calls[0]
        self.assertEqual(method, "/postern.v1.Users/Get")
        self.assertEqual((metadata["authorization"], metadata["x-request-id"]), ("Bearer pk_1", "mine"))
        self.assertEqual(users_pb2.UsersGetRequest.FromString(request).tenant_id, "acme")
        self.client.users.get(users_pb2.UsersGetRequest(uid="ada"))
        self.assertRaises(TypeError, self.client.users.get, users_pb2.UsersGetRequest(), uid="ada")
        self.assertRaises(AttributeError, lambda: self.client.users.got)
        self.assertRaises(AttributeError, lambda: self.client.nobodies)
        self.assertIn("get_by_email", dir(self.client.users))

    def test_every_service_is_there(self):
        # The stubs are made from all files of proto/public.
        names = [path.name[:-len("_pb2.py")] for path in Path(postern.__file__).parent.glob("v1/*_pb2.py")]
        declared = {name: importlib.import_module(f"postern.v1.{name}_pb2").DESCRIPTOR.services_by_name for name in names}
        self.assertEqual(list(_FILES), sorted(name for name in names if declared[name]))
        self.assertIn("watch_events", dir(self.client.audit))
        self.assertIn("update", dir(self.client.hook_configs))

    def test_a_key_may_come_from_a_file_with_a_line_feed(self):
        self.server.script["Get"] = [self.ada]
        address = f"127.0.0.1:{self.server.port}"
        for options in ({"api_key": " pk_1\r\n"}, {"authorization": lambda: "Bearer pk_1\n"}):
            with postern.Client(address, **options) as client:
                client.users.get(uid="ada", idempotency_key="one\n")
            metadata = self.server.calls[-1][1]
            self.assertEqual((metadata["authorization"], metadata["idempotency-key"]), ("Bearer pk_1", "one"))
        for key in ("", "\n", "pk_1\npk_2", "pk_é", b"pk_1"):
            with self.assertRaises(ValueError) as caught:
                postern.Client(address, api_key=key)
            self.assertNotIn("pk", str(caught.exception).replace("api_key", ""))
        with postern.Client(address, authorization=lambda: None) as client:
            self.assertRaises(ValueError, client.users.get, uid="ada")
        self.assertRaises(ValueError, self.client.users.get, uid="ada", idempotency_key="é")

    def test_a_request_of_a_wrong_type_is_a_type_error(self):
        for request in ({"uid": "x"}, "x", users_pb2.UsersListRequest()):
            with self.assertRaisesRegex(TypeError, "^Get takes the fields of a UsersGetRequest, or one such message"):
                self.client.users.get(request)
        with self.assertRaisesRegex(TypeError, "does not take str as custom_claims_json: it is bytes"):
            self.client.users.set_custom_claims(uid="x", custom_claims_json="{}")
        with self.assertRaisesRegex(TypeError, "does not take int as uid: "):
            self.client.users.get(tenant_id="acme", uid=7)
        self.assertRaises(ValueError, self.client.users.get, nobody="x")
        self.assertEqual(self.server.calls, [])

    def test_an_error_of_the_requests_iterator_is_the_callers(self):
        self.server.script["Import"] = [lambda requests, _: (b"" for _ in requests)]
        for request in ({"users": []}, users_pb2.UsersGetRequest()):
            with self.assertRaisesRegex(TypeError, "^Import takes the fields of a UsersImportRequest"):
                list(self.client.users.import_([request]))

        def rows():
            yield users_pb2.UsersImportRequest()
            raise KeyError("a row")
        self.assertRaises(KeyError, list, self.client.users.import_(rows()))
        for requests in (None, users_pb2.UsersImportRequest()):
            with self.assertRaisesRegex(TypeError, "takes an iterator"):
                self.client.users.import_(requests)

    def sent_position(self, index=-1):
        return self.server.calls[index][1].get("x-postern-position")

    def tells(self, *positions):
        """Answers to changes, each with a position."""
        def step(position):
            def answer(_, context):
                context.send_initial_metadata([("x-postern-position", position)])
                return users_pb2.UsersGetResponse().SerializeToString()
            return answer
        self.server.script["Create"] = [*map(step, positions), self.ada]
        for _ in positions:
            self.client.users.create(email="ada@example.com")

    def test_the_highest_position_that_was_told_is_sent(self):
        self.server.script["Get"] = [self.ada]
        self.client.users.get(uid="ada")
        self.assertIsNone(self.sent_position())
        one, other = "a" * 32, "b" * 32
        for told, expected in (
                ([f"{one}.9"], f"{one}.9"), ([f"{one}.100", f"{one}.12"], f"{one}.100"),
                (["", "x", f"{one}.0101", f"{one}.1e9", f"{one}.-1", f"{one}.{'9' * 21}", f"{one}.101 "], f"{one}.100"),
                ([f"{one}.18446744073709551615"], f"{one}.18446744073709551615"), ([f"{other}.3"], f"{other}.3")):
            self.tells(*told)
            self.client.users.get(uid="ada")
            self.assertEqual(self.sent_position(), expected)
        self.client.users.get(uid="ada", metadata=[("x-postern-consistency", "latest")])
        self.assertIsNone(self.sent_position())
        self.client.users.get(uid="ada", metadata=[("x-postern-position", f"{one}.1")])
        self.assertEqual(self.sent_position(), f"{one}.1")

    def test_a_client_may_choose_to_send_no_position(self):
        self.client.close()
        self.client = postern.Client(f"127.0.0.1:{self.server.port}", api_key="pk_1", reads_own_writes=False)
        self.server.script["Get"] = [self.ada]
        self.tells("a" * 32 + ".9")
        self.client.users.get(uid="ada")
        self.assertIsNone(self.sent_position())

    def test_a_position_that_is_refused_is_forgotten(self):
        self.tells("a" * 32 + ".9")
        refused = fails(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_POSITION")
        self.server.script["Delete"] = [refused, answers(users_pb2.UsersDeleteResponse())]
        self.client.users.delete(uid="ada")
        self.assertEqual([self.sent_position(-2), self.sent_position()], ["a" * 32 + ".9", None])
        # If the caller gave the position, the refusal is the caller's mistake.
        self.server.script["Delete"] = [refused]
        count = len(self.server.calls)
        with self.assertRaises(postern.PosternError):
            self.client.users.delete(uid="ada", metadata=[("x-postern-position", "x")])
        self.assertEqual(len(self.server.calls), count + 1)

    def test_a_position_that_is_refused_for_a_stream_is_forgotten_too(self):
        self.tells("a" * 32 + ".9")
        heard = tokens_pb2.TokensWatchRevocationsResponse(cursor="one").SerializeToString()
        self.server.script["WatchRevocations"] = [
            fails(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_POSITION"), lambda *_: iter([heard])]
        with self.assertRaises(postern.PosternError):
            list(self.client.tokens.watch_revocations())
        self.assertEqual(self.sent_position(), "a" * 32 + ".9")
        self.assertEqual([message.cursor for message in self.client.tokens.watch_revocations()], ["one"])
        self.assertIsNone(self.sent_position())

    def test_a_failure_says_everything(self):
        self.server.script["Get"] = [fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")]
        with self.assertRaises(postern.PosternError) as caught:
            self.client.users.get(uid="ada")
        error = caught.exception
        self.assertEqual((error.status, error.reason, error.message),
                         ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "what to do"))
        self.assertEqual((error.metadata, error.violations, error.request_id),
                         ({"quota": "rows"}, [("uid", "is required")], "r-1"))
        self.assertIn(error, {error})
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))
        self.assertEqual(len(self.server.calls), 1)

    def test_details_that_are_cut_short_are_left_out(self):
        details = failure_details("QUOTA_EXCEEDED", 5)
        for length in range(len(details)):
            self.assertEqual(error_of("INTERNAL", "m", details[:length]).status, "INTERNAL")
        self.assertEqual(error_of("INTERNAL", "m", b"\xff" * 40).reason, "")

    def test_what_is_safe_is_sent_again_and_nothing_else(self):
        away = fails(grpc.StatusCode.UNAVAILABLE)
        self.server.script["Get"] = [away, away, self.ada]
        self.client.users.get(uid="ada")
        self.assertEqual(len(self.server.calls), 3)
        self.server.script["Get"] = [away]
        self.assertRaises(postern.PosternError, self.client.users.get, uid="ada")
        self.assertEqual(len(self.server.calls), 7)
        # A change is sent again only with an idempotency key.
        self.server.script["Delete"] = [away]
        self.assertRaises(postern.PosternError, self.client.users.delete, uid="ada")
        self.assertEqual(len(self.server.calls), 8)
        self.server.script["Delete"] = [away, answers(users_pb2.UsersDeleteResponse())]
        self.client.users.delete(uid="ada", idempotency_key="key-1")
        self.assertEqual([call[1].get("idempotency-key") for call in self.server.calls[8:]], ["key-1", "key-1"])
        # Another failure ends the retries.
        self.server.script["Get"] = [fails(grpc.StatusCode.NOT_FOUND, "USER_NOT_FOUND"), self.ada]
        self.assertRaises(postern.PosternError, self.client.users.get, uid="ada")

    def test_a_refresh_that_is_sent_again_has_the_same_attempt(self):
        away, done = fails(grpc.StatusCode.UNAVAILABLE), answers(tokens_pb2.TokensRefreshResponse(uid="ada"))

        def attempts(*arguments, **fields):
            self.server.calls.clear()
            self.server.script["Refresh"] = [away, done]
            self.assertEqual(self.client.tokens.refresh(*arguments, **fields).uid, "ada")
            return [tokens_pb2.TokensRefreshRequest.FromString(call[2]).attempt_id for call in self.server.calls]

        first = attempts(refresh_token="r")
        self.assertEqual((len(first), len(set(first)), len(first[0])), (2, 1, 16))
        request = tokens_pb2.TokensRefreshRequest(refresh_token="r")
        second = attempts(request)
        self.assertEqual((len(second), len(set(second)), len(second[0])), (2, 1, 16))
        self.assertNotEqual(first[0], second[0])
        self.assertEqual(request.attempt_id, b"")
        self.assertEqual(attempts(refresh_token="r", attempt_id=b"7" * 16), [b"7" * 16] * 2)

    def test_a_change_that_may_have_been_made_outranks_a_later_refusal(self):
        unknown = fails(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE", 1_000_000)
        # As after a connection that was lost.
        lost = fails(grpc.StatusCode.UNAVAILABLE)
        behind = fails(grpc.StatusCode.UNAVAILABLE, "NODE_BEHIND", 1_000_000)
        gone = fails(grpc.StatusCode.NOT_FOUND, "USER_NOT_FOUND")
        full = fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", 900_000_000)
        elsewhere = fails(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_POSITION")
        for steps, reason in (
                ([unknown, behind], "STORE_UNAVAILABLE"), ([lost, behind], ""), ([behind], "NODE_BEHIND"),
                ([unknown, gone], "USER_NOT_FOUND"), ([unknown, full], "STORE_UNAVAILABLE"), ([lost, full], ""),
                ([full], "QUOTA_EXCEEDED"), ([lost, elsewhere], "")):
            self.server.script["Delete"] = list(steps)
            with self.assertRaises(postern.PosternError) as caught:
                self.client.users.delete(uid="ada", idempotency_key="key-1", timeout=0.8)
            self.assertEqual(caught.exception.reason, reason)
            if steps[-1] is full:
                self.assertEqual(caught.exception.retry_after, 0.9)

    def test_the_server_says_when_to_come_back_and_the_deadline_bounds_it(self):
        busy = fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "SERVER_OVERLOADED", 20_000_000)
        self.server.script["Get"] = [busy, self.ada]
        self.client.users.get(uid="ada")
        self.assertEqual(len(self.server.calls), 2)
        later = fails(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", 900_000_000)
        self.server.script["Get"] = [later, self.ada]
        with self.assertRaises(postern.PosternError) as caught:
            self.client.users.get(uid="ada", timeout=0.5)
        self.assertEqual((caught.exception.reason, caught.exception.retry_after), ("QUOTA_EXCEEDED", 0.9))
        ended = threading.Event()
        self.server.script["Get"] = [lambda *_: ended.wait(20)]
        with self.assertRaises(postern.PosternError) as caught:
            self.client.users.get(uid="ada", timeout=0.2)
        self.assertEqual(caught.exception.status, "DEADLINE_EXCEEDED")
        ended.set()

    def test_streams_end_with_the_servers_failure_and_by_cancel(self):
        def both_ways(requests, _):
            for request in requests:
                yield users_pb2.UsersImportResponse().SerializeToString()
        self.server.script["Import"] = [both_ways]
        requests = iter([users_pb2.UsersImportRequest()] * 3)
        self.assertEqual(len(list(self.client.users.import_(requests))), 3)
        self.server.script["WatchRevocations"] = [fails(grpc.StatusCode.UNAUTHENTICATED, "CALLER_UNAUTHENTICATED")]
        with self.assertRaises(postern.PosternError) as caught:
            list(self.client.tokens.watch_revocations())
        self.assertEqual(caught.exception.reason, "CALLER_UNAUTHENTICATED")

    def test_a_dead_connection_and_the_end_of_an_outage_are_noticed_before_a_verifier_is_stale(self):
        options = dict(_CHANNEL_OPTIONS)
        dead_after = options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"]
        self.assertLess(dead_after, 30_000)
        self.assertLess(options["grpc.max_reconnect_backoff_ms"], 10_000)
        self.assertLess(options["grpc.min_reconnect_backoff_ms"], 10_000)

    def test_after_an_outage_the_client_is_back_within_seconds(self):
        self.server.script["Get"] = [self.ada]
        self.client.users.get(uid="ada")
        self.server.server.stop(None).wait()
        for _ in range(3):
            self.assertRaises(postern.PosternError, self.client.users.get, uid="ada", timeout=1)
        again = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self.server])
        again.add_insecure_port(f"127.0.0.1:{self.server.port}")
        again.start()
        self.addCleanup(again.stop, None)
        for _ in range(300):
            try:
                self.client.users.get(uid="ada", timeout=1)
                break
            except postern.PosternError:
                time.sleep(0.1)
        else:
            self.fail("the client did not come back")

    def test_many_threads_share_a_client(self):
        self.server.script["Get"] = [self.ada]
        with futures.ThreadPoolExecutor(16) as pool:
            done = [pool.submit(self.client.users.get, uid=str(number)) for number in range(400)]
            for call in done:
                call.result()
        self.assertEqual(len(self.server.calls), 400)

    def test_a_verifier_follows_the_feed_and_goes_on_behind_its_cursor(self):
        signer, told = Signer("ES256"), threading.Event()
        from postern.v1 import project_pb2
        self.server.script["ServerInfo"] = [answers(project_pb2.ProjectServerInfoResponse(issuer=ISSUER, project_id=AUDIENCE))]
        self.server.script["ListKeys"] = [answers(tokens_pb2.TokensListKeysResponse(jwks_json=jwks(signer)))]

        def message(cursor, *revocations, snapshot=0):
            made = tokens_pb2.TokensWatchRevocationsResponse(
                cursor=cursor, time_micros=int(time.time() * 1e6), snapshot_reason=snapshot, revocations=revocations)
            if snapshot:
                made.scope.all = True
            return made.SerializeToString()

        def first(*_):
            yield message("one", snapshot=1)
            told.wait(20)

        def second(*_):
            yield message("two", tokens_pb2.Revocation(
                kind=tokens_pb2.REVOCATION_KIND_USER, tenant_id="acme", uid="ada", valid_after_micros=1 << 40))
            threading.Event().wait(3)

        self.server.script["WatchRevocations"] = [first, second]
        with postern.TokenVerifier(self.client, tenants="acme") as verifier:
            now = int(time.time())
            token = signer.token(iat=now, exp=now + 3600, auth_time=now)
            self.assertEqual(verifier.verify(token).uid, "ada")
            told.set()
            for _ in range(2_000):
                try:
                    verifier.verify_now(token)
                except postern.PosternError as error:
                    self.assertEqual((error.reason, error.metadata["cause"]), ("TOKEN_EXPIRED", "REVOKED"))
                    break
                time.sleep(0.005)
            else:
                self.fail("the revocation was not heard")
        watched = [call for call in self.server.calls if call[0].endswith("WatchRevocations")]
        self.assertEqual(tokens_pb2.TokensWatchRevocationsRequest.FromString(watched[1][2]).cursor, "one")

    def test_a_process_ends_whose_client_nobody_closed(self):
        self.server.script["Get"] = [lambda *_: users_pb2.UsersGetResponse().SerializeToString()]
        program = f"""
import postern
client = postern.Client("127.0.0.1:{self.server.port}", api_key="pk_1_2")
client.users.get(uid="ada")
print("called")
"""
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=Path(__file__).resolve().parents[1], timeout=60, check=True,
            stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout, "called\n")


if __name__ == "__main__":
    unittest.main()
