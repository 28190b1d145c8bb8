#!/usr/bin/env python3
"""Lists what can end the server's process, and asks for a proof beside each: a trap is an outage for every tenant.

A site is a `precondition` or its like, a force unwrap, a `try!` or `as!`, a conversion to a narrower integer without a
label, or arithmetic on a time of a message. It may stay when nothing from outside reaches it with a value that traps: no
request, stored record, answer of a provider, clock, file or setting. A comment `// Proof: …` on the line above, or an entry
in traps.txt, has to say why. Arithmetic and subscripts in general are not listed: sizes and numbers are bounded where they
come in, and Tests/ServerTests/Attacks/EveryFieldAttackTests.swift tries them.
"""
import re
import sys

import listed
from swift_source import code_of

TARGETS = ["Base", "JSON", "Messages", "Crypto", "TLS", "Journal", "Store", "Cluster", "Reactor", "Wire", "HTTP2", "Transport",
           "Outbound", "Tokens", "Signing", "Rules", "Federation", "Identity", "Service", "posternd"]

INTEGERS = r"(?:U?Int(?:8|16|32|64)?|CInt|socklen_t|size_t|off_t)"
SITES = re.compile("|".join([
    r"\b(?:precondition|preconditionFailure|fatalError|assertionFailure|assert)\s*\(",
    r"\bOpenSSL\.fail\b",
    r"(?<=[\w)\]}>])!(?=[\s.,)\]\[}:?(]|$)",
    r"\b(?:try|as)!",
    rf"\b{INTEGERS}\((?!exactly:|clamping:|truncatingIfNeeded:|bitPattern:|ascii:|bigEndian:|bigEndianBytes:|littleEndian:|\))",
    r"\b\w*(?:Micros|Millis|Nanos)\b\s+[-+*]\s|\s[-+*]\s(?:\w+\.)*\w*(?:Micros|Millis|Nanos)\b",
]), re.MULTILINE)
# Conversions whose argument always fits: a byte, the size or count of something in memory, a constant of C, or a value that
# the same expression masks.
FITTING = re.compile(
    rf"{INTEGERS}\((?:[A-Z][A-Z0-9_]+(?:\.rawValue)?|-?\d[\d_]*|byte|first|MemoryLayout<\w+>\.size|[^()]* & \d+|"
    r"(?:\$\d|\w+)(?:\.\w+)*\.(?:count|byteCount|utf8CodeUnitCount)|count|byteCount)\)")
# A byte in a `reduce` that builds a number.
DIGIT = re.compile(rf"U?Int(?:16|32|64)?\(\$1(?: - 0x30)?\)")
WIDE = re.compile(r"^U?Int(?:64)?\(")
# Only values of these types may not fit into Int and Int64: everything else is narrower.
SIGNED = re.compile(r"Int(?:64)?\(")
TOO_WIDE = re.compile(r"UInt64|UInt\b|Double|varint|hash|fingerprint")


def sites(text):
    """The lines of the sites, by number, without those that have a proof above or fit by themselves.

    >>> sites("a()\\nprecondition(b)\\n// Proof: c is never empty.\\nc.first!\\nlet d = !e\\nif f != g {}\\nUInt8(byte)")
    {2: 'precondition(b)'}
    >>> sites("UInt64(a.count)\\nUInt32(a.count)\\nInt32(FLAG.rawValue)\\nInt(b)\\nUInt8(c & 15)\\nInt(hash % 5)\\nUInt8(d)")
    {2: 'UInt32(a.count)', 6: 'Int(hash % 5)', 7: 'UInt8(d)'}
    >>> sites("a.timeMicros + 1\\nmax(1, b.timeMicros)\\n\\"precondition(\\"")
    {1: 'a.timeMicros + 1'}
    """
    code, lines = code_of(text).splitlines(), text.splitlines()
    found = {}
    for number, line in enumerate(code, 1):
        if not any(is_site(line, match) for match in SITES.finditer(line)):
            continue
        if not (number > 1 and lines[number - 2].lstrip().startswith("// Proof: ")):
            found[number] = lines[number - 1].strip()
    return found


def is_site(line, match):
    if DIGIT.match(line, match.start()):
        return False
    if SIGNED.match(line, match.start()) and not TOO_WIDE.search(line):
        return False
    fitting = FITTING.match(line, match.start())
    if not fitting:
        return True
    # A count fits the wide types only.
    return fitting.group().endswith("ount)") and not WIDE.match(fitting.group())


def main():
    faults = list(listed.faults("traps.txt", TARGETS, [], sites, "can trap"))
    print(*faults, sep="\n", end="\n" if faults else "")
    if faults:
        print("Make each an error that is thrown, or say in a comment `// Proof: …` on the line above why nothing from "
              "outside can make it trap.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
