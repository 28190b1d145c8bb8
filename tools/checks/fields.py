#!/usr/bin/env python3
"""Checks that field numbers come from the proto: `User.FieldNumber.uid`, not 2. Tests may write numbers."""
import re
import sys

from swift_source import ROOT, code_of, is_generated, swift_files

SITES = re.compile(r"(?:append\w*Field|appendTag|firstField|lengthDelimited|\.field|\.list|\btag)\(\s*[0-9]"
                   r"|\bnumber [=!]= [0-9]|\bcase \([0-9]+, [._]|\b(?:field|item|deleted): [0-9]")


def sites(text):
    """The lines that name a field by a number written by hand.

    >>> sites("buffer.appendBytesField(1, id)\\ncase (3, .varint(let a)):\\nbuffer.appendBytesField(User.FieldNumber.uid, id)")
    [1, 2]
    >>> sites(".field(\\n  2, bytes)\\n// case (1, .bytes)\\nif field.number == 4 {}")
    [1, 4]
    """
    code = code_of(text)
    return [code.count("\n", 0, match.start()) + 1 for match in SITES.finditer(code)]


def main():
    faults = [f"{path.relative_to(ROOT)}:{line}: a field's number by hand; write Message.FieldNumber.name"
              for path in swift_files("Sources") if not is_generated(path) for line in sites(path.read_text())]
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
