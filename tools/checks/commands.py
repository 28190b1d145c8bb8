#!/usr/bin/env python3
"""Runs every command of README.md and docs/*.md, page by page, as a reader would: in an empty directory, one block after
the other in one shell, against release builds.

    commands.py BIN     runs them, and checks that every `postern …` in the text exists; BIN holds posternd, postern and
                        postern-bench
    commands.py         only reads the pages: every block says what it is

Commands stand in fenced blocks of the language `sh`. HTML comments right above a block say what a reader does not see:

    <!-- commands: server -->                  posternd is started first, with its defaults, and goes on to the page's end
    <!-- commands: first: SHELL -->            run before the block: what the page takes for granted
    <!-- commands: <WORD> is: SHELL -->        what the block's placeholder <WORD> stands for: the output of SHELL
    <!-- commands: exits N: REASON -->         the block ends with this status
    <!-- commands: not run: REASON -->         the block is left out

A command that watches is stopped after a moment.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# The number of blocks that are not run. To leave out one more is a decision: change the number with the page.
NOT_RUN = 8
LANGUAGES = {"sh", "swift", "text", "json", "mermaid", "go", "java", "js", "python"}
PORTS = [7400, 7401]
SECONDS_PER_PAGE = 120

PRELUDE = r"""
set -eEuo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
postern() {
    case " $* " in
        *" watch "*) timeout 2 "$bin/postern" "$@" || [[ $? == 124 ]] ;;
        *) "$bin/postern" "$@" ;;
    esac
}
posternd() { "$bin/posternd" "$@"; }
postern-bench() { "$bin/postern-bench" "$@"; }
serve() {
    posternd 2>posternd.log &
    for _ in $(seq 300); do [[ -s postern-data/admin-key ]] && return; sleep 0.1; done
    cat posternd.log >&2; exit 1
}
"""


class Block:
    """A fenced block: where it begins, its language, its lines, and the comments above it."""

    def __init__(self, line, language, markers):
        self.line, self.language, self.markers, self.lines = line, language, markers, []

    @property
    def reason_not_run(self):
        return next((marker[len("not run:"):].strip() for marker in self.markers if marker.startswith("not run:")), None)


def blocks(text):
    """The fenced blocks of a page with the markers above them.

    >>> found = blocks("a\\n<!-- commands: server -->\\n<!-- commands: first: x -->\\n```sh\\nb\\n```\\n\\n```swift\\nc\\n```\\n")
    >>> [(block.line, block.language, block.markers, block.lines) for block in found]
    [(4, 'sh', ['server', 'first: x'], ['b']), (8, 'swift', [], ['c'])]
    """
    found, markers, block = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"\s*```(.*)$", line)
        if block:
            if fence:
                found.append(block)
                block = None
            else:
                block.lines.append(line)
        elif fence:
            block, markers = Block(number, fence.group(1).strip(), markers), []
        elif marker := re.match(r"<!-- commands: (.*) -->$", line):
            markers = markers + [marker.group(1)]
        elif line.strip():
            markers = []
    return found


def faults(text):
    """What is wrong with a page before anything is run.

    >>> list(faults("a\\n\\n    postern version\\n"))
    ['3: commands belong into a block ```sh']
    >>> list(faults("```\\na\\n```\\n<!-- commands: serve -->\\n```sh\\nb\\n```\\n"))
    ['1: a block needs a language: go, java, js, json, mermaid, python, sh, swift, text', '5: unknown marker: serve']
    >>> list(faults("<!-- commands: server -->\\ntext\\n"))
    ['1: no block follows the marker']
    """
    inside = False
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*```", line):
            inside = not inside
        elif not inside and re.match(r"    (postern|posternd|postern-bench|tools/\S+|swift|\$) ", line):
            yield f"{number}: commands belong into a block ```sh"
    found = blocks(text)
    for block in found:
        if block.language not in LANGUAGES:
            yield f"{block.line}: a block needs a language: {', '.join(sorted(LANGUAGES))}"
        for marker in block.markers:
            if not re.match(r"(server$|first: .|<[^>]+> is: .|exits \d+: .|not run: .)", marker):
                yield f"{block.line}: unknown marker: {marker}"
    belonging = {block.line - 1 - index for block in found for index in range(len(block.markers))}
    for number, line in enumerate(lines, 1):
        if line.startswith("<!-- commands:") and number not in belonging:
            yield f"{number}: no block follows the marker"


def script(block):
    """What bash is to run for a block.

    >>> made = blocks("<!-- commands: <id> is: make -->\\n<!-- commands: exits 3: why -->\\n```sh\\nget <id>\\n```\\n")[0]
    >>> print(script(made))
    set +e; (set -e
    get "$(make)"
    ); status=$?; set -e; [[ $status == 3 ]]
    """
    text, before, status = "\n".join(block.lines), [], None
    for marker in block.markers:
        if marker == "server":
            before.append("serve")
        elif marker.startswith("first: "):
            before.append(marker[len("first: "):])
        elif placeholder := re.match(r"(<[^>]+>) is: (.*)", marker):
            text = text.replace(placeholder.group(1), f'"$({placeholder.group(2)})"')
        elif end := re.match(r"exits (\d+):", marker):
            status = end.group(1)
    if status:
        text = f"set +e; (set -e\n{text}\n); status=$?; set -e; [[ $status == {status} ]]"
    return "\n".join([*before, text])


def spans(text):
    """The command lines of postern within the text.

    >>> list(spans("`postern key list`, `postern key revoke <key id>` and `postern`\\n```sh\\npostern no\\n```\\n"))
    ['key list', 'key revoke <key id>']
    """
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`postern\s+([^`…]+)`", prose):
        yield " ".join(span.split())


def check_spans(page, binaries):
    """Checks that each command within the text exists, with the flags it is written with."""
    for span in sorted(set(spans(page.read_text()))):
        words = [word for word in re.sub(r"<[^>]*>|\"[^\"]*\"", "x", span).split() if word != "-"]
        said = subprocess.run([binaries / "postern", *words, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=20)
        if said.returncode != 0:
            yield f"{page.relative_to(ROOT)}: postern {span}: {said.stdout.splitlines()[0]}"


def run(page, binaries):
    """Runs a page's blocks. Returns how many, and what went wrong."""
    wanted = [block for block in blocks(page.read_text()) if block.language == "sh" and block.reason_not_run is None]
    if not wanted:
        return 0, []
    text = PRELUDE + "".join(f"\necho '== line {block.line}' >&2\n{script(block)}\n" for block in wanted)
    # The path must be short: sockets and messages contain it.
    directory = Path(tempfile.mkdtemp(prefix="postern-page-"))
    try:
        (directory / ".build").mkdir()
        (directory / ".build" / "release").symlink_to(binaries)
        for name in ["tools", "proto", "Tests"]:
            (directory / name).symlink_to(ROOT / name)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("POSTERN_", "XDG_"))}
        # The output goes to a file, because a server in the background would keep a pipe open.
        with open(directory / "said", "w") as said:
            process = subprocess.Popen(
                ["bash", "-c", text], cwd=directory, env={**kept, "HOME": str(directory), "bin": str(binaries)},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)
            try:
                status = process.wait(SECONDS_PER_PAGE)
            except subprocess.TimeoutExpired:
                status = f"no end within {SECONDS_PER_PAGE} s"
            finally:
                end(process)
        said = (directory / "said").read_text(errors="replace").splitlines()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return len(wanted), [f"{page.relative_to(ROOT)}: ended with {status}:", *said[-15:]] if status != 0 else []


def end(process):
    """Kills the shell and whatever it left running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(20)


def main():
    # So that the page that runs is ended, and its folder deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = [f"{page.relative_to(ROOT)}:{fault}" for page in PAGES for fault in faults(page.read_text())]
    not_run = [(page.relative_to(ROOT), block) for page in PAGES for block in blocks(page.read_text())
               if block.reason_not_run is not None]
    if len(not_run) != NOT_RUN:
        found.append(f"{len(not_run)} blocks are not run, not {NOT_RUN}:")
        found += [f"{page}:{block.line}: {block.reason_not_run}" for page, block in not_run]
    count = mentioned = 0
    if len(sys.argv) == 2 and not found:
        binaries = Path(sys.argv[1]).resolve()
        for port in PORTS:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    sys.exit(f"something listens on port {port} already: the pages need it")
        for page in PAGES:
            ran, wrong = run(page, binaries)
            count += ran
            mentioned += len(set(spans(page.read_text())))
            found += [*wrong, *check_spans(page, binaries)]
    print(*found, sep="\n", end="\n" if found else "")
    if count and not found:
        print(f"{count} blocks ran, {NOT_RUN} did not; {mentioned} commands within the text exist")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
