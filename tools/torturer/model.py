"""What the server must hold, as far as its answers tell. A value whose change got no answer has several possible values.

After an acknowledged change there is one possible value; after a refused one, they are as before. After an unknown outcome
(the connection was lost) the value is old or new, until an answer tells which, and from then on always that one.
"""
from dataclasses import dataclass, field


class Value:
    def __init__(self, *possible):
        self.possible = list(possible)

    def set(self, value):
        self.possible = [value]

    def maybe(self, value):
        if value not in self.possible:
            self.possible.append(value)

    def observe(self, value):
        """Whether the value is possible. From now on it is the only possible one."""
        fits = value in self.possible
        self.possible = [value]
        return fits

    def is_surely(self, value):
        return self.possible == [value]

    def can_be(self, value):
        return value in self.possible

    def __repr__(self):
        return " or ".join(map(repr, self.possible))


@dataclass
class Session:
    refresh_token: str
    id_token: str
    ended: Value = field(default_factory=lambda: Value(False))
    older: list = field(default_factory=list)  # refresh tokens before, the newest last
    attempt: bytes = b""  # of a refresh whose answer did not come


@dataclass
class User:
    uid: str  # empty while no answer told it
    email: str
    exists: Value
    create_key: str = ""  # idempotency-key of a Create whose answer did not come
    display_name: Value = field(default_factory=lambda: Value(""))
    disabled: Value = field(default_factory=lambda: Value(False))
    password: Value = field(default_factory=lambda: Value(""))
    sessions: list = field(default_factory=list)

    @property
    def is_there(self):
        return self.exists.is_surely(True)

    @property
    def may_sign_in(self):
        return self.is_there and self.disabled.is_surely(False)

    def end_sessions(self, surely, kept=None):
        for session in self.sessions:
            if session is kept:
                continue
            if surely:
                session.ended.set(True)
            else:
                session.ended.maybe(True)
