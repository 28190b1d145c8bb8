#!/usr/bin/env python3
"""Lists the state that is kept in memory between requests, and asks for each what keeps it from being an old copy of a row.

A copy of rows is a `RowCopies`, a `TableMark` or `RowMarks` with a `Dated` value, or follows its tables by `Store.follow`:
these learn of every commit, including those of other nodes. All other state in a lock, an atomic or a dictionary of a class
or an actor is listed in memory.txt, with the reason why it need not follow any table.
"""
import re
import sys

import listed
from swift_source import code_of

TARGETS = ["Cluster", "Outbound", "Tokens", "Signing", "Federation", "Identity", "Service", "posternd"]
# The store itself, and what cannot reach it. Rules declare the fields of pure values: the owner of such a value is listed.
LEFT_OUT = ["Base", "JSON", "Messages", "Crypto", "TLS", "Journal", "Store", "Reactor", "Wire", "HTTP2", "Transport", "Rules"]

SITES = re.compile(r"^\s*(?:(?:public|package|private|fileprivate|nonisolated|static|weak|lazy)(?:\(set\))? )*(?:let|var) \w+"
                   r"(?::[^={]*\b(?:Mutex|Atomic)<| = (?:Mutex|Atomic)\b|: \[[^=\]]*:[^=]*\] = \[:\])")
# A deeper indentation means the state of one call, or of a value that is passed on.
LOCAL = re.compile(r"^ {8,}")


def sites(text):
    """The lines that declare such memory, by number.

    >>> sites("    private let a = Mutex<[Text: B]>([:])\\n    let c: Mutex<D>\\n    private var e: [Text: F] = [:]\\n    let g = 1")
    {1: 'private let a = Mutex<[Text: B]>([:])', 2: 'let c: Mutex<D>', 3: 'private var e: [Text: F] = [:]'}
    >>> sites("        var a: [Text: B] = [:]\\n    let c = Atomic<Int>(0)\\n    func d() { e.withLock { $0 } }")
    {2: 'let c = Atomic<Int>(0)'}
    """
    lines = text.splitlines()
    return {number: lines[number - 1].strip() for number, line in enumerate(code_of(text).splitlines(), 1)
            if SITES.match(line) and not LOCAL.match(line)}


def main():
    faults = list(listed.faults("memory.txt", TARGETS, LEFT_OUT, sites, "kept in memory"))
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        print("A copy of rows is a RowCopies, a TableMark or follows its tables (docs/decisions/0054). Say of anything else "
              "in tools/checks/memory.txt why it needs to follow nothing.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
