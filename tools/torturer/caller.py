"""Calls with three outcomes: answered, refused without effect, or unknown."""
import itertools
import threading
import time

from .client import CallFailed, ClientError, connect

# The call may have taken effect: it was cut off, or the store did not say.
UNKNOWN_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "ABORTED")
# These codes mean a bug of our own: no fault may cause them.
WRONG_CODES = ("INTERNAL", "UNKNOWN", "DATA_LOSS")
# The call was refused for too much load or too little room, and had no effect.
BUSY_REASONS = ("STORE_FULL", "SERVER_OVERLOADED", "QUOTA_EXCEEDED", "TOO_MANY_ATTEMPTS_TRY_LATER", "TOO_MANY_STREAMS")


class Unknown(Exception):
    """No answer came."""


class Refused(Exception):
    def __init__(self, failure):
        super().__init__(str(failure))
        self.code, self.reason, self.failure = failure.code, failure.reason, failure

    @property
    def is_busy(self):
        return self.reason in BUSY_REASONS

    @property
    def is_expiry(self):
        """Expiry depends on the server's time alone, so nothing has ended: at another time the same token is good."""
        return self.failure.metadata.get("cause") == "EXPIRED"


class Report:
    """The findings and the counts of all threads."""

    def __init__(self):
        self.lock, self.findings, self.counts, self.answers = threading.Lock(), [], {}, {}

    def find(self, text):
        with self.lock:
            if len(self.findings) < 100:
                self.findings.append(text)

    def count(self, name, number=1):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + number

    def answer(self, name):
        with self.lock:
            self.answers[name] = self.answers.get(name, 0) + 1


class Caller:
    """One connection to the server, made again after each loss. For one thread."""

    def __init__(self, server, report, patience=8.0):
        self.server, self.report, self.patience, self.connection = server, report, patience, None

    def close(self):
        if self.connection:
            self.connection.socket.close()
        self.connection = None

    def call(self, method, metadata=(), **fields):
        """The answer. Raises Unknown or Refused."""
        try:
            if self.connection is None or self.connection.going_away:
                self.close()
                self.connection = connect(self.server.address, self.server.key)
            return self.connection.call(f"postern.v1.{method}", timeout=self.patience, metadata=metadata, **fields)
        except CallFailed as failure:
            self.report.answer(f"{failure.code} {failure.reason}")
            if failure.code in WRONG_CODES:
                self.report.find(f"{method} was answered {failure}")
            if failure.code in UNKNOWN_CODES + WRONG_CODES:
                raise Unknown(str(failure)) from None
            raise Refused(failure) from None
        except (ClientError, OSError) as error:
            self.close()
            self.report.answer("no answer")
            raise Unknown(str(error)) from None

    def surely(self, method, seconds=20.0, **fields):
        """As `call`, for a server that has to work: retries while it is busy. If no answer comes in time, that is a
        finding."""
        end = time.monotonic() + seconds
        for attempt in itertools.count():
            try:
                return self.call(method, **fields)
            except Refused as refusal:
                if not refusal.is_busy or time.monotonic() > end:
                    raise
                error = refusal
            except Unknown as unknown:
                error = unknown
                if time.monotonic() > end:
                    self.report.find(f"a server that has to work does not answer {method}: {error}")
                    raise
            time.sleep(min(1.0, 0.05 * 2**attempt))
