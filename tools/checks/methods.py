#!/usr/bin/python3
"""Every method of postern.v1 is called by a test, with a request that the test names, and docs/protocol.md says which
methods are streams.
"""
import re
import sys

from swift_source import ROOT, code_of, swift_files


def requests_in(code):
    """The names of requests that code makes.

    >>> sorted(requests_in("UsersGetRequest(uid: a); var b = TenantsListRequest()"))
    ['TenantsListRequest', 'UsersGetRequest']
    """
    return set(re.findall(r"\b\w+Request\b", code))


# The services of which the table names every method; of the others it says in words what they are for.
LISTED_WHOLE = {"Accounts", "Sessions", "Tokens", "Tenants", "Audit"}


def listed(page):
    """The words, and the words in bold, that the table of services has for each service of postern.v1.

    >>> said = listed("| `postern.v1.A`, `B` | Get, **Watch** | app |\\n| `postern.v1.A` | Put | any |")
    >>> sorted(said["A"][0] & {"Get", "Put", "Watch"}), sorted(said["A"][1]), sorted(said["B"][1])
    (['Get', 'Put', 'Watch'], ['Watch'], ['Watch'])
    """
    found = {}
    for row in re.findall(r"^\| `postern\.v1\..*$", page, re.MULTILINE):
        names, text = row.strip("| ").split(" | ", 1)
        for service in re.findall(r"`(?:postern\.v1\.)?(\w+)`", names):
            words, bold = found.setdefault(service, (set(), set()))
            words |= set(re.findall(r"\w+", text))
            bold |= set(re.findall(r"\*\*(\w+)\*\*", text))
    return found


def faults_of_table(services, page):
    """What the table of services in docs/protocol.md does not say."""
    said = listed(page)
    for service in services:
        words, bold = said.get(service.name, (set(), set()))
        if service.name not in said:
            yield f"docs/protocol.md: the table of services lacks {service.name}"
        for method in service.methods:
            if (method.client_streaming or method.server_streaming) != (method.name in bold):
                yield f"docs/protocol.md: {service.name}/{method.name}: streams, and only streams, are bold in the table"
            if service.name in LISTED_WHOLE and method.name not in words:
                yield f"docs/protocol.md: the table of services lacks {service.name}/{method.name}"


def main():
    sys.path.insert(0, str(ROOT / "tools"))
    from generator.schema import Schema

    made = set().union(*(requests_in(code_of(path.read_text())) for path in swift_files("Tests")))
    services = [service for file in Schema(ROOT / "proto").files if file.package == "postern.v1"
                for service in file.services]
    faults = [f"{service.full_name}/{method.name}: no test makes a {method.request.swift_name}"
              for service in services for method in service.methods if method.request.swift_name not in made]
    faults += faults_of_table(services, (ROOT / "docs/protocol.md").read_text())
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
