"""A thread that changes a tenant of its own, and knows from the answers what must be there."""
import os
import time
import uuid

from .caller import Caller, Refused, Unknown
from .model import Session, User, Value

USERS_MAX, DELETED_KEPT, SESSIONS_MAX, SPENT_KEPT = 30, 15, 4, 20


class Worker:
    def __init__(self, number, server, choices, report):
        self.server, self.choices, self.report = server, choices, report
        self.caller, self.tenant = Caller(server, report), f"torture-{number}"
        self.is_time_right = True
        self.users, self.deleted, self.spent = [], [], []
        self.revoked, self.revoked_lately, self.cursor = set(), set(), ""  # uids, all and since the cursor
        self.sign_up_refused, self.is_clock_right, self.has_reserve = Value(False), True, True
        self.index = 0
        self.steps = ((self.create, 6), (self.rename, 4), (self.disable, 2), (self.delete, 3), (self.revoke, 3),
                      (self.sign_in, 5), (self.sign_in_by_password, 1), (self.refresh, 6), (self.sign_out, 2),
                      (self.replay, 1), (self.change_password, 1), (self.toggle, 1), (self.sign_up, 1),
                      (self.check_dead, 2))

    def call(self, method, **fields):
        answer = self.caller.call(method, tenant_id=self.tenant, **fields)
        self.report.count("acknowledged writes")
        return answer

    def prepare(self):
        """Creates the tenant, with cheap password hashes."""
        try:
            self.caller.surely("Tenants/Create", tenant_id=self.tenant, tenant={"synthetic": True},
                               update_mask={"paths": ["synthetic"]})
        except Refused as refusal:
            if refusal.reason != "TENANT_ID_EXISTS":  # an earlier attempt, whose answer was lost
                raise

    def run(self, stop, pause):
        while not stop.wait(pause):
            step = self.choices.choices([step for step, _ in self.steps], [weight for _, weight in self.steps])[0]
            try:
                step()
            except Unknown:
                time.sleep(0.01)
            except Refused as refusal:
                if not refusal.is_busy:
                    self.report.find(f"{step.__name__} in {self.tenant} was refused: {refusal}")
                time.sleep(0.005)
        self.caller.close()

    def relieve(self, method, **fields):
        """A call that ends or removes something: a full store must not refuse it."""
        try:
            return self.call(method, **fields)
        except Refused as refusal:
            if refusal.reason == "STORE_FULL" and self.has_reserve:
                self.report.find(f"{method} was refused on a full store: {refusal}")
            raise

    def pick(self, fits=lambda user: user.is_there):
        fitting = [user for user in self.users if user.uid and fits(user)]
        return self.choices.choice(fitting) if fitting else None

    def pick_session(self, fits):
        found = [(user, session) for user in self.users for session in user.sessions if fits(user, session)]
        return self.choices.choice(found) if found else (None, None)

    # Users

    def create(self):
        if len(self.users) >= USERS_MAX:
            return self.delete()
        self.index += 1
        user = User("", f"U{self.index}.{uuid.uuid4().hex[:8]}@Example.com", Value(False), create_key=str(uuid.uuid4()))
        user.display_name, user.password = Value(f"name {self.index}"), Value(f"password {self.index}")
        self.users.append(user)
        self.finish_creating(user)

    def finish_creating(self, user):
        """Sends the Create, and again with the same key if its answer was lost: it may take effect only once."""
        was_possible = user.exists.can_be(True)
        user.exists.maybe(True)
        try:
            made = self.call("Users/Create", metadata={"idempotency-key": user.create_key}, email=user.email,
                             password=user.password.possible[0], display_name=user.display_name.possible[0])
        except Refused as refusal:
            if not refusal.is_busy:
                self.report.find(f"Create of {user.email} with its own idempotency-key was refused: {refusal}")
            if not was_possible:
                self.users.remove(user)
            raise
        user.uid, user.create_key = made.user.uid, ""
        user.exists.set(True)

    def update(self, user, path, value, **fields):
        known = getattr(user, path)
        before = list(known.possible)
        known.maybe(value)
        try:
            call = self.relieve if fields.get("disabled") else self.call
            call("Users/Update", uid=user.uid, update_mask={"paths": [path]}, **fields)
        except Refused:
            known.possible = before
            raise
        known.set(value)

    def rename(self):
        if user := self.pick():
            self.index += 1
            self.update(user, "display_name", f"name {self.index}", display_name=f"name {self.index}")

    def disable(self):
        if user := self.pick():
            value = not user.disabled.possible[-1]
            if value:
                user.end_sessions(surely=False)
            self.update(user, "disabled", value, disabled=value)
            if value:
                self.note_revoked(user)

    def change_password(self):
        if user := self.pick():
            self.index += 1
            user.end_sessions(surely=False)
            self.update(user, "password", f"password {self.index}", password=f"password {self.index}")
            self.note_revoked(user)

    def delete(self):
        if not (user := self.pick()):
            return
        user.exists.maybe(False)
        user.end_sessions(surely=False)
        try:
            self.relieve("Users/Delete", uid=user.uid)
        except Refused as refusal:
            if refusal.reason != "USER_NOT_FOUND":
                user.exists.set(True)
            raise
        self.note_deleted(user)

    def note_revoked(self, user):
        """Every token of the user is refused from now on, and every verifier has to be told."""
        user.end_sessions(surely=True)
        self.revoked.add(user.uid)
        self.revoked_lately.add(user.uid)

    def note_deleted(self, user):
        user.exists.set(False)
        self.note_revoked(user)
        self.users.remove(user)
        self.deleted = (self.deleted + [user])[-DELETED_KEPT:]

    def revoke(self):
        if user := self.pick():
            user.end_sessions(surely=False)
            self.relieve("Users/RevokeTokens", uid=user.uid)
            self.note_revoked(user)

    # Sessions

    def keep(self, user, tokens):
        session = Session(tokens.refresh_token, tokens.id_token, ended=self.not_ended())
        user.sessions = (user.sessions + [session])[-SESSIONS_MAX:]

    def not_ended(self):
        """Whether a new session has ended. If it began at a wrong time, it may be over when the time is right again. Nobody
        ended it: it lives when that time comes."""
        return Value(False) if self.is_time_right else Value(False, True)

    def sign_in(self):
        """Signs in with a custom token, which works once, whatever happens meanwhile."""
        if user := self.pick(lambda user: user.may_sign_in):
            token = self.call("Users/CreateCustomToken", uid=user.uid).custom_token
            try:
                answer = self.call("Accounts/SignInWithCustomToken", token=token)
            except Refused as refusal:
                if not refusal.is_busy and not self.is_clock_right:
                    return  # a token of another time
                raise
            self.spent = (self.spent + [token])[-SPENT_KEPT:]
            self.keep(user, answer.tokens)

    def sign_in_by_password(self):
        if user := self.pick(lambda user: user.may_sign_in and len(user.password.possible) == 1):
            answer = self.call("Accounts/SignInWithPassword", email=user.email, password=user.password.possible[0])
            self.keep(user, answer.tokens)

    def sign_up(self):
        """Signs up as an end user. The tenant's toggle decides whether that works."""
        self.index += 1
        email = f"s{self.index}.{uuid.uuid4().hex[:8]}@example.com"
        try:
            answer = self.call("Accounts/SignUp", metadata={"idempotency-key": email}, email=email, password="secret1")
        except Refused as refusal:
            if refusal.reason == "ADMIN_RESTRICTED_OPERATION" and self.sign_up_refused.observe(True):
                return
            raise
        if not self.sign_up_refused.observe(False):
            self.report.find(f"{email} signed up in {self.tenant}, where nobody may")
        user = User(answer.user.uid, email, Value(True), password=Value("secret1"))
        self.users.append(user)
        self.keep(user, answer.tokens)

    def toggle(self):
        value = not self.sign_up_refused.possible[-1]
        before = list(self.sign_up_refused.possible)
        self.sign_up_refused.maybe(value)
        try:
            self.call("Tenants/Update", tenant={"client": {"permissions": {"disabled_user_signup": value}}},
                      update_mask={"paths": ["client.permissions.disabled_user_signup"]})
        except Refused:
            self.sign_up_refused.possible = before
            raise
        self.sign_up_refused.set(value)

    def refresh(self):
        user, session = self.pick_session(lambda user, session: user.may_sign_in and session.ended.is_surely(False))
        if session:
            self.refresh_session(user, session)

    def refresh_session(self, user, session):
        """A refresh whose answer was lost is sent again with the same attempt, however late: it must not sign out."""
        session.attempt = session.attempt or os.urandom(16)
        try:
            tokens = self.call("Tokens/Refresh", refresh_token=session.refresh_token, attempt_id=session.attempt).tokens
        except Refused as refusal:
            if refusal.is_busy:
                raise
            if session.ended.is_surely(False) and self.is_clock_right:
                self.report.find(f"a live session of {user.uid} in {self.tenant} was refused: {refusal}")
            if self.is_clock_right and not refusal.is_expiry:
                session.ended.set(True)
            return
        if session.ended.is_surely(True):
            self.report.find(f"an ended session of {user.uid} in {self.tenant} was refreshed")
        session.ended = self.not_ended()
        session.older.append(session.refresh_token)
        session.refresh_token, session.id_token, session.attempt = tokens.refresh_token, tokens.id_token, b""

    def sign_out(self):
        user, session = self.pick_session(
            lambda user, session: user.may_sign_in and session.ended.is_surely(False) and not session.attempt)
        if session:
            session.ended.maybe(True)
            self.relieve("Sessions/SignOut", refresh_token=session.refresh_token)
            session.ended.set(True)

    def replay(self):
        """A refresh token that was rotated away twice counts as stolen: it is refused, and the session ends."""
        user, session = self.pick_session(
            lambda user, session: user.may_sign_in and session.ended.is_surely(False) and len(session.older) > 1
            and not session.attempt)
        if session:
            session.ended.maybe(True)
            self.must_refuse("a used refresh token", "Tokens/Refresh", refresh_token=session.older[-2])
            if self.is_clock_right:
                session.ended.set(True)

    def check_dead(self):
        user, session = self.pick_session(lambda user, session: session.ended.is_surely(True))
        if session:
            self.check_ended(user, session)

    def check_ended(self, user, session):
        self.must_refuse("an ended session's ID token", "Tokens/VerifyIdToken", id_token=session.id_token)
        self.must_refuse("an ended session's refresh token", "Tokens/Refresh", refresh_token=session.refresh_token)

    def must_refuse(self, what, method, **fields):
        self.report.count("dead tokens checked")
        try:
            self.caller.call(method, tenant_id=self.tenant, **fields)
        except Refused as refusal:
            if refusal.is_busy:
                raise
        else:
            self.report.find(f"{what} was accepted in {self.tenant}")
