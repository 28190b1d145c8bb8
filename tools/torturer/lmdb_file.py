"""Reads an LMDB 0.9 data file page by page, without LMDB: a second opinion on what lies in it.

The layout is that of `MDB_page`, `MDB_meta`, `MDB_db` and `MDB_node` in LMDB's mdb.c on a 64-bit little-endian machine.
"""
import struct
from dataclasses import dataclass

PAGE_HEADER, META_BYTES, DB_BYTES = 16, 152, 48
MAGIC, NO_PAGE = 0xBEEFC0DE, 2**64 - 1
BRANCH, LEAF, OVERFLOW, META = 0x01, 0x02, 0x04, 0x08
BIG_DATA, SUB_TABLE = 0x01, 0x02
DEPTH_MAX = 32


class Damaged(Exception):
    """The file is not what LMDB writes."""


@dataclass
class Tree:
    """One table as its owner describes it (`MDB_db`)."""
    page_byte_count: int
    depth: int
    branch_count: int
    leaf_count: int
    overflow_count: int
    entry_count: int
    root: int

    @classmethod
    def read(cls, data, at):
        pad, _, depth, branch, leaf, overflow, entries, root = struct.unpack_from("<IHHQQQQQ", data, at)
        return cls(pad, depth, branch, leaf, overflow, entries, root)


@dataclass
class Row:
    key: bytes
    value: bytes
    flags: int
    offset: int  # of the value in the file: the tests plant damage there


class DataFile:
    """The newest committed state of one file. The file must not change meanwhile."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if len(self.data) < META_BYTES:
            raise Damaged("the file is shorter than a meta page")
        metas = [meta for meta in self._metas() if meta]
        if not metas:
            raise Damaged("there is no readable meta page")
        self.transaction, self.last_page, self.free_tree, self.main_tree, self.meta_offset = max(metas)
        self.page_size = self.free_tree.page_byte_count

    def _metas(self):
        size = struct.unpack_from("<I", self.data, 40)[0]
        if size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
            size = 4096
        for start in (0, size):
            if start + META_BYTES > len(self.data):
                continue
            flags, magic = struct.unpack_from("<H", self.data, start + 10)[0], struct.unpack_from(
                "<I", self.data, start + 16)[0]
            if not flags & META or magic != MAGIC:
                yield None
                continue
            last_page, transaction = struct.unpack_from("<QQ", self.data, start + 136)
            free, main = Tree.read(self.data, start + 40), Tree.read(self.data, start + 40 + DB_BYTES)
            yield Meta((transaction, last_page, free, main, start))

    def tables(self):
        """Name → rows of every named table, and the faults of the pages: one walk over everything."""
        self.faults, self.owner_of_page = [], {0: "meta", 1: "meta"}
        free_rows = self._rows(self.free_tree, "free list")
        tables = {}
        for row in self._rows(self.main_tree, "main"):
            name = row.key.decode("ascii", "replace")
            if not row.flags & SUB_TABLE or len(row.value) != DB_BYTES:
                self.faults.append(f"main: {name!r} is no table")
                continue
            tables[name] = self._rows(Tree.read(row.value, 0), name)
        self._check_free_pages(free_rows)
        return tables

    def _check_free_pages(self, rows):
        for row in rows:
            count = struct.unpack_from("<Q", row.value)[0] if len(row.value) >= 8 else 0
            if len(row.value) < 8 + 8 * count:
                self.faults.append("free list: a list is cut off")
                continue
            for page in struct.unpack_from(f"<{count}Q", row.value, 8):
                self._claim(page, 1, "free")
        used = sum(1 for page in self.owner_of_page if page <= self.last_page)
        if used != self.last_page + 1:
            self.faults.append(f"{self.last_page + 1 - used} pages are neither in use nor free")

    def _claim(self, page, count, owner):
        for number in range(page, page + count):
            if number > self.last_page:
                self.faults.append(f"{owner}: page {number} lies behind the last one, {self.last_page}")
            elif number in self.owner_of_page:
                self.faults.append(f"{owner}: page {number} belongs to {self.owner_of_page[number]} as well")
            self.owner_of_page[number] = owner

    def _rows(self, tree, name):
        rows, counts = [], {BRANCH: 0, LEAF: 0, OVERFLOW: 0}
        if tree.root != NO_PAGE:
            try:
                self._walk(tree.root, name, 1, tree.depth, rows, counts)
            except (struct.error, Damaged) as error:
                self.faults.append(f"{name}: {error}")
                return rows
        if name != "free list":
            keys = [row.key for row in rows]
            if any(left >= right for left, right in zip(keys, keys[1:])):
                self.faults.append(f"{name}: the keys are not in order")
        wanted = {BRANCH: tree.branch_count, LEAF: tree.leaf_count, OVERFLOW: tree.overflow_count}
        if len(rows) != tree.entry_count or counts != wanted:
            self.faults.append(f"{name}: {len(rows)} rows in {list(counts.values())} pages, where the table says "
                               f"{tree.entry_count} in {list(wanted.values())}")
        return rows

    def _walk(self, page, name, level, depth, rows, counts):
        start = page * self.page_size
        if level > min(depth, DEPTH_MAX):
            raise Damaged(f"page {page} lies deeper than the table's depth")
        number, _, flags, lower, _ = struct.unpack_from("<QHHHH", self.data, start)
        kind = flags & (BRANCH | LEAF)
        if number != page or kind not in (BRANCH, LEAF) or (kind == LEAF) != (level == depth):
            raise Damaged(f"page {page} is not the page that belongs there (number {number}, flags {flags:#x})")
        self._claim(page, 1, name)
        counts[kind] += 1
        for index in range((lower - PAGE_HEADER) // 2):
            node = start + struct.unpack_from("<H", self.data, start + PAGE_HEADER + 2 * index)[0]
            low, high, node_flags, key_count = struct.unpack_from("<HHHH", self.data, node)
            if kind == BRANCH:
                self._walk(low | high << 16 | node_flags << 32, name, level + 1, depth, rows, counts)
                continue
            key, at, count = self.data[node + 8:node + 8 + key_count], node + 8 + key_count, low | high << 16
            if node_flags & BIG_DATA:
                first = struct.unpack_from("<Q", self.data, at)[0]
                page_count = -(-(PAGE_HEADER + count) // self.page_size)
                self._claim(first, page_count, name)
                counts[OVERFLOW] += page_count
                at = first * self.page_size + PAGE_HEADER
            if at + count > len(self.data):
                raise Damaged(f"a value of page {page} lies behind the end of the file")
            rows.append(Row(key, self.data[at:at + count], node_flags, at))


class Meta(tuple):
    """Compared by transaction alone."""

    def __gt__(self, other):
        return self[0] > other[0]

    def __lt__(self, other):
        return self[0] < other[0]
