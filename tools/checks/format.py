#!/usr/bin/env python3
"""Holds hand-written Swift to .swift-format. A file that passed is not checked again until it changes: .build/checks/format
has a hash of each file that passed, made with the version of swift-format and its configuration.

Exit status: 1 when a file is not formatted as it should be.
"""
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSED = ROOT / ".build" / "checks" / "format"


def sources(root):
    """Hand-written Swift files."""
    yield root / "Package.swift"
    for folder in ["Sources", "Tests"]:
        yield from sorted(path for path in (root / folder).rglob("*.swift") if "Generated" not in path.parts)


def digest(*parts):
    """
    >>> digest(b"ab", b"c") == digest(b"a", b"bc")
    False
    """
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def main():
    configuration = (ROOT / ".swift-format").read_bytes()
    version = subprocess.run(["swift", "format", "--version"], stdout=subprocess.PIPE, check=True).stdout
    # The hash includes the file's name, because a rule may look at it.
    found = {digest(version, configuration, bytes(path), path.read_bytes()): path for path in sources(ROOT)}
    passed = set(PASSED.read_text().split()) if PASSED.exists() else set()
    changed = [str(path) for mark, path in found.items() if mark not in passed]
    if changed:
        lint = ["swift", "format", "lint", "--strict", "--parallel", "--configuration", str(ROOT / ".swift-format")]
        if subprocess.run([*lint, *changed]).returncode != 0:
            sys.exit(1)
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    PASSED.write_text("\n".join(sorted(found)) + "\n")


if __name__ == "__main__":
    main()
