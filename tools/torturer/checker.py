"""Checks the raw store by recomputing it: pages, MACs, totals and the event chains here, all else in relations.py.

    python3 tools/torturer/checker.py DATA-DIRECTORY [MASTER-KEY-FILE]     with the server stopped
"""
import struct
import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    __package__ = "torturer"

from . import layout, relations  # noqa: E402
from .client import messages  # noqa: E402
from .lmdb_file import Damaged, DataFile  # noqa: E402

FINDINGS_MAX = 50  # of one kind: a broken table would fill the screen


class Store:
    """Every row of a store, opened: `rows[table]` is key → decoded record (or bytes)."""

    def __init__(self, directory, master_key_file=None):
        self.findings, self.record_count = [], 0
        self.declared = layout.declared_tables()
        self.seals = layout.Seals.of_file(master_key_file or Path(directory) / "master-key")
        self.rows, self.payloads = {name: {} for name in self.declared}, {name: {} for name in self.declared}
        try:
            self.file = DataFile(Path(directory) / "data.mdb")
            tables = self.file.tables()
        except (Damaged, struct.error) as error:
            self.find("pages", str(error))
            return
        for fault in self.file.faults:
            self.find("pages", fault)
        self.pieces_used = set()
        # The pieces of long values come first, because rows of other tables are made of them.
        for name, rows in sorted(tables.items(), key=lambda table: table[0] != "pieces"):
            if name not in self.declared:
                self.find("tables", f"{name} is declared nowhere")
                continue
            for row in rows:
                self._open(self.declared[name], row)
        if left := self.payloads["pieces"].keys() - self.pieces_used:
            self.find("pieces", f"{len(left)} pieces of no value")

    def _open(self, table, row):
        self.record_count += 1
        payload = self.seals.open(table.id, row.key, row.value)
        if payload is None and (long := self.seals.join(table.id, row.key, row.value, self.payloads["pieces"])):
            payload, keys = long
            self.pieces_used.update(keys)
        if payload is None:
            self.find("MACs", f"{table.name}: the record of {row.key!r} is not what was put there")
            return
        self.payloads[table.name][row.key] = payload
        try:
            self.rows[table.name][row.key] = messages.decode(table.record, payload)
        except Exception as error:  # whatever protobuf throws
            self.find("records", f"{table.name}: {row.key!r}: {error}")

    def find(self, kind, text):
        if sum(1 for found, _ in self.findings if found == kind) < FINDINGS_MAX:
            self.findings.append((kind, text))


def check_totals(store):
    """Checks `tenant_usage` against the rows of each tenant: their bytes (key, stored value and 16 bytes of overhead a row),
    their number, and the number in tables whose rows are counted apart (users)."""
    counted = {}
    for name, rows in store.payloads.items():
        table = store.declared[name]
        for key, payload in rows.items():
            tenant = table.tenant(key, payload)
            if tenant is not None:
                sums = counted.setdefault(tenant, [0, 0, 0])
                sums[0] += len(key) + layout.SEAL_BYTES + len(payload) + layout.ROW_OVERHEAD
                sums[1] += 1
                sums[2] += table.owner == "countedKeyPrefix"
    stored = {key[:-1]: [usage.bytes, usage.rows, usage.counted_rows]
              for key, usage in store.rows["tenant_usage"].items()}
    for tenant in sorted(counted.keys() | stored.keys()):
        found, told = counted.get(tenant, [0, 0, 0]), stored.get(tenant, [0, 0, 0])
        if found != told:
            store.find("totals", f"tenant {tenant.decode()!r}: bytes, rows and users are {found}, the totals say {told}")


def check_events(store):
    """Checks that each tenant's events follow each other without a gap, from the first or from behind a checkpoint, refer to
    each other by hash, and end at the head. With the deleted ones they are as many as the store's sequence says."""
    chains, numbers, deleted_count = {}, [], 0
    starts = {}
    for prefix, checkpoint in store.rows["event_checkpoints"].items():
        starts[prefix] = struct.unpack(">Q", checkpoint[:8])[0], checkpoint[8:40]
        deleted_count += starts[prefix][0]
    for key, record in store.rows["events"].items():
        chains.setdefault(key[:-8], []).append((struct.unpack(">Q", key[-8:])[0], key, record))
    for prefix, chain in chains.items():
        tenant, (before, expected) = prefix[:-1].decode("utf-8", "replace"), starts.get(prefix, (0, bytes(32)))
        for sequence, key, record in sorted(chain):
            if sequence != before + 1:
                store.find("events", f"tenant {tenant!r}: event {sequence} follows {before}")
            elif record[8:40] != expected:
                store.find("events", f"tenant {tenant!r}: event {sequence} does not refer to the one before it")
            number = struct.unpack(">Q", record[:8])[0]
            numbers.append(number)
            before, expected = sequence, layout.sha256(key, record)
            event = messages.decode("EventRecord", record[40:])
            if event.tenant_id != tenant:
                store.find("events", f"tenant {tenant!r}: event {sequence} is of tenant {event.tenant_id!r}")
        head = store.rows["event_heads"].get(prefix)
        if head != struct.pack(">Q", before) + expected:
            store.find("events", f"tenant {tenant!r}: the head is not event {before}")
    for prefix in store.rows["event_heads"].keys() - chains.keys():
        sequence, hash_before = starts.get(prefix, (0, bytes(32)))
        if store.rows["event_heads"][prefix] != struct.pack(">Q", sequence) + hash_before:
            store.find("events", f"tenant {prefix[:-1].decode()!r}: a head without events")
    last = struct.unpack(">Q", store.rows["meta"].get(b"sequence", bytes(8)))[0]
    if len(set(numbers)) != len(numbers) or max(numbers, default=0) > last or len(numbers) + deleted_count != last:
        store.find("events", f"{len(numbers)} events up to {max(numbers, default=0)} and {deleted_count} deleted ones, "
                   f"where the store's sequence is {last}")


def check(directory, master_key_file=None):
    """Runs every check; returns the store with the findings."""
    store = Store(directory, master_key_file)
    for check_part in (check_totals, check_events, *relations.CHECKS):
        try:
            check_part(store)
        except Exception as error:  # a record that nothing of ours wrote may be anything
            store.find("records", f"{check_part.__name__}: {type(error).__name__}: {error}")
    return store


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    store = check(*sys.argv[1:])
    for kind, text in store.findings:
        print(f"{kind}: {text}")
    print(f"{store.record_count} records, {len(store.findings)} findings")
    sys.exit(1 if store.findings else 0)


if __name__ == "__main__":
    main()
