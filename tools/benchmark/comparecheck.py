"""Checks on real servers whether `postern-bench compare` can be trusted.

Two servers run side by side and are measured in turn, seven times each, in alternating order: other work of the machine
affects both results of a pair. Then their results are compared, pair by pair. In half of the tries both servers are the
same program, so each regression that is found is a false one. In the other half one server spends 15 % more CPU time on a
request (burn.c, preloaded), so a try without a regression has missed it.
"""
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from .server import ROOT, SCRATCH, SHAPES, Server, output_of

HERE = Path(__file__).resolve().parent
PAIRS, INJECTED = 7, 0.15
# This share of the tries must be right.
RIGHT_MIN = 0.9


def cpu(server, seconds):
    return server.load("bench", "get=1", seconds, *SHAPES["64x1"])["server"]["cpu_microseconds_per_request"]


class Check:
    def __init__(self, programs, options, failures, stack):
        self.programs, self.seconds, self.failures, self.stack = programs, options.seconds, failures, stack
        self.scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH)))
        self.library = self.scratch / "burn.so"
        output_of(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", self.library, HERE / "burn.c"], 60)

    def server(self, burn=None):
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH))
        server = Server(self.programs, directory, self.failures)
        if burn is not None:
            server.environment = {"LD_PRELOAD": str(self.library), "BURN_NANOSECONDS": str(burn)}
        self.stack.enter_context(server)
        server.seed("bench", "--hashes", "synthetic", "--users", 1000, "--sessions", 0, "--password-users", 0)
        return server

    def calibrated(self):
        """How many nanoseconds make a request more expensive by the share INJECTED."""
        trial = 2000
        plain, slow = self.server(), self.server(trial)
        pairs = [(cpu(plain, 1), cpu(slow, 1)) for _ in range(5)]
        base = median(pair[0] for pair in pairs)
        added = median(pair[1] - pair[0] for pair in pairs)
        plain.__exit__()
        slow.__exit__()
        return max(100, round(trial * INJECTED * base / max(0.1, added)))

    def result(self, server, name):
        path = self.scratch / name
        command = [str(part) for part in server.load_command("bench", "get=1", self.seconds, *SHAPES["64x1"], "--json", path)]
        server.checked(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, cwd=ROOT))
        return path

    def regressions(self, first, second):
        """By which share the second server takes more CPU time, and what compare calls a regression of it."""
        before, after = [], []
        for number in range(PAIRS):
            order = [(before, first, f"before-{number}.json"), (after, second, f"after-{number}.json")]
            for side, server, name in order if number % 2 == 0 else reversed(order):
                side.append(self.result(server, name))
        done = subprocess.run(
            [str(self.programs / "postern-bench"), "compare", *(",".join(map(str, side)) for side in [before, after])],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        if done.returncode not in [0, 98]:
            sys.exit(f"bench: compare failed:\n{done.stdout}{done.stderr}")
        cpus = [json.loads(path.read_text())["server"]["cpu_microseconds_per_request"] for path in [*before, *after]]
        share = median(late / early for early, late in zip(cpus[:PAIRS], cpus[PAIRS:])) - 1
        return share, done.stderr.strip().removeprefix("postern-bench: worse: ") if done.returncode == 98 else ""


def check(programs, options, failures):
    """Prints what each try found; returns the kinds of tries that were right too rarely."""
    with contextlib.ExitStack() as stack:
        check = Check(programs, options, failures, stack)
        burn = check.calibrated()
        servers = {"the same": (check.server(), check.server()), "15 % more CPU": (check.server(), check.server(burn))}
        print(f"| try ({burn} ns injected) | CPU, the same | regressions | CPU, 15 % more | regressions |\n|---|---|---|---|---|")
        right = dict.fromkeys(servers, 0)
        for number in range(options.tries):
            cells = []
            for name, pair in servers.items():
                share, found = check.regressions(*pair)
                right[name] += bool(found) == (name != "the same")
                cells += [f"{share:+.1%}", found or "none"]
            print(f"| {number + 1} | {' | '.join(cells)} |", flush=True)
        print("right: " + ", ".join(f"{name} {count} of {options.tries}" for name, count in right.items()))
        return [name for name, count in right.items() if count < RIGHT_MIN * options.tries]
