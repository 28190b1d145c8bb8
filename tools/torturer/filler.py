"""Fills a store to the brim with large users, and deletes them again: the deletions must not be refused for lack of room."""
import threading
import time
import uuid

from .caller import BUSY_REASONS, Caller, Refused
from .client import CallFailed, ClientError, client

TENANT, BATCH, USERS_MAX = "torture-filler", 50, 6000
LAST_DELETE_SECONDS = 20.0
LARGE = {"photo_url": "https://example.com/" + "x" * 2000, "display_name": "y" * 250}


class Filler:
    """Users of a tenant of its own; they stay from one fault to the next."""

    def __init__(self, server, report):
        self.server, self.report, self.uids, self.connection = server, report, [], None

    def prepare(self):
        caller = Caller(self.server, self.report)
        try:
            caller.surely("Tenants/Create", tenant_id=TENANT)
        except Refused as refusal:
            if refusal.reason != "TENANT_ID_EXISTS":
                raise
        caller.close()

    def begin(self, expects_relief):
        """Returns when the store is full, or after a few seconds."""
        self.stop, self.filled, self.expects_relief = threading.Event(), threading.Event(), expects_relief
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.filled.wait(10.0)

    def end(self):
        self.stop.set()
        self.thread.join()

    def _run(self):
        """Creates until it is refused, then deletes a part, again and again; in the end it deletes what it can."""
        while not self.stop.is_set():
            self._create()
            if self.is_full or len(self.uids) >= USERS_MAX:
                self.filled.set()
                self.report.count("times the store was full")
                self._delete(len(self.uids) // 4)
        end = time.monotonic() + LAST_DELETE_SECONDS
        while self.uids and self.server.is_running and time.monotonic() < end:
            self._delete(BATCH)
        if self.connection:
            self.connection.socket.close()
        self.connection = None

    def _create(self):
        self.is_full = False
        for answer, _ in self._calls("Users/Create", [
                {"uid": uuid.uuid4().hex, **LARGE} for _ in range(BATCH)]):
            if isinstance(answer, CallFailed):
                self.is_full |= answer.reason == "STORE_FULL"
            else:
                self.uids.append(answer.user.uid)

    def _delete(self, count):
        for start in range(0, count, BATCH):
            chosen = self.uids[:min(BATCH, count - start)]
            for answer, fields in self._calls("Users/Delete", [{"uid": uid} for uid in chosen]):
                if not isinstance(answer, CallFailed) or answer.reason == "USER_NOT_FOUND":
                    self.uids.remove(fields["uid"])
                    self.report.count("large users deleted")
                elif self.expects_relief and answer.reason == "STORE_FULL":
                    self.report.find(f"a large user cannot be deleted from a full store: {answer}")
                    return

    def _calls(self, method, requests):
        """Makes all calls at once. Returns each answer with its request, without the requests that got no answer."""
        answered = []
        try:
            if self.connection is None or self.connection.going_away:
                self.connection = client.Connection(self.server.address, self.server.key, 5.0)
            streams = [client.Stream(self.connection, client.UNARY, f"postern.v1.{method}", 8.0, {},
                                     {"tenant_id": TENANT, **fields}) for fields in requests]
            for stream, fields in zip(streams, requests):
                try:
                    answered.append((stream.read(8.0), fields))
                except CallFailed as failure:
                    self.report.answer(f"{failure.code} {failure.reason}")
                    if failure.reason in (*BUSY_REASONS, "USER_NOT_FOUND"):
                        answered.append((failure, fields))
        except (ClientError, OSError):
            self.connection = None
            self.stop.wait(0.02)
        return answered
