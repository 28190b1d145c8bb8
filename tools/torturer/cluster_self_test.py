"""tools/cluster torture --self-test: bugs are planted in a copy of the sources, and each has to be found."""
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

from .layout import ROOT

PLANTED = Path(__file__).with_name("planted")
# Kept between runs, because the first build takes ten minutes, and the next ones one or two.
COPY = ROOT / ".build/planted"
SECONDS = 240  # of torture, in which a bug has to be found


def run(only):
    """Returns the exit status."""
    patches = [patch for patch in sorted(PLANTED.glob("*.patch")) if only in (None, patch.stem)]
    if not patches:
        raise SystemExit(f"cluster: there is no bug {only} in {PLANTED}")
    COPY.mkdir(parents=True, exist_ok=True)
    with open(COPY / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missed = [patch.stem for patch in patches if not is_found(patch)]
        copy_sources()
    print(f"{len(patches)} planted bugs, {len(missed)} not found{': ' if missed else ''}{', '.join(missed)}")
    return 1 if missed else 0


def is_found(patch):
    copy_sources()
    # The copy lies within a repository, which git must not take for the one to patch.
    subprocess.run(["git", "apply", str(patch)], cwd=COPY / "source", check=True,
                   env={**os.environ, "GIT_CEILING_DIRECTORIES": str(COPY)})
    posternd = build()
    began = time.monotonic()
    command = [ROOT / "tools/cluster", "torture", "--minutes", SECONDS / 60, "--posternd", posternd]
    torture = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=False)
    findings = [line for line in torture.stdout.splitlines() if line.startswith("FOUND: ")]
    said = findings[0][:200] if findings else "not found"
    print(f"{patch.stem}: {said} ({round(time.monotonic() - began)} s)", flush=True)
    if torture.returncode not in (0, 1) or bool(findings) != (torture.returncode == 1):
        raise SystemExit(f"cluster: the torture ended with status {torture.returncode}:\n{torture.stdout}")
    return bool(findings)


def copy_sources():
    """Copies the files that git tracks, as they are in the working tree. Equal files keep their modification time, so that
    they are not built again."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", "Package.swift", "Sources", "Tests"], cwd=ROOT,
                            stdout=subprocess.PIPE, text=True, check=True)
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, COPY / "source" / name
        content = source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in (COPY / "source").rglob("*"):
        name = path.relative_to(COPY / "source").as_posix()
        if path.is_file() and name not in names and not name.startswith(".build/"):
            path.unlink()


def build():
    command = ["swift", "build", "--package-path", str(COPY / "source"), "--product", "posternd"]
    subprocess.run(command, stdout=sys.stderr, check=True, timeout=3600)
    shown = subprocess.run([*command, "--show-bin-path"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(shown.stdout.strip()) / "posternd"
