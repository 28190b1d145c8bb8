"""The project's own example client (tools/examples/python/postern_client.py) and the stored messages."""
import sys
from pathlib import Path

from .layout import ROOT

sys.path.insert(0, str(ROOT / "tools/examples/python"))
sys.dont_write_bytecode = True
import postern_client as client  # noqa: E402

client.print = lambda *_, **__: None  # the tests cause each GOAWAY themselves
CallFailed, ClientError, Connection = client.CallFailed, client.ClientError, client.Connection


class Messages:
    """Decodes the records of tables, by the type that the table declares (layout.py)."""

    def __init__(self):
        self.classes = {}

    def decode(self, name, payload):
        if name == "[UInt8]":
            return bytes(payload)
        if name not in self.classes:
            self.classes[name] = self._find(name)
        return self.classes[name].FromString(payload)

    @staticmethod
    def _find(name):
        for package in ("postern.store.v1", "postern.v1"):
            try:
                return client.message(f"{package}.{name}")
            except KeyError:
                continue
        raise KeyError(f"no message {name}")


messages = Messages()


def connect(address, key, timeout=5.0):
    return Connection(address, key, timeout)
