"""Checks every index against its records, both ways, and the counts against what they count."""
import re
import struct
from collections import Counter

from .client import messages
from .layout import sha256

SESSION_BYTES, HASH_BYTES = 16, 32
NOT_FEDERATED = ("password", "phone")
REVOCATIONS_KEPT = 10 * 86_400 * 10**6  # the log keeps two weeks; less after a step of the clock


def split(key):
    """tenant ‖ 0x00 ‖ rest"""
    tenant, _, rest = key.partition(b"\0")
    return tenant, rest


def compare(store, kind, wanted, present, what):
    """Reports the differences of two sets of rows that must be the same."""
    for row in sorted(wanted - present):
        store.find(kind, f"{what}: {row!r} is missing")
    for row in sorted(present - wanted):
        store.find(kind, f"{what}: {row!r} belongs to nothing")


def check_users(store):
    """Checks the users by email, phone number and identity, and how many have which kind of password hash."""
    emails, phones, identities, kinds = set(), set(), set(), Counter()
    for key, stored in store.rows["users"].items():
        tenant, uid = split(key)
        user = messages.decode("User", stored.user)
        if (user.tenant_id.encode(), user.uid.encode()) != (tenant, uid):
            store.find("users", f"{key!r} holds user {user.tenant_id!r} {user.uid!r}")
        if user.email:
            emails.add((tenant, canonical(user.email), uid))
        if user.phone_number:
            phones.add((tenant, user.phone_number.encode(), uid))
        for entry in user.providers:
            if entry.provider_id not in NOT_FEDERATED:
                issuer = b"\0" + entry.issuer.encode() if entry.issuer else b""
                name = sha256(entry.provider_id.encode(), b"\0", entry.raw_id.encode(), issuer)
                identities.add((tenant, name, uid))
        if stored.password_hash:
            kinds[tenant + b"\0" + cost(stored.password_hash).encode()] += 1
    for table, wanted in (("user_by_email", emails), ("user_by_phone", phones), ("user_by_provider", identities)):
        compare(store, "indexes", wanted, {(*split(key), uid) for key, uid in store.rows[table].items()}, table)
    stored = {key: count.count for key, count in store.rows["password_hash_kinds"].items()}
    compare(store, "counts", set(kinds.items()), set(stored.items()), "password_hash_kinds")


def canonical(email):
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), email).encode()


def cost(password_hash):
    """The hash without salt and tag, as PasswordCredential.cost writes it."""
    parts = password_hash.split("$")
    if parts[1] == "argon2id":
        return "$".join(parts[:4])
    if parts[1] == "firebase-scrypt":
        return "$".join(parts[:3])
    return f"${parts[1]}${parts[2]}"


def check_sessions(store):
    """Checks the sessions by user, that each session has its user, and that a sweep will look at it."""
    sessions, tombs = set(), {key[:-1] for key, tenant in store.rows["tenants"].items() if tenant.deleted}
    scheduled = expiring(store, "sessions")
    for key, session in store.rows["sessions"].items():
        tenant, uid = session.tenant_id.encode(), session.uid.encode()
        sessions.add((tenant, uid, key))
        if tenant in tombs:
            continue
        if tenant + b"\0" + uid not in store.rows["users"]:
            store.find("sessions", f"{key.hex()} is of user {uid!r} of tenant {tenant!r}, who is not there")
        if key not in scheduled:
            store.find("sessions", f"{key.hex()} never expires")
    present = set()
    for key in store.rows["session_by_user"]:
        tenant, rest = split(key)
        present.add((tenant, rest[:-SESSION_BYTES - 1], rest[-SESSION_BYTES:]))
    compare(store, "indexes", sessions, present, "session_by_user")


def expiring(store, table):
    """The keys of a table's rows that a sweep will look at."""
    number = store.declared[table].id
    return {key[9:] for key in store.rows["expiry"] if key[8] == number}


def check_codes(store):
    """Checks the codes by subject, and that a sweep will look at each."""
    wanted, scheduled = set(), expiring(store, "oob_codes")
    for key, code in store.rows["oob_codes"].items():
        tenant, code_hash = split(key)
        is_email = code.request_type == email_sign_in() or not code.uid
        subject = sha256(b"email\0" + canonical(code.email)) if is_email else sha256(b"uid\0" + code.uid.encode())
        wanted.add((tenant, subject + bytes([code.request_type]) + code_hash))
        if key not in scheduled:
            store.find("codes", f"{code_hash.hex()} never expires")
    compare(store, "indexes", wanted, {split(key) for key in store.rows["oob_code_by_subject"]}, "oob_code_by_subject")


def email_sign_in():
    kind = type(messages.decode("StoredOobCode", b"")).DESCRIPTOR.fields_by_name["request_type"].enum_type
    return next(value.number for value in kind.values if value.name.endswith("EMAIL_SIGNIN"))


def check_idempotency(store):
    counts, scheduled = Counter(), expiring(store, "idempotency")
    for key, record in store.rows["idempotency"].items():
        if record.subject:
            counts[record.tenant_id.encode() + b"\0" + record.subject] += 1
        if key not in scheduled:
            store.find("idempotency", f"{key.hex()} never expires")
    stored = {(key, count.count) for key, count in store.rows["idempotency_counts_by_subject"].items()}
    compare(store, "counts", set(counts.items()), stored, "idempotency_counts_by_subject")


def check_outbox(store):
    wanted, scheduled = set(), expiring(store, "outbox")
    for key, stored in store.rows["outbox"].items():
        tenant, identifier = split(key)
        if stored.message.next_attempt_at_micros > 0:
            # The rows of SMS have a high bit in their time.
            mark = 1 << 62 if stored.message.verification_purpose else 0
            wanted.add((tenant, struct.pack(">q", stored.message.next_attempt_at_micros | mark) + identifier))
        if key not in scheduled:
            store.find("outbox", f"{identifier!r} never expires")
    compare(store, "indexes", wanted, {split(key) for key in store.rows["outbox_due"]}, "outbox_due")


def check_sms(store):
    """Checks that a sweep will look at the codes of phone numbers, and at the budgets of their messages."""
    for table in ("verification_codes", "sms_budgets"):
        scheduled = expiring(store, table)
        for key in store.rows[table]:
            if key not in scheduled:
                store.find("codes", f"{table}: {key.hex()} never expires")


def check_second_factors(store):
    """Checks the secrets of authenticator apps and the recovery codes against the users that tell of them, and that a sweep
    will look at the pending sign-ins."""
    tombs = {key[:-1] for key, tenant in store.rows["tenants"].items() if tenant.deleted}
    told, stored, totp = set(), set(), 2
    for key, row in store.rows["users"].items():
        user = messages.decode("User", row.user)
        told |= {(key, factor.factor_id) for factor in user.second_factors if factor.kind == totp}
        told.add((key, user.recovery_code_count))
    for key in store.rows["users"]:
        row = store.rows["second_factors"].get(key)
        stored |= {(key, app.factor_id) for app in row.totps} if row else set()
        stored.add((key, len(row.recovery_codes) if row else 0))
    told = {entry for entry in told if split(entry[0])[0] not in tombs}
    stored = {entry for entry in stored if split(entry[0])[0] not in tombs}
    for key, entry in sorted(told ^ stored, key=repr):
        store.find("records", f"second_factors: {key!r} and its user differ about {entry!r}")
    for key in store.rows["second_factors"].keys() - store.rows["users"].keys():
        if split(key)[0] not in tombs:
            store.find("records", f"second_factors: {key!r} is nobody's")
    scheduled = expiring(store, "pending_sign_ins")
    for key in store.rows["pending_sign_ins"]:
        if key not in scheduled:
            store.find("codes", f"pending_sign_ins: {key.hex()} never expires")


def check_revocations(store):
    """Checks that the log of revocations has no gap, and holds every revocation that accounts and sessions tell of."""
    wanted, users, sessions = set(), {}, set()
    for key, revocation in store.rows["revocations"].items():
        wanted.add((key[-8:], key[:-9]))
        sessions.add(revocation.session_id)
        if not revocation.session_id:
            owner = revocation.tenant_id, revocation.uid
            users[owner] = max(users.get(owner, 0), revocation.valid_after_micros)
    compare(store, "indexes", wanted, set(store.rows["revocation_tenants"].items()), "revocation_tenants")
    numbers = sorted(struct.unpack(">Q", key)[0] for key in store.rows["revocation_tenants"])
    for left, right in zip(numbers, numbers[1:]):
        if right != left + 1:
            store.find("revocations", f"{right} follows {left}")
    newest = max((row.time_micros for row in store.rows["revocations"].values()), default=0)
    for stored in store.rows["users"].values():
        user = messages.decode("User", stored.user)
        valid_after = user.tokens_valid_after_micros
        # Without a cause the time is that of the account's creation.
        is_revoked = stored.tokens_revoked_for and newest - valid_after < REVOCATIONS_KEPT
        if is_revoked and users.get((user.tenant_id, user.uid), 0) < valid_after:
            store.find("revocations", f"user {user.uid!r} of tenant {user.tenant_id!r}: tokens are valid after "
                       f"{valid_after}, and no verifier is told")
    for key, session in store.rows["sessions"].items():
        is_told = key.hex() in sessions or (session.tenant_id, session.uid) in users
        if session.end and not is_told and newest - session.ended_at_micros < REVOCATIONS_KEPT:
            store.find("revocations", f"session {key.hex()} has ended, and no verifier is told")


def check_denials(store):
    """Checks that each tenant's refusals are there, from the first that its head names to the last, and their counts."""
    wanted = set()
    for key, head in store.rows["denial_heads"].items():
        wanted |= {key + struct.pack(">q", number) for number in range(head.first_sequence, head.last_sequence + 1)}
    compare(store, "denials", wanted, set(store.rows["denials"]), "denials")
    counts = Counter()
    for key, count in store.rows["denial_counts"].items():
        counts[split(key)[0]] += count.count
    for key, head in store.rows["denial_heads"].items():
        if counts[key[:-1]] < head.last_sequence:
            store.find("counts", f"denial_counts: tenant {key[:-1]!r} has {counts[key[:-1]]} of {head.last_sequence}")


def check_names(store):
    """Checks the records that hold their own key."""
    for table, name in (("tenants", lambda row: row.tenant.tenant_id.encode() + b"\0"),
                        ("api_keys", lambda row: row.api_key.api_key_id.encode()),
                        ("signing_keys", lambda row: row.key_id.encode())):
        for key, row in store.rows[table].items():
            if name(row) != key:
                store.find("records", f"{table}: {key!r} holds {name(row)!r}")


CHECKS = (check_users, check_sessions, check_codes, check_idempotency, check_outbox, check_sms, check_second_factors,
          check_revocations, check_denials, check_names)
