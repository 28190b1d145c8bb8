#!/usr/bin/env python3
"""Every relative link in a Markdown file leads somewhere, and docs/decisions/README.md lists every decision.

    docs.py            checks
    docs.py --index    prints a line for each decision, as docs/decisions/README.md has them
"""
import re
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = ROOT / "docs" / "decisions"
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]+(?:\([^()\s]*\))?)>?(?:\s+\"[^\"]*\")?\)"
                  r"|^[ ]{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)


def prose(text):
    """The text without its code: fenced blocks and spans.

    >>> prose("a `[b](c)` d\\n```sh\\n[e](f)\\n```\\ng")
    'a  d\\n\\ng'
    """
    text = re.sub(r"^[ ]{0,3}(```+|~~~+).*?^[ ]{0,3}\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def links(text):
    """The targets of the links of a Markdown text, except web addresses.

    >>> links("[a](b.md) ![c](d.png \\"e\\") [f](https://g.h) [i][j]\\n[j]: k.md#l\\n[`m`](#n)")
    ['b.md', 'd.png', 'k.md#l', '#n']
    """
    found = [first or second for first, second in LINK.findall(prose(text))]
    return [link for link in found if not re.match(r"[a-z][a-z0-9+.-]*:|//", link)]


def anchors(text):
    """The anchors of a page: its headings as GitHub names them.

    >>> sorted(anchors("# A `b`: c\\n## D\\n## D\\n"))
    ['a-b-c', 'd', 'd-1']
    """
    found = set()
    outside_blocks = re.sub(r"^[ ]{0,3}(```+|~~~+).*?^[ ]{0,3}\1[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6}[ ]+(.*?)[ #]*$", outside_blocks, re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        copies = sum(1 for known in found if known == name or re.fullmatch(re.escape(name) + r"-\d+", known))
        found.add(f"{name}-{copies}" if copies else name)
    return found


def markdown_files():
    """Every Markdown file of the repository, except those in hidden folders: these are builds and tools of others."""
    return sorted(path for path in ROOT.rglob("*.md")
                  if not any(part.startswith(".") for part in path.relative_to(ROOT).parts))


def faults_of_links(path):
    name = path.relative_to(ROOT)
    for link in links(path.read_text()):
        place, _, anchor = unquote(link).partition("#")
        target = (ROOT / place.lstrip("/") if place.startswith("/") else path.parent / place) if place else path
        if not target.exists():
            yield f"{name}: {link} leads nowhere"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            yield f"{name}: {link}: no such heading"


def decisions():
    """The notes of decisions with their titles, in order."""
    for path in sorted(DECISIONS.glob("[0-9]*.md")):
        title = re.match(r"#[ ]+(?:\d+[ ]+)?(.+)", path.read_text())
        yield path.name, title.group(1).strip() if title else path.stem


def faults_of_decisions():
    index = DECISIONS / "README.md"
    known = links(index.read_text()) if index.exists() else []
    for name, _ in decisions():
        if not re.match(r"\d{4}-[a-z0-9-]+\.md$", name):
            yield f"docs/decisions/{name}: is not named NNNN-words.md"
        if name not in known:
            yield f"docs/decisions/README.md does not list {name} (tools/checks/docs.py --index prints the lines)"


def tests_named(text):
    """The tests that the rows of a table name in their last column: `Suite` or `Suite.function`.

    >>> tests_named("| a | b | test |\\n|---|---|---|\\n| `x` | y | `ATests.one`, `BTests` |")
    ['ATests.one', 'BTests']
    """
    rows = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`(\w+Tests(?:\.\w+)?)`", row[-1])]


def faults_of_attacks():
    """The tests that docs/security.md names and that do not exist."""
    page = ROOT / "docs" / "security.md"
    tests = {}
    for path in (ROOT / "Tests").rglob("*Tests*.swift"):
        suite = path.stem.partition("+")[0]
        tests[suite] = tests.get(suite, "") + path.read_text()
    for name in tests_named(page.read_text()):
        suite, _, function = name.partition(".")
        found = tests.get(suite, "")
        if not found or function and f"func {function}(" not in found:
            yield f"docs/security.md: there is no test {name}"


def main():
    if sys.argv[1:] == ["--index"]:
        for name, title in decisions():
            print(f"- [{name[:4]} {title}]({name})")
        return
    faults = [fault for path in markdown_files() for fault in faults_of_links(path)] + list(faults_of_decisions())
    faults += faults_of_attacks()
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
