#!/usr/bin/env python3
"""Holds hand-written Swift to 300 lines a file and 45 a function. sizes.txt lists the longer ones with their lengths, which
may only become smaller.

    sizes.py            checks
    sizes.py --write    removes from sizes.txt what is short enough now, and lowers the rest; it adds nothing
"""
import sys

from swift_source import ROOT, code_of, functions, is_generated, swift_files

FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 45
LIST = ROOT / "tools" / "checks" / "sizes.txt"


def long_parts(name, text):
    """The file, and the functions in it, that are too long, each with its length.

    >>> long_parts("a.swift", "func f() {" + "\\n" * 45 + "}\\n" + "\\n" * 260)
    {'a.swift': 306, 'a.swift f': 46}
    """
    found = {name: count} if (count := len(text.splitlines())) > FILE_LINES_MAX else {}
    for function, _, count in functions(code_of(text)):
        if count > FUNCTION_LINES_MAX:
            found[f"{name} {function}"] = max(count, found.get(f"{name} {function}", 0))
    return found


def listed(text):
    """The entries of the list.

    >>> listed("# Words\\n306  a.swift\\n46  a.swift f\\n")
    {'a.swift': 306, 'a.swift f': 46}
    """
    lines = [line.split("  ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: int(count) for count, name in lines}


def main():
    text, found = LIST.read_text(), {}
    for path in swift_files("Sources", "Tests"):
        if not is_generated(path):
            found |= long_parts(str(path.relative_to(ROOT)), path.read_text())
    known = listed(text)
    if sys.argv[1:] == ["--write"]:
        head = [line for line in text.splitlines() if line.startswith("#")]
        LIST.write_text("\n".join([*head, "", *(f"{min(count, known[name])}  {name}" for name, count in
                                                sorted(found.items()) if name in known)]) + "\n")
        return
    faults = [f"{name}: {count} lines; at most {known.get(name, 'what tools/checks/sizes.py says')}"
              for name, count in sorted(found.items()) if count > known.get(name, 0)]
    faults += [f"sizes.txt: {name} has {found.get(name, 'few enough')} lines now: run tools/checks/sizes.py --write"
               for name, count in sorted(known.items()) if found.get(name, 0) < count]
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
