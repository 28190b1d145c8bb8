"""Lists of lines that may stay as they are, each with a reason: the common part of traps.py, texts.py and memory.py."""
from swift_source import ROOT, is_generated, swift_files


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


def faults(list_name, targets, sites, complaint):
    """The lines that `sites` finds in the targets' files and the list lacks, and the entries of the list that match none."""
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
