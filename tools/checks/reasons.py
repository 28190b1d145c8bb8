#!/usr/bin/python3
"""Checks that every reason in proto/postern/v1/reasons.proto is thrown: a reason of the server by the server, a reason of
the client libraries by them. A thrown reason that is not in the proto does not compile, except by `Failure(received:…)`,
which only the client may use."""
import re
import sys
from pathlib import Path

from swift_source import ROOT, code_of, is_generated, swift_files

CLIENT = {"PosternClient", "PosternAuth", "PosternAdmin", "PosternVerifier"}
SERVER = {"Messages", "Reactor", "Wire", "Transport", "Signing", "Rules", "Federation", "Identity", "Service", "posternd"}
# These files make a `Failure` of any reason that a server sent.
RECEIVERS = {Path("Sources/PosternClient/FailureDecoding.swift"), Path("Sources/Base/Failure.swift")}
# What stands before the parenthesis and before Reason is looked at behind them, as swift_source.py explains.
THROWN = re.compile(r"\((?<!\bis\()\s*(?:detail: )?\.(\w+)|Reason(?<!\wReason)\.(\w+)")
RECEIVING = re.compile(r"\b(?:Failure|self\.init|\.init)\(\s*received:")


def thrown(code):
    """The names in code that may be reasons it produces. A comparison with a reason does not count.

    >>> sorted(thrown("Failure(.a, b(.c)) .invalid(\\n  .d, .e) Text(Reason.f.name) failure.is(.g) this(detail: .h, "
    ...               "MyReason.i)"))
    ['a', 'c', 'd', 'f', 'h']
    """
    return {name for names in THROWN.findall(code) for name in names if name}


def thrown_by(targets):
    return set().union(*(thrown(code_of(path.read_text())) for target in targets for path in swift_files(f"Sources/{target}")
                         if not is_generated(path)))


def reasons():
    sys.path.insert(0, str(ROOT / "tools"))
    from generator.schema import Schema

    return Schema(ROOT / "proto").reasons


def main():
    faults = []
    server, clients = thrown_by(SERVER), thrown_by(CLIENT)
    for reason in reasons():
        if reason.swift_name not in (clients if reason.client_only else server):
            thrower = "the client libraries" if reason.client_only else "the server"
            faults.append(f"reasons.proto: {reason.name} is never thrown by {thrower}")
    for path in swift_files("Sources"):
        name = path.relative_to(ROOT)
        if name not in RECEIVERS and RECEIVING.search(code_of(path.read_text())):
            faults.append(f"{name}: makes a Failure of a reason by its name; use one of Reason's")
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
