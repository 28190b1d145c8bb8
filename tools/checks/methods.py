#!/usr/bin/python3
"""Every method of postern.v1 is called by a test, with a request that the test names."""
import re
import sys

from swift_source import ROOT, code_of, swift_files


def requests_in(code):
    """The names of requests that code makes.

    >>> sorted(requests_in("UsersGetRequest(uid: a); var b = TenantsListRequest()"))
    ['TenantsListRequest', 'UsersGetRequest']
    """
    return set(re.findall(r"\b\w+Request\b", code))


def main():
    sys.path.insert(0, str(ROOT / "tools"))
    from generator.schema import Schema

    made = set().union(*(requests_in(code_of(path.read_text())) for path in swift_files("Tests")))
    services = [service for file in Schema(ROOT / "proto").files if file.package == "postern.v1"
                for service in file.services]
    faults = [f"{service.full_name}/{method.name}: no test makes a {method.request.swift_name}"
              for service in services for method in service.methods if method.request.swift_name not in made]
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
