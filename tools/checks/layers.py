#!/usr/bin/env python3
"""Checks that the sources keep to the layers of Package.swift, and use nothing that the house rules exclude."""
import json
import re
import subprocess
import sys
import tempfile

from swift_source import ROOT, code_of, imports, swift_files

# Patterns that may stand nowhere in Sources and Tests, or only in the file of the second column. They begin with letters,
# because `re` finds these fast: Task(?<!\wTask) is \bTask.
EXCLUDED = [
    (r"Task(?<!\wTask)\s*\.\s*detached\b", None, "Task.detached: a task without owner, deadline or priority"),
    (r"async(?<!\wasync)\s+let\b", None, "async let: miscompiled by Swift 6.3"),
    (r"Async(?<!\wAsync)(?:Throwing)?Stream\b", None, "AsyncStream: its buffer has no bound that pushes back"),
    (r"with(?<!\wwith)(?:Checked|Unsafe)(?:Throwing)?Continuation\b", "Sources/Base/Promise.swift",
     "a continuation outside Promise"),
    (r"@_exported\b", None, "@_exported: hides a dependency"),
]


def package():
    # A folder of its own: in .build it would wait for the end of a build that goes on beside it.
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(["swift", "package", "--scratch-path", scratch, "dump-package"], cwd=ROOT,
                              stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return json.loads(done.stdout)["targets"]


def dependencies(target):
    """The names of the targets that a target depends on, from the output of dump-package.

    >>> dependencies({"dependencies": [{"byName": ["A", None]}, {"target": ["B", None]}]})
    ['A', 'B']
    """
    return [next(iter(dependency.values()))[0] for dependency in target["dependencies"]]


def is_c(target):
    return target["type"] == "system" or target["name"].startswith("C") and target["name"][1:2].isupper()


def folder(target):
    return target.get("path") or f'{"Tests" if target["type"] == "test" else "Sources"}/{target["name"]}'


def faults_of_package(targets):
    """Dependencies that point down, and C modules with more than one Swift owner.

    >>> a, b = {"name": "A", "type": "regular"}, {"name": "B", "type": "regular"}
    >>> c = {"name": "CX", "type": "system", "dependencies": []}
    >>> list(faults_of_package([c, a | {"dependencies": [{"byName": ["CX", None]}, {"byName": ["B", None]}]},
    ...                         b | {"dependencies": [{"byName": ["CX", None]}]}]))
    ['Package.swift: A depends on B, which is not above it', 'Package.swift: CX has more than one owner: A, B']
    """
    above, owners = set(), {}
    for target in targets:
        for name in dependencies(target):
            if name not in above:
                yield f'Package.swift: {target["name"]} depends on {name}, which is not above it'
            if not is_c(target):
                owners.setdefault(name, []).append(target["name"])
        above.add(target["name"])
    for target in targets:
        names = owners.get(target["name"], [])
        if is_c(target) and len(names) > 1:
            yield f'Package.swift: {target["name"]} has more than one owner: {", ".join(names)}'


def faults_of_imports(targets):
    modules = {target["name"] for target in targets}
    for target in targets:
        allowed = {*dependencies(target), target["name"]}
        for path in swift_files(folder(target)):
            for module in imports(code_of(path.read_text())):
                if module in modules - allowed:
                    name = path.relative_to(ROOT)
                    yield f'{name}: imports {module}, which Package.swift does not give {target["name"]}'


def faults_of_code(name, code):
    """The excluded imports and patterns in a file.

    >>> for fault in faults_of_code("a.swift", "import FoundationEssentials\\nasync  let a = 1"): print(fault)
    a.swift: imports FoundationEssentials
    a.swift:2: async let: miscompiled by Swift 6.3
    >>> excluded = ["Task . detached {", "AsyncThrowingStream<", "@_exported import A", "withUnsafeContinuation("]
    >>> all(list(faults_of_code("a.swift", code)) for code in excluded)
    True
    >>> allowed = ["MyTask.detached", "async lets", "MyAsyncStream<", "notwithCheckedContinuation {"]
    >>> any(list(faults_of_code("a.swift", code)) for code in allowed)
    False
    """
    for module in imports(code):
        if module.startswith("Foundation"):
            yield f"{name}: imports {module}"
    for pattern, exception, reason in EXCLUDED:
        for match in re.finditer(pattern, code):
            if name != exception:
                yield f'{name}:{code.count(chr(10), 0, match.start()) + 1}: {reason}'


def main():
    targets = package()
    faults = [*faults_of_package(targets), *faults_of_imports(targets)]
    for path in swift_files("Sources", "Tests"):
        faults += faults_of_code(str(path.relative_to(ROOT)), code_of(path.read_text()))
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
