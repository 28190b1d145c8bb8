"""Runs rounds, one after the other, and prints what they found."""
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from .caller import Report
from .layout import ROOT


def release_build():
    built = subprocess.run([ROOT / "tools/release", "posternd"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip()) / "posternd"


def watch_threads(report):
    """Makes it a finding when an exception ends a thread: its work, or what it had to check, was not done.

    >>> report = Report()
    >>> watch_threads(report)
    >>> thread = threading.Thread(target=lambda: [][1])
    >>> thread.start()
    >>> thread.join()
    >>> report.findings
    ['a thread of the torture ended: IndexError: list index out of range']
    """
    def hook(ended):
        report.find(f"a thread of the torture ended: {ended.exc_type.__name__}: {ended.exc_value}")
        threading.__excepthook__(ended)  # prints the stack

    threading.excepthook = hook


def run(kind, options, folder, command):
    """Runs rounds of `kind` for as long as the options say, or until the first finding. Returns the exit status. `command`
    is the program that repeats a round."""
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    seconds = options.seconds or options.minutes * 60 or (60 if not options.rounds else 10**6)
    began, rounds, report, kept = time.monotonic(), 0, Report(), None
    watch_threads(report)
    while time.monotonic() < began + seconds and not report.findings and rounds < (options.rounds or 10**6):
        print(f"round {rounds + 1}, seed {seed + rounds}", flush=True)
        place = folder / f"round-{rounds}"
        round_ = kind(options, seed + rounds, place, report)
        round_.run(began + seconds)
        rounds += 1
        if report.findings:
            kept = Path(tempfile.mkdtemp(prefix="torture-failed."))
            round_.keep(kept)
        round_.clear()
    for finding in report.findings:
        print(f"FOUND: {finding}")
    if kept:
        print(f"repeat it with: {command} --rounds 1 --seed {seed + rounds - 1}; its files are in {kept}")
    print(json.dumps({
        "seed": seed, "rounds": rounds, "seconds": round(time.monotonic() - began), "findings": len(report.findings),
        **dict(sorted(report.counts.items())), "refusals": dict(sorted(report.answers.items()))}))
    return 1 if report.findings else 0
