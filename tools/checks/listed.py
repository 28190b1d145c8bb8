"""Lists of lines that may stay as they are, each with a reason: the common part of traps.py, texts.py and memory.py."""
import re

from swift_source import ROOT, is_generated, swift_files

LINKED = re.compile(r'\b(?:library|program)\(\s*"(\w+)"(?:,\s*(?://[^\n]*\n\s*)?\[([^\]]*)\])?')


def read(text):
    """The reasons by name; and for each file the lines it may have, each with the name of a reason.

    >>> read("# Words\\nempty: It is never empty.\\n\\nSources/A.swift\\n  empty  a.first!\\n")
    ({'empty': 'It is never empty.'}, {'Sources/A.swift': {'a.first!': 'empty'}})
    """
    reasons, files, file = {}, {}, None
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("  "):
            reason, _, site = line.strip().partition("  ")
            files[file][site.strip()] = reason
        elif line.startswith("Sources/"):
            file = line
            files[file] = {}
        else:
            name, _, reason = line.partition(": ")
            reasons[name] = reason
    return reasons, files


def linked(package, program):
    """The Swift targets that a program is made of, by the text of Package.swift.

    >>> sorted(linked('library("A"), // x\\nlibrary("B", ["A"]), library("C"), program(\\n "p",  // y\\n ["B", "CX"])', "p"))
    ['A', 'B', 'p']
    """
    below = {name: re.findall(r'"(\w+)"', names) for name, names in LINKED.findall(package)}
    found, left = set(), [program]
    while left:
        if (name := left.pop()) in below and name not in found:
            found.add(name)
            left += below[name]
    return found


def faults_of_targets(package, targets, left_out):
    """The targets of the server that a check neither reads nor leaves out on purpose, and those that it names in vain.

    >>> list(faults_of_targets('library("A"), library("B"), program("posternd", ["A", "B"])', ["posternd", "D"], ["A"]))
    ['the server is made of B, too: add it to TARGETS or LEFT_OUT', 'there is no target D']
    """
    made_of = linked(package, "posternd")
    yield from (f"the server is made of {name}, too: add it to TARGETS or LEFT_OUT"
                for name in sorted(made_of - {*targets, *left_out}))
    known = {name for name, _ in LINKED.findall(package)}
    yield from (f"there is no target {name}" for name in sorted({*targets, *left_out} - known))


def faults(list_name, targets, left_out, sites, complaint):
    """The lines that `sites` finds in the targets' files and the list lacks, the entries of the list that match none, and
    the server's targets that are neither in `targets` nor in `left_out`."""
    package = (ROOT / "Package.swift").read_text()
    yield from (f"{list_name}: {fault}" for fault in faults_of_targets(package, targets, left_out))
    reasons, files = read((ROOT / "tools/checks" / list_name).read_text())
    for path in swift_files(*[f"Sources/{target}" for target in targets]):
        if is_generated(path):
            continue
        name = str(path.relative_to(ROOT))
        known, found = files.pop(name, {}), sites(path.read_text())
        yield from (f"{name}:{number}: {complaint}: {site}" for number, site in found.items() if site not in known)
        yield from (f"{list_name}: {name} has no such line any more: {site}"
                    for site in known if site not in found.values())
        yield from (f"{list_name}: {name}: no such reason: {reason}" for reason in known.values()
                    if reason not in reasons)
    yield from (f"{list_name}: there is no {name}" for name in files)
