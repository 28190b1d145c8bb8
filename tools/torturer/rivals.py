"""Threads that want the same thing of several nodes at the same moment: one of them gets it."""
import threading
import uuid

from .caller import Refused, Unknown
from .cluster import RoamingCaller


class Rivals:
    """Callers that compete in a tenant of their own."""

    COUNT = 3

    def __init__(self, cluster, choices, report):
        self.cluster, self.choices, self.report, self.tenant = cluster, choices, report, "torture-rivals"
        self.callers = [RoamingCaller(cluster, report) for _ in range(self.COUNT)]
        self.uids = {}  # email → the uid that was acknowledged

    def prepare(self):
        try:
            self.callers[0].surely("Tenants/Create", tenant_id=self.tenant, tenant={"synthetic": True},
                                   update_mask={"paths": ["synthetic"]})
        except Refused as refusal:
            if refusal.reason != "TENANT_ID_EXISTS":
                raise

    def run(self, stop, pause):
        contests = (self.sign_up, self.create_once, self.spend_token)
        while not stop.wait(pause):
            try:
                self.choices.choice(contests)()
            except (Refused, Unknown):
                pass
        for caller in self.callers:
            caller.close()

    def race(self, method, fields, metadata=()):
        """The outcome of each rival (an answer, a Refused, or an Unknown), and the answers alone."""
        outcomes = [None] * self.COUNT
        gate = threading.Barrier(self.COUNT)

        def run(index):
            gate.wait()
            try:
                outcomes[index] = self.callers[index].call(method, metadata, tenant_id=self.tenant, **fields(index))
            except (Refused, Unknown) as error:
                outcomes[index] = error

        threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(self.COUNT)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.report.count("races")
        return outcomes, [outcome for outcome in outcomes if not isinstance(outcome, Exception)]

    def expect_one(self, what, outcomes, won, lost_reason):
        """Checks that one rival won, or that none is known to have won because an outcome is unknown or the server busy."""
        if len(won) > 1:
            self.report.find(f"{what} was given to {len(won)} at once")
        unknown = any(isinstance(outcome, Unknown) for outcome in outcomes)
        for outcome in outcomes:
            if isinstance(outcome, Refused) and not outcome.is_busy and outcome.reason != lost_reason:
                self.report.find(f"{what} was refused: {outcome}")
        busy = any(isinstance(outcome, Refused) and outcome.is_busy for outcome in outcomes)
        if not won and not unknown and not busy:
            self.report.find(f"{what} was refused to everybody")

    def sign_up(self):
        email = f"{uuid.uuid4().hex[:12]}@example.com"
        outcomes, won = self.race("Users/Create", lambda index: {"email": email, "display_name": str(index)})
        self.expect_one(f"the email {email}", outcomes, won, "EMAIL_EXISTS")
        if won:
            self.uids[email] = won[0].user.uid

    def create_once(self):
        """The same change, sent three times with one idempotency key, is one change."""
        email = f"{uuid.uuid4().hex[:12]}@example.com"
        key = str(uuid.uuid4())
        outcomes, done = self.race("Users/Create", lambda _: {"email": email}, {"idempotency-key": key})
        if len({answer.user.uid for answer in done}) > 1:
            self.report.find(f"one idempotency key made several users of {email}")
        for outcome in outcomes:
            if isinstance(outcome, Refused) and not outcome.is_busy:
                self.report.find(f"a repeated Create of {email} was refused: {outcome}")
        if done:
            self.uids[email] = done[0].user.uid

    def spend_token(self):
        if not self.uids:
            return
        uid = self.choices.choice(list(self.uids.values()))
        token = self.callers[0].call("Users/CreateCustomToken", tenant_id=self.tenant, uid=uid).custom_token
        outcomes, won = self.race("Accounts/SignInWithCustomToken", lambda _: {"token": token})
        self.expect_one("a custom token", outcomes, won, "INVALID_CUSTOM_TOKEN")

    def verify(self):
        """Checks that every email belongs to the user that it was given to."""
        for email, uid in self.uids.items():
            try:
                found = self.callers[0].surely("Users/GetByEmail", tenant_id=self.tenant, email=email)
                self.report.count("reads compared")
                if found.user.uid != uid:
                    self.report.find(f"{email} was given to {uid} and belongs to {found.user.uid}")
            except Refused as refusal:
                self.report.find(f"{email} of {uid}, which was acknowledged, is lost: {refusal}")
            except Unknown as unknown:
                self.report.find(f"{email}: {unknown}")
        self.callers[0].close()
        if len(self.uids) > 200:
            self.uids = dict(list(self.uids.items())[-100:])
