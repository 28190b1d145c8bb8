#!/usr/bin/env python3
"""Draws the picture of the sources into docs/architecture.md: targets, folders, circles of files and three walks.

    tools/picture            writes the picture, and lowers the limits of tools/picture-limits.json to what is true now
    tools/picture --check    writes nothing; fails if the picture is not current, or a circle is above its limit
    tools/picture WALK       prints a walk, file by file, with the call that led to each: sign-in, verify or toggle

tools/checks/swift_graph.py says how it reads the sources. A limit can be raised only by hand.
"""
import json
import sys
from pathlib import Path

import layers
from swift_graph import Sources, circles
from swift_source import ROOT

PAGE = ROOT / "docs" / "architecture.md"
LIMITS = ROOT / "tools" / "picture-limits.json"
BEGIN, END = "<!-- drawn by tools/picture -->", "<!-- end of the picture -->"
# Every target may use these, so arrows to them would say nothing.
EVERYWHERE = {"Base", "Messages"}
# Functions that no unary call enters: streams, and a connection's end.
STREAMS = ["Router.streamCall"]
# Functions that a method that only reads does not enter: the compiler gives it no task, no store and no stream.
WAITING = [*STREAMS, "Router.begin"]
# For each walk its title; the functions where it begins, and where it continues behind a protocol, a closure or a queue;
# and the functions that a call of this kind cannot reach, whatever it contains.
CONNECTION = ["Connection.readable", "NativeSession.*", "Socket.*"]
WALKS = {
    "sign-in": ("A sign-in with a password", [
        *CONNECTION, "Router.handle", "AccountsSignInWithPassword.handle", "PasswordSignIn.*",
        "Writer.runUntilClosed"], STREAMS),
    "verify": ("`VerifyIdToken`", [*CONNECTION, "Router.handle", "TokensVerifyIdToken.handle"], WAITING),
    "toggle": ("A toggle is switched", [
        *CONNECTION, "Router.handle", "TenantsUpdate.handle", "Writer.runUntilClosed"], STREAMS),
}


def read():
    """The sources of the Swift targets of Package.swift that are not tests, low to high, with the targets below each."""
    targets = [target for target in layers.package()
               if layers.folder(target).startswith("Sources/") and not layers.is_c(target)]
    names, below = [target["name"] for target in targets], {}
    for target in targets:
        direct = [name for name in layers.dependencies(target) if name in names]
        below[target["name"]] = {*direct}.union(*(below[name] for name in direct))
    return Sources(below, {target["name"]: layers.folder(target) for target in targets})


def mermaid(arrows, alone=()):
    """A flowchart. A name with a slash gets an identifier of its own.

    >>> print(mermaid({("A", "A/B")}))
    ```mermaid
    flowchart TD
        A --> A_B["A/B"]
    ```
    """
    def node(name):
        plain = name.replace("/", "_")
        return plain if plain == name else f'{plain}["{name}"]'

    lines = [f"    {node(a)} --> {node(b)}" for a, b in sorted(arrows)] + [f"    {node(name)}" for name in sorted(alone)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def shortest(arrows):
    """The arrows that no path over other arrows implies. Circles keep their arrows.

    >>> sorted(shortest({(1, 2), (2, 3), (1, 3)}))
    [(1, 2), (2, 3)]
    """
    after = {}
    for a, b in arrows:
        after.setdefault(a, set()).add(b)

    def reaches(a, b, seen):
        return any(next_ == b or next_ not in seen and not seen.add(next_) and reaches(next_, b, seen)
                   for next_ in after.get(a, ()))

    return {(a, b) for a, b in arrows
            if not any(other != b and reaches(other, b, {a}) for other in after[a])}


class Picture:
    def __init__(self, sources):
        self.sources = sources
        self.uses = {file: sources.used_by(file) for file in sources.files}
        self.found = {"circles of files": {}, "circles of folders": {}}

    def text(self):
        return "\n\n".join([BEGIN, *self.targets(), *self.folders(), *self.circles(), *self.walks(), END])

    def targets(self):
        arrows = {(file.target, used.target) for file, used_files in self.uses.items() for used in used_files
                  if file.target != used.target} - {(a, b) for a in self.sources.below for b in EVERYWHERE}
        drawn = shortest(arrows)
        alone = {name for name in self.sources.below if name not in EVERYWHERE} - {end for arrow in drawn for end in arrow}
        yield "### Targets"
        yield mermaid(drawn, alone)

    def folders(self):
        yield "### Folders"
        for target in self.sources.below:
            arrows = {(place(file), place(used)) for file in self.files(target) for used in self.uses[file]
                      if used.target == target and place(file) != place(used)}
            graph = {}
            for a, b in arrows:
                graph.setdefault(a, set()).add(b)
            found = circles(graph)
            self.found["circles of folders"][target] = len(found[0]) if found else 0
            if found or len({end for arrow in arrows for end in arrow}) > 2:
                yield mermaid(arrows)

    def circles(self):
        rows = []
        for target in self.sources.below:
            graph = {file: {used for used in self.uses[file] if used.target == target} for file in self.files(target)}
            found = circles({str(file.path): {str(used.path) for used in used} for file, used in graph.items()})
            size = len(found[0]) if found else 0
            self.found["circles of files"][target] = size
            if found:
                names = ", ".join(sorted(Path(path).stem for path in found[0]))
                rows.append(f"| {target} | {len(graph)} | {size} | {names} |")
        yield "### Circles"
        yield "\n".join(["| target | files | the largest circle | its files |", "|---|---|---|---|", *rows])
        rows = [f"| {target} | {size} |" for target, size in self.found["circles of folders"].items() if size]
        if rows:
            yield "\n".join(["| target | folders in the largest circle of folders |", "|---|---|", *rows])

    def walks(self):
        for title, entries, closed in WALKS.values():
            reached = [(function, caller) for function, caller in self.sources.walk(entries, closed)
                       if function.file.target not in EVERYWHERE]
            files, entered = {}, {}
            for function, caller in reached:
                files.setdefault(place(function.file), set()).add(function.file.path.stem)
                if caller and caller.file.target != function.file.target:
                    entered.setdefault(place(function.file), set()).add(caller.file.target)
            yield f"### {title}: {sum(map(len, files.values()))} files"
            yield "\n".join([
                "| target or folder | entered from | files | |", "|---|---|---|---|",
                *(f"| {name} | {', '.join(sorted(entered.get(name, [])))} | {len(stems)} | {', '.join(sorted(stems))} |"
                  for name, stems in files.items())])

    def files(self, target):
        return [file for file in self.sources.files if file.target == target]


def place(file):
    return f"{file.target}/{file.folder}" if file.folder else file.target


def faults_of_limits(found, limits):
    """The numbers that are above their limits. A name without a limit has the limit 0.

    >>> list(faults_of_limits({"files": {"A": 3, "B": 1}}, {"files": {"A": 2, "B": 1}}))
    ['files: A has 3, and its limit is 2']
    """
    for kind, numbers in found.items():
        for name, number in numbers.items():
            limit = limits.get(kind, {}).get(name, 0)
            if number > limit:
                yield f"{kind}: {name} has {number}, and its limit is {limit}"


def lowered(found, limits):
    """The limits, lowered to what is true now.

    >>> lowered({"files": {"A": 1, "B": 3, "C": 0}}, {"files": {"A": 2, "B": 2, "D": 1}})
    {'files': {'A': 1, 'B': 2}}
    """
    return {kind: {name: least for name, number in numbers.items()
                   if (least := min(number, limits.get(kind, {}).get(name, 0)))}
            for kind, numbers in found.items()}


def print_walk(sources, name):
    seen = set()
    for function, caller in sources.walk(*WALKS[name][1:]):
        if function.file not in seen and function.file.target not in EVERYWHERE:
            seen.add(function.file)
            print(f"{function.file.path}  {function}" + (f"  from {caller}" if caller else ""))


def main(arguments):
    if arguments and arguments[0] in WALKS:
        return print_walk(read(), arguments[0])
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    picture = Picture(read())
    page = PAGE.read_text()
    drawn = page[:page.index(BEGIN)] + picture.text() + page[page.index(END) + len(END):]
    limits = json.loads(LIMITS.read_text())
    faults = list(faults_of_limits(picture.found, limits))
    if not arguments:
        PAGE.write_text(drawn)
        LIMITS.write_text(json.dumps(lowered(picture.found, limits), indent=4) + "\n")
    elif drawn != page:
        faults.append("docs/architecture.md is not current: run tools/picture")
    elif lowered(picture.found, limits) != limits:
        faults.append("a limit of tools/picture-limits.json can be lowered: run tools/picture")
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main(sys.argv[1:])
