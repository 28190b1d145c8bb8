"""Plants damage of every kind in a store that a real server made, and sees whether it is found: a checker that cannot
fail is worth nothing. The damage is done to the file's bytes, with right MACs where the MAC is not what is damaged."""
import shutil
import struct
import threading
from pathlib import Path

from . import checker, layout
from .caller import Report
from .lmdb_file import DataFile, Tree
from .model import Value
from .server import Server, seeded
from .verify import verify
from .worker import Worker

STEPS = 260


class Plant:
    """A copy of the store, to be damaged."""

    def __init__(self, data, target):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(data, target)
        self.path, self.seals = target / "data.mdb", layout.Seals.of_file(target / "master-key")
        self.file, self.declared = DataFile(self.path), layout.declared_tables()
        self.tables, self.bytes = self.file.tables(), bytearray(self.file.data)

    def row(self, table, number=0):
        return self.tables[table][number]

    def replace(self, table, row, payload):
        """Replaces a payload by another of the same length, sealed as the server would."""
        stored = self.seals.seal(self.declared[table].id, row.key, payload)
        assert len(stored) == len(row.value)
        self.bytes[row.offset:row.offset + len(stored)] = stored

    def payload(self, row):
        return row.value[layout.SEAL_BYTES:]

    def remove(self, table, number=0):
        """Removes a row from its page and from the table's count."""
        row = self.row(table, number)
        page = row.offset // self.file.page_size * self.file.page_size
        lower = struct.unpack_from("<H", self.bytes, page + 12)[0]
        places = [struct.unpack_from("<H", self.bytes, page + at)[0] for at in range(16, lower, 2)]
        node = row.offset - page - len(row.key) - 8
        places.remove(node)
        struct.pack_into("<H", self.bytes, page + 12, lower - 2)
        struct.pack_into(f"<{len(places)}H", self.bytes, page + 16, *places)
        described = next(row for row in self.file._rows(self.file.main_tree, "main") if row.key == table.encode())
        count = Tree.read(described.value, 0).entry_count
        struct.pack_into("<Q", self.bytes, described.offset + 32, count - 1)

    def kinds(self):
        self.path.write_bytes(self.bytes)
        return {kind for kind, _ in checker.check(self.path.parent).findings}


def flipped(payload, at):
    return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1:]


def flip_mac(plant):
    plant.bytes[plant.row("users").offset + 3] ^= 1


def flip_value(plant):
    row = plant.row("sessions")
    plant.bytes[row.offset + len(row.value) - 1] ^= 1


def swap_records(plant):
    """Each record is genuine, but under the other's key."""
    rows = plant.tables["session_by_user"]
    left, right = rows[0], rows[-1]
    plant.bytes[left.offset:left.offset + 17] = right.value
    plant.bytes[right.offset:right.offset + 17] = left.value


def break_chain(plant):
    row = plant.row("events", 3)
    plant.replace("events", row, flipped(plant.payload(row), 20))


def change_event(plant):
    row = plant.row("events", 3)
    plant.replace("events", row, flipped(plant.payload(row), len(plant.payload(row)) - 1))


def wrong_count(plant):
    row = plant.row("password_hash_kinds")
    plant.replace("password_hash_kinds", row, flipped(plant.payload(row), 1))


def wrong_total(plant):
    row = plant.row("tenant_usage", 1)
    plant.replace("tenant_usage", row, flipped(plant.payload(row), 1))


def wrong_sequence(plant):
    row = next(row for row in plant.tables["meta"] if row.key == b"sequence")
    plant.replace("meta", row, flipped(plant.payload(row), 7))


def other_owner(plant):
    row = plant.row("user_by_email")
    plant.replace("user_by_email", row, flipped(plant.payload(row), 0))


def page_twice(plant):
    """Two tables with the same root."""
    tables = [row for row in plant.file._rows(plant.file.main_tree, "main") if row.key in (b"users", b"sessions")]
    plant.bytes[tables[0].offset:tables[0].offset + 48] = tables[1].value


def lost_page(plant):
    """A page that is in no tree, and not free either."""
    struct.pack_into("<Q", plant.bytes, plant.file.meta_offset + 136, plant.file.last_page + 1)
    plant.bytes.extend(bytes(4096))


def removed(table, number=0):
    def remove(plant):
        plant.remove(table, number)
    remove.__name__ = f"without_{table}"
    return remove


def without_user(plant):
    """Removes a user who has a session."""
    owner = plant.row("session_by_user").key[:-layout.SEAL_BYTES]
    plant.remove("users", next(at for at, row in enumerate(plant.tables["users"]) if row.key == owner))


def without_sign_up(plant):
    """Removes an idempotency record that counts for its end user."""
    plant.remove("idempotency", next(at for at, row in enumerate(plant.tables["idempotency"])
                                     if layout.text_field(plant.payload(row), 21)))


def without_expiry(plant):
    """Leaves a session that no sweep will look at."""
    session = plant.row("sessions").key
    plant.remove("expiry", next(at for at, row in enumerate(plant.tables["expiry"]) if row.key[9:] == session))


DAMAGES = (
    (flip_mac, "MACs"), (flip_value, "MACs"), (swap_records, "MACs"), (break_chain, "events"), (change_event, "events"),
    (removed("events", 2), "events"), (removed("event_heads"), "events"), (wrong_count, "counts"),
    (wrong_total, "totals"), (removed("tenant_usage", 1), "totals"), (wrong_sequence, "events"),
    (other_owner, "indexes"), (removed("user_by_email"), "indexes"), (removed("session_by_user"), "indexes"),
    (removed("users"), "indexes"), (without_user, "sessions"), (removed("sessions"), "indexes"),
    (removed("revocations"), "indexes"), (removed("revocation_tenants", 2), "revocations"),
    (without_sign_up, "counts"), (removed("idempotency_counts_by_subject"), "counts"),
    (removed("oob_codes"), "indexes"), (removed("oob_code_by_subject"), "indexes"), (without_expiry, "sessions"),
    (removed("denials"), "denials"), (removed("denial_counts"), "counts"), (page_twice, "pages"), (lost_page, "pages"),
)


def work(server, report):
    """Puts something of everything into the store. Returns the worker that knows it."""
    worker = Worker(0, server, seeded(7), report)
    worker.prepare()
    for number in range(STEPS):
        worker.choices.choices([step for step, _ in worker.steps], [weight for _, weight in worker.steps])[0]()
        if number % 40 == 0 and (user := worker.pick()):
            worker.caller.surely("Users/GenerateOobLink", tenant_id=worker.tenant, email=user.email,
                                 request_type="OOB_REQUEST_TYPE_PASSWORD_RESET")
    for _ in range(2):  # one side of the tenant's toggle refuses
        worker.toggle()
        worker.sign_up()
    return worker


def changes(worker):
    """What is changed, the words of the findings that must follow, and the change."""
    return (
        ("a lost change", (": display_name is ",), lambda: worker.users[1].display_name.set("never said")),
        ("a deletion undone", ("whose deletion was acknowledged, is there",),
         lambda: worker.users[2].exists.set(False)),
        ("a live session refused", ("a live session of ",), lambda: dead_session(worker).ended.set(False)),
        ("a toggle turned back", ("sign-up is refused: not ",),
         lambda: worker.sign_up_refused.set(not worker.sign_up_refused.possible[0])),
        ("a used custom token accepted", ("a used custom token was accepted",), lambda: unused_custom_token(worker)),
        ("a revocation that no verifier is told", ("leaves out the revocations of 1 of",),
         lambda: worker.revoked.add("nobody")),
        ("an ended session accepted",
         ("an ended session's ID token was accepted", "an ended session's refresh token was accepted"),
         lambda: live_session(worker).ended.set(True)),
        ("a lost user", ("whose creation was acknowledged, is lost",),
         lambda: worker.users[0].__setattr__("uid", "nobody")))


def check_model(worker, report):
    """Changes what the worker knows, as if the server had lost or invented something. Returns which of it was not found.

    Some of the changes stay in what the worker knows, and are found again by each later check. So each change has to be
    found by its own words.
    """
    missed = []
    for what, words, spoil in changes(worker):
        count = len(report.findings)
        spoil()
        worker.choices = seeded(7)
        worker.choices.random = lambda: 0.0
        verify(worker)
        if not all(any(word in finding for finding in report.findings[count:]) for word in words):
            missed.append(what)
    return missed


def unused_custom_token(worker):
    user = worker.pick(lambda user: user.may_sign_in)
    worker.spent = [worker.caller.surely("Users/CreateCustomToken", tenant_id=worker.tenant, uid=user.uid).custom_token]


def live_session(worker):
    return next(session for user in worker.users if user.may_sign_in for session in user.sessions
                if session.ended.is_surely(False))


def dead_session(worker):
    return next(session for user in worker.users if user.may_sign_in for session in user.sessions
                if session.ended.is_surely(True))


def run(options, folder):
    server = Server(options.posternd, options.shim, folder / "self-test")
    try:
        return examine(server, folder)
    finally:
        if server.process:
            server.kill()


def examine(server, folder):
    """Returns the exit status."""
    report = Report()
    server.start()
    worker = work(server, report)
    server.terminate()
    server.wait(20)
    missed = [f"a sound store: {finding}" for finding in checker.check(server.data).findings]
    missed += [f"a sound server: {finding}" for finding in report.findings]
    for damage, kind in DAMAGES:
        plant = Plant(server.data, folder / "plant")
        damage(plant)
        found = plant.kinds()
        if kind not in found:
            missed.append(f"{damage.__name__}: {kind} was not found, but {sorted(found)}")
    server.start()
    report.findings.clear()
    verify(worker)
    missed += [f"a sound server: {finding}" for finding in report.findings]
    missed += check_model(worker, report)
    for text in missed:
        print(f"MISSED: {text}")
    print(f"{len(DAMAGES)} damages to the store and {len(changes(worker))} to what was acknowledged, {len(missed)} not found")
    return 1 if missed else 0
