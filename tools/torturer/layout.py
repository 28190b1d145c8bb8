"""The tables of a store, read from the sources that declare them, and the MACs of records, by the master key file."""
import ctypes
import ctypes.util
import hashlib
import hmac
import re
import struct
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECLARED_IN = ("Store/Schema.swift", "Signing/SigningTables.swift", "Identity/Tables/Tables.swift")
TABLE = re.compile(
    r'= Table<\s*([\w\[\]]+),\s*([\w\[\]]+)>\(\s*id: (\d+), name: "(\w+)",\s*owner: \.(\w+)(?:\(\w+\.FieldNumber\.(\w+)\))?')
SEAL_BYTES, SEAL_VERSION, ROW_OVERHEAD = 17, 1, 16
MARK_BYTES, MARK_VERSION, MARK_TABLE = 37, 2, 7


@dataclass(frozen=True)
class Table:
    """A table as the sources declare it."""
    id: int
    name: str
    record: str  # name of the Swift type; "[UInt8]" for plain bytes
    owner: str  # "nobody", "keyPrefix", "countedKeyPrefix" or "field"
    owner_field: int

    def tenant(self, key, payload):
        """The tenant that the row belongs to, or None."""
        if self.owner in ("keyPrefix", "countedKeyPrefix"):
            return key.split(b"\0", 1)[0] if b"\0" in key else None
        return text_field(payload, self.owner_field) if self.owner == "field" else None


def declared_tables():
    tables = {}
    for name in DECLARED_IN:
        for _, record, number, table, owner, field in TABLE.findall((ROOT / "Sources" / name).read_text()):
            tables[table] = Table(int(number), table, record, owner, field_number(record, field) if field else 0)
    if len(tables) < 30:
        raise SystemExit(f"torture: the tables of {', '.join(DECLARED_IN)} are not written as they were: layout.py must follow")
    return tables


def field_number(record, name):
    """The number of a field that is spelled as in Swift: `tenantID`."""
    from .client import messages  # here, because client.py imports this module
    fields = type(messages.decode(record, b"")).DESCRIPTOR.fields
    return next(field.number for field in fields if field.name.replace("_", "") == name.lower())


def text_field(record, number):
    """The first field of bytes with this number in an encoded record; empty if there is none."""
    at, found = 0, b""
    while at < len(record):
        tag, at = varint(record, at)
        if tag & 7 == 2:
            count, at = varint(record, at)
            if tag >> 3 == number:
                return record[at:at + count]
            at += count
        else:
            at = varint(record, at)[1] if tag & 7 == 0 else at + (8 if tag & 7 == 1 else 4)
    return found


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


class Seals:
    """Record MACs as docs/decisions/0002 describes them: SipHash-2-4-128 of the value, under SipHash of the key."""

    def __init__(self, master_key):
        self.master_key, self.keys = master_key, {}
        name = ctypes.util.find_library("sodium") or "libsodium.so.23"
        self.library = ctypes.CDLL(name)
        self.output = ctypes.create_string_buffer(16)

    @classmethod
    def of_file(cls, path):
        return cls(bytes.fromhex(Path(path).read_text().strip()))

    def tag(self, table, key, value):
        if table not in self.keys:
            self.keys[table] = derive(self.master_key, f"postern/1/record/{table}", 16)
        return self._hash(value, self._hash(key, self.keys[table]))

    def _hash(self, message, key):
        self.library.crypto_shorthash_siphashx24(
            self.output, message, ctypes.c_ulonglong(len(message)), key)
        return self.output.raw

    def seal(self, table, key, payload):
        return bytes([SEAL_VERSION]) + self.tag(table, key, payload) + payload

    def open(self, table, key, stored):
        """The payload, or None when the value is not what was put there under this key."""
        if len(stored) < SEAL_BYTES or stored[0] != SEAL_VERSION:
            return None
        payload = stored[SEAL_BYTES:]
        return payload if self.tag(table, key, payload) == stored[1:SEAL_BYTES] else None

    def join(self, table, key, stored, pieces):
        """The value in whose place the mark `stored` is, and the keys of its pieces (docs/decisions/0155). None when
        the mark or the pieces are not what was put there under this key."""
        if len(stored) != MARK_BYTES or stored[0] != MARK_VERSION:
            return None
        row, body = bytes([table]) + key, stored[SEAL_BYTES:]
        if self.tag(MARK_TABLE, row, body) != stored[1:SEAL_BYTES]:
            return None
        name, count, value, keys = self.tag(MARK_TABLE, row, b""), struct.unpack("<I", body[16:])[0], b"", []
        while len(value) < count:
            keys.append(name + struct.pack(">I", len(keys)))
            if not (piece := pieces.get(keys[-1])):
                return None
            value += piece
        return (value, keys) if len(value) == count and self.tag(table, key, value) == body[:16] else None


def derive(key, label, count):
    """HKDF with SHA-256 (RFC 5869), no salt, at most 32 bytes."""
    pseudorandom = hmac.digest(bytes(32), key, "sha256")
    return hmac.digest(pseudorandom, label.encode() + b"\x01", "sha256")[:count]


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()
