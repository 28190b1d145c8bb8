"""Calls every method of a Postern server with values nobody should send, mixed with values that are right.

usage: hostile_calls.py ADDRESS API-KEY-FILE SEED SECONDS

A refusal is fine. Not fine, status 1 and the request that did it: a server that is gone, an answer INTERNAL, UNKNOWN or
DATA_LOSS, no answer in time. What follows from SEED alone is the same each time; tokens and ids are the server's.
"""
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/examples/python"))
import postern_client as client  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from google.protobuf.descriptor import FieldDescriptor as F  # noqa: E402

INTEGERS = [0, 1, -1, 2, 100, 1000, 1001, 2**31 - 1, -2**31, 2**53, 2**63 - 1, -2**63]
TEXTS = ["", "x", "-", "*", "x" * 300, "y" * 5000, "\u202eevil", "\ufeff", "A\u030a", "a@b", "@", "%s%n", "../../etc",
         "http://127.0.0.1:1/", "https://[::1]/", "javascript:1", "9" * 40, "2026-01-01", "{}", "null", "é" * 128]
BYTES = [b"", b"\0", b"\xff" * 16, b"{}", b"[" * 300, b'{"a":' * 50, b'{"sub":1}', b"x" * 2000]
# Would take the ground from under the others.
LEFT_OUT = {"postern.v1.Tenants/Delete", "postern.v1.Project/RevokeApiKey", "postern.v1.Users/Import",
            "postern.v1.Tenants/Update"}


class Caller:
    """One connection, and what is known of the server behind it."""

    def __init__(self, address, key, seed):
        self.address, self.key, self.random = address, key, random.Random(seed)
        self.connection, self.known = None, {}

    def connect(self):
        self.connection = client.Connection(self.address, self.key, 5.0)

    def prepare(self):
        """What is right at this server: a tenant where everything is on, and a user who is signed in."""
        self.connect()
        call = self.connection.call
        tenant = f"hostile-{self.random.randrange(10**9)}"
        call("postern.v1.Tenants/Create", tenant_id=tenant, tenant={
            "enable_anonymous_user": True, "enable_email_link_signin": True}, update_mask={
            "paths": ["enable_anonymous_user", "enable_email_link_signin"]})
        signed_up = call("postern.v1.Accounts/SignUp", tenant_id=tenant, email="ada@example.com", password="correct horse")
        sessions = call("postern.v1.Sessions/List", tenant_id=tenant, id_token=signed_up.tokens.id_token)
        self.known = {
            "tenant_id": [tenant], "uid": [signed_up.user.uid], "email": ["ada@example.com"],
            "identifier": ["ada@example.com"], "password": ["correct horse"], "new_password": ["another horse"],
            "id_token": [signed_up.tokens.id_token], "refresh_token": [signed_up.tokens.refresh_token],
            "session_id": [sessions.sessions[0].session_id], "provider_id": ["oidc.x", "google.com", "password"],
            "role": [2, 3, 4, 5], "display_name": ["Ada"], "photo_url": ["https://example.com/a.png"],
            "paths": ["display_name", "email", "password", "disabled", "custom_claims_json", "delivery", "smtp", "trust"]}

    def value(self, field, depth):
        pick = self.random
        is_plain = field.type in (F.TYPE_STRING, F.TYPE_ENUM)
        if is_plain and field.name in self.known and pick.random() < 0.7:
            return pick.choice(self.known[field.name])
        if field.cpp_type in (F.CPPTYPE_INT32, F.CPPTYPE_UINT32, F.CPPTYPE_ENUM):
            value = pick.choice([number for number in INTEGERS if -2**31 <= number < 2**31])
            return abs(value) & 0x7FFFFFFF if field.cpp_type != F.CPPTYPE_INT32 else value
        if field.cpp_type in (F.CPPTYPE_INT64, F.CPPTYPE_UINT64):
            value = pick.choice(INTEGERS)
            return value if field.cpp_type == F.CPPTYPE_INT64 else value & (2**64 - 1)
        if field.cpp_type == F.CPPTYPE_BOOL:
            return pick.random() < 0.5
        if field.cpp_type == F.CPPTYPE_STRING:
            return pick.choice(BYTES) if field.type == F.TYPE_BYTES else pick.choice(TEXTS)
        if field.cpp_type == F.CPPTYPE_MESSAGE and depth < 3:
            return self.message(field.message_type, depth + 1)
        return None

    def message(self, descriptor, depth=0):
        made = client.message_class(descriptor)()
        for field in descriptor.fields:
            if self.random.random() > (0.75 if depth else 0.85):
                continue
            repeated = field.label == F.LABEL_REPEATED
            for _ in range(self.random.choice([1, 1, 2, 3]) if repeated else 1):
                value = self.value(field, depth)
                if value is None:
                    continue
                if field.cpp_type == F.CPPTYPE_MESSAGE:
                    (getattr(made, field.name).add() if repeated else getattr(made, field.name)).CopyFrom(value)
                elif repeated:
                    getattr(made, field.name).append(value)
                else:
                    setattr(made, field.name, value)
        return made

    def attempt(self, method):
        """None when it went as it may, else what went wrong."""
        request = self.message(method.input_type)
        name = f"{method.containing_service.full_name}/{method.name}"
        fields = {field.name: value for field, value in request.ListFields()}
        try:
            if method.server_streaming:
                stream = self.connection.watch(name, **fields)
                try:
                    stream.read(0.05)
                except TimeoutError:
                    pass
                stream.cancel(client.CANCELLED)
            else:
                self.connection.call(name, timeout=20.0, **fields)
        except client.CallFailed as failure:
            if failure.code not in ("INTERNAL", "UNKNOWN", "DATA_LOSS"):
                return None
            return f"{failure}\n{name} {text_format.MessageToString(request, as_one_line=True)}"
        except (client.ClientError, OSError) as error:
            try:
                self.connect()
                self.connection.call("grpc.health.v1.Health/Check")
            except (client.ClientError, OSError) as gone:
                return f"the server is gone: {gone}, after {error}\n{name} " + text_format.MessageToString(
                    request, as_one_line=True)
            if "was not answered" in str(error):
                return f"{error}\n{name} {text_format.MessageToString(request, as_one_line=True)}"
        return None


def main():
    address, key_file, seed, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    caller = Caller(address, pathlib.Path(key_file).read_text().strip(), seed)
    caller.prepare()
    services = ["Accounts", "Tokens", "Sessions", "Users", "Tenants", "Providers", "EmailConfigs", "SmsConfigs", "Outbox", "Project"]
    methods = [method for service in services
               for method in client.POOL.FindServiceByName(f"postern.v1.{service}").methods
               if f"postern.v1.{service}/{method.name}" not in LEFT_OUT and not method.client_streaming]
    calls, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for method in methods:
            if wrong := caller.attempt(method):
                sys.exit(f"seed {seed}, call {calls}: {wrong}")
            calls += 1
        if calls // len(methods) % 5 == 4:
            caller.prepare()
    print(f"{calls} calls of {len(methods)} methods, seed {seed}")


main()
