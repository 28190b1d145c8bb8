"""Compares a server that has to work with what a worker knows: everything acknowledged is there, and nothing by half."""
from .caller import Refused, Unknown
from .client import ClientError, connect


def verify(worker):
    worker.caller.close()
    try:
        for user in list(worker.users):
            check_user(worker, user)
        for user in worker.deleted:
            expect_gone(worker, user)
            for session in user.sessions:
                worker.check_ended(user, session)
        for token in worker.choices.sample(worker.spent, min(3, len(worker.spent))):
            worker.must_refuse("a used custom token", "Accounts/SignInWithCustomToken", token=token)
        check_toggle(worker)
        check_feed(worker, worker.cursor, worker.revoked_lately)
        check_feed(worker, "", worker.revoked)
        worker.revoked_lately.clear()
    except (Refused, Unknown, ClientError, OSError) as error:
        worker.report.find(f"{worker.tenant}: {type(error).__name__}: {error}")
    worker.caller.close()


def ask(worker, method, **fields):
    worker.report.count("reads compared")
    return worker.caller.surely(method, tenant_id=worker.tenant, **fields)


def check_user(worker, user):
    if user.create_key:
        retry(lambda: worker.finish_creating(user))
    try:
        found = ask(worker, "Users/Get", uid=user.uid).user
    except Refused as refusal:
        if refusal.reason != "USER_NOT_FOUND":
            raise
        if not user.exists.can_be(False):
            worker.report.find(f"user {user.uid} of {worker.tenant}, whose creation was acknowledged, is lost")
        worker.note_deleted(user)
        return
    if not user.exists.observe(True):
        worker.report.find(f"user {user.uid} of {worker.tenant}, whose deletion was acknowledged, is there")
    for name, value in (("display_name", found.display_name), ("disabled", found.disabled)):
        known, text = getattr(user, name), repr(getattr(user, name))
        if not known.observe(value):
            worker.report.find(f"user {user.uid} of {worker.tenant}: {name} is {value!r} instead of {text}")
    if ask(worker, "Users/GetByEmail", email=user.email).user != found:
        worker.report.find(f"user {user.uid} of {worker.tenant} is another one by email")
    check_password(worker, user)
    for session in user.sessions:
        check_session(worker, user, session)


def check_password(worker, user):
    """Tries a known password only now and then, because each try costs a hash."""
    if not user.may_sign_in or (len(user.password.possible) == 1 and worker.choices.random() > 0.05):
        return
    for password in user.password.possible:
        try:
            ask(worker, "Accounts/SignInWithPassword", email=user.email, password=password)
        except Refused as refusal:
            if refusal.reason == "TOO_MANY_ATTEMPTS_TRY_LATER":
                return
            continue
        user.password.set(password)
        return
    worker.report.find(f"user {user.uid} of {worker.tenant}: none of the passwords works that can be theirs")


def check_session(worker, user, session):
    if session.ended.is_surely(True):
        worker.check_ended(user, session)
    elif user.may_sign_in and (session.attempt or worker.choices.random() < 0.4):
        retry(lambda: worker.refresh_session(user, session))
        worker.report.count("live tokens checked")
        if session.ended.is_surely(False):
            verified = ask(worker, "Tokens/VerifyIdToken", id_token=session.id_token)
            if verified.uid != user.uid:
                worker.report.find(f"an ID token of {user.uid} is {verified.uid}'s")


def retry(body):
    """Tries up to three times, as long as answers are lost."""
    for _ in range(3):
        try:
            return body()
        except Unknown as error:
            last = error
    raise last


def expect_gone(worker, user):
    for method, fields in (("Users/Get", {"uid": user.uid}), ("Users/GetByEmail", {"email": user.email})):
        try:
            ask(worker, method, **fields)
        except Refused as refusal:
            if refusal.reason in ("USER_NOT_FOUND", "EMAIL_NOT_FOUND"):
                continue
            raise
        worker.report.find(f"user {user.uid} of {worker.tenant}, deleted, is found by {method}")


def check_toggle(worker):
    tenant = ask(worker, "Tenants/Get").tenant
    text = repr(worker.sign_up_refused)
    if not worker.sign_up_refused.observe(tenant.client.permissions.disabled_user_signup):
        worker.report.find(f"{worker.tenant}: sign-up is refused: not {text}")


def check_feed(worker, cursor, expected):
    """Checks what verifiers are told: a snapshot, or everything since a cursor, has every acknowledged revocation."""
    stream = connect(worker.server.address, worker.server.key).watch(
        "postern.v1.Tokens/WatchRevocations", tenant_id=worker.tenant, cursor=cursor, heartbeat_seconds=10)
    told, is_snapshot = set(), False
    while (batch := stream.read(10.0)) is not None:
        told |= {revocation.uid for revocation in batch.revocations}
        is_snapshot, worker.cursor = is_snapshot or bool(batch.snapshot_reason), batch.cursor
        if not batch.continues:
            break
    stream.connection.socket.close()
    worker.report.count("revocations checked", len(expected))
    if missing := expected - told:
        what = "a snapshot" if is_snapshot else "the feed"
        worker.report.find(f"{worker.tenant}: {what} leaves out the revocations of {len(missing)} of "
                           f"{len(expected)} users, {sorted(missing)[0]} for example")
