#!/usr/bin/env python3
"""Holds hand-written Swift to the house rules that can be counted."""
import re
import sys

from swift_source import ROOT, code_of, functions, is_generated, swift_files

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
LINE_COLUMNS_MAX = 120
CLAIMS = re.compile(r"@unchecked\s+Sendable|nonisolated\(unsafe\)|\btry!")
# The fakes; the whole server, by topic; data; what libFuzzer runs.
TESTS_OF_NO_TARGET = {"TestSupport", "ServerTests", "Fixtures", "Fuzz"}


def faults_of_file(name, text):
    """The file, lines and functions that are too long.

    >>> list(faults_of_file("a.swift", "x" * 121 + "\\n" * 400 + "func f() {" + "\\n" * 60 + "}"))
    ['a.swift: 461 lines', 'a.swift:1: 121 columns', 'a.swift:401: f has 61 lines']
    """
    lines = text.splitlines()
    if len(lines) > FILE_LINES_MAX:
        yield f"{name}: {len(lines)} lines"
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_COLUMNS_MAX:
            yield f"{name}:{number}: {len(line)} columns"
    for function, first, count in functions(code_of(text)):
        if count > FUNCTION_LINES_MAX:
            yield f"{name}:{first}: {function} has {count} lines"


def unproved(text):
    """Lines that claim safety with no comment above them or as the first line below.

    >>> unproved("// Set once.\\nnonisolated(unsafe) let a = 1\\nlet b = 1\\nlet c = try! d() // fine")
    [4]
    >>> unproved("final class A: B,\\n    @unchecked Sendable\\n{\\n    // The lock guards it.\\n}")
    []
    >>> unproved("// Why.\\n@inlinable\\nnonisolated(unsafe) var a = 1\\nlet b = try! c()")
    [4]
    """
    code, lines = code_of(text).splitlines(), text.splitlines()
    return [index + 1 for index, line in enumerate(code)
            if CLAIMS.search(line) and not is_comment(lines, start_of(code, index) - 1)
            and not is_comment(lines, end_of(code, index) + 1)]


def is_comment(lines, index):
    return 0 <= index < len(lines) and lines[index].lstrip().startswith("//")


def start_of(code, index):
    """The first line of the declaration, which may begin with attributes and with lines that end in a comma or colon."""
    while index > 0 and re.search(r"^\s*@[\w(), :.]+$|[,:]\s*$", code[index - 1]):
        index -= 1
    return index


def end_of(code, index):
    """The line of the brace that opens the body, if the declaration goes on to one."""
    for end in range(index, min(index + 4, len(code))):
        if code[end].rstrip().endswith("{"):
            return end
    return index


def faults_of_tests():
    for tests in sorted((ROOT / "Tests").iterdir()):
        target = tests.name.removesuffix("Tests")
        if tests.name not in TESTS_OF_NO_TARGET and not (ROOT / "Sources" / target).is_dir():
            yield f"Tests/{tests.name}: there is no Sources/{target}"


def main():
    faults = list(faults_of_tests())
    for path in [ROOT / "Package.swift", *swift_files("Sources", "Tests")]:
        if not is_generated(path):
            name, text = str(path.relative_to(ROOT)), path.read_text()
            faults += faults_of_file(name, text)
            faults += [f"{name}:{line}: no proof beside the claim" for line in unproved(text)]
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
