"""Measures round by round: floor, peer and Postern in turn, so that all of them meet the same state of the machine."""
import contextlib
import json
import sys
import tempfile
import time

import peers

from .server import CORES, ROOT, SCRATCH, SHAPES, Server, output_of

# More tokens than posternd remembers, so that each is verified anew.
SESSIONS = 24000
RATES = [5000, 20000]
# Sign-ins are measured so many times in a round. A hash is at the mercy of the memory's other users: what a sign-in costs
# beside another server's is a twentieth of what one measurement differs from the next.
SIGN_INS = 3


class Figures:
    """The values of each figure, one per round; and for each value how far apart the processors were, in nanoseconds."""

    def __init__(self):
        self.values, self.distances, self.failures = {}, {}, []

    @classmethod
    def read(cls, path):
        """The figures of an earlier run, and the conditions they were measured under."""
        stored = json.loads(path.read_text())
        figures = cls()
        figures.values, figures.distances = stored["figures"], stored["distances"]
        return figures, stored.get("conditions", {})

    def forget(self, beginning):
        """Drops the figures whose names start with `beginning`."""
        for stored in [self.values, self.distances]:
            for name in [name for name in stored if name.startswith(beginning)]:
                del stored[name]

    def take(self, name, measure):
        self.distances.setdefault(name, []).append(peers.distance())
        self.values.setdefault(name, []).append(measure())

    def of(self, name, *path):
        """One value per round; None if the figure was not measured."""
        if name not in self.values:
            return None
        found = self.values[name]
        for key in path:
            found = [value[key] for value in found]
        return found


def rate(said):
    return sum(operation["requests_per_second"] for operation in said["operations"])


def cpu(said):
    return said["server"]["cpu_microseconds_per_request"]


def slowest(said):
    return max(operation["latency_microseconds"]["p99"] for operation in said["operations"]) / 1000


class Rounds:
    """The servers that stay up through all rounds."""

    def __init__(self, programs, options, figures, stack):
        self.figures, self.seconds = figures, options.seconds
        life = options.rounds * 300 + 600
        self.floor = stack.enter_context(peers.floor(life)) if "floor" in options.peers else None
        self.grpc = stack.enter_context(peers.grpc(life)) if "grpc" in options.peers else None
        self.limits = "limits" in options.peers

        def server(*flags):
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH))
            return stack.enter_context(Server(programs, directory, figures.failures, *flags))

        self.server, self.es256 = server(), server("--signing-algorithm", "ES256")
        self.server.seed("bench", "--hashes", "synthetic", "--users", options.users, "--sessions", SESSIONS,
                         "--password-users", 100)
        self.server.seed("bench-hashes", "--hashes", "production", "--users", 0, "--sessions", 0,
                         "--password-users", 64)
        self.server.seed("bench-reuse", "--hashes", "synthetic", "--users", 0, "--sessions", 2000, "--password-users", 0)
        self.server.update_tenant("bench-reuse", "--refresh-mode", "reuse")
        self.es256.seed("bench", "--hashes", "synthetic", "--users", 0, "--sessions", 2000, "--password-users", 0)

    def run(self):
        self.lookups()
        self.tokens()
        self.writes()
        self.sign_ins()

    def take(self, name, measure):
        self.figures.take(name, measure)

    def limit(self, name, program, *arguments):
        if self.limits:
            self.take(name, lambda: peers.limit(program, *arguments, seconds=self.seconds))

    def ours(self, name, mix, shape, *flags, server=None):
        self.take(name, lambda: (server or self.server).load("bench", mix, self.seconds, *SHAPES[shape], *flags))

    def lookups(self):
        for shape in ["64x1", "8x32"]:
            for name, peer in [("floor", self.floor), ("gRPC", self.grpc)]:
                if peer:
                    self.take(f"{name} {shape}", lambda: peer.measure(shape, self.seconds))
            self.ours(f"get {shape}", "get=1", shape)
            self.ours(f"get by TLS {shape}", "get=1", shape, *self.server.over_tls)
            if self.grpc:
                self.take(f"get by gRPC {shape}", lambda: self.server.grpc("bench").measure(shape, self.seconds))

    def tokens(self):
        self.limit("RSA verify", "signatures", "RSA-2048", "verify", CORES)
        self.ours("verify", "verify=1", "8x32")
        self.ours("verify repeated", "verify=1", "8x32", "--repeat-tokens", 100)
        self.limit("RSA sign", "signatures", "RSA-2048", "sign", CORES)
        self.ours("refresh RS256", "refresh=1", "8x32")
        self.take("refresh reuse", lambda: self.server.load("bench-reuse", "refresh=1", self.seconds, *SHAPES["8x32"]))
        self.ours("idp", "idp=1", "8x32", "--idp-users", 1000)
        self.ours("refresh ES256", "refresh=1", "8x32", server=self.es256)

    def writes(self):
        if self.limits:
            self.take("commits", lambda: peers.commits(64, self.seconds))
        self.ours("create", "create=1", "64x1")

    def sign_ins(self):
        """Measures sign-ins alone, lookups at a steady rate beside sign-ins, and sign-ins beside as many lookups as the
        machine can do."""
        hashes, seconds = "bench-hashes", self.seconds
        for _ in range(SIGN_INS):
            self.limit("hash and sign", "argon2id", "sign-in", CORES)
            if self.limits:
                self.take("durable sign-in", lambda: peers.sign_ins(4 * CORES, 3 * seconds // 2))
            self.take("sign-in", lambda: self.sign_in(hashes, 3 * seconds // 2))
        mix, repeated = "get=1,verify=1,lookup=1", ["--repeat-tokens", 100]
        for per_second in RATES:
            steady = ["--connections", 64, "--rate", per_second, "--arrivals", "uniform", *repeated]
            self.take(f"beside sign-ins, {per_second}/s", lambda: self.server.load_beside(
                hashes, "sign-in=1", seconds + 2, SHAPES["few"],
                lambda: self.server.load("bench", mix, seconds, *steady))[1])
        if "steps" not in self.figures.values:
            self.take("steps", self.steps)
        self.take("sign-in beside lookups", lambda: self.server.load_beside(
            "bench", mix, seconds + 2, [*SHAPES["8x32"], *repeated],
            lambda: self.server.load(hashes, "sign-in=1", seconds, *SHAPES["few"]))[1])

    def sign_in(self, tenant, seconds):
        """The load, and the CPU of a sign-in beside its hash: of all sign-ins, when none is under way."""
        before = self.server.metrics()
        said = self.server.load(tenant, "sign-in=1", seconds, *SHAPES["few"])
        after = self.server.metrics()
        total, hashing, count = (after[name] - before.get(name, 0) for name in [
            "process_cpu_seconds_total", "postern_password_hash_cpu_seconds_total",
            'postern_password_hashes_total{kind="argon2id"}'])
        return {**said, "beside_hash_microseconds": (total - hashing) / count * 1e6}

    def steps(self):
        """The series of a run whose rate rises, as CSV."""
        path = self.server.directory / "steps.csv"
        self.server.load("bench", "get=1,verify=1,lookup=1", 12, "--rate", "step 5000..30000 by 5000 every 2s",
                         "--connections", 64, "--repeat-tokens", 100, "--failures-max", 100, "--csv", path)
        return path.read_text()


def count_allocations(programs, figures):
    """Counts the allocations of one request of each operation, in a server with a counting library preloaded."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        library, counter = f"{directory}/count.so", f"{directory}/count"
        output_of(["cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tools/allocations/count.c"], timeout=60)
        server = Server(programs, directory, figures.failures)
        server.environment = {"LD_PRELOAD": library, "POSTERN_ALLOCATIONS_FILE": counter}
        with server:
            server.seed("bench", "--hashes", "synthetic", "--users", 1000, "--sessions", 200, "--password-users", 10)
            command = server.command(
                "cost", "--state", server.directory / "bench", "--mix",
                "get=1,get-by-email=1,lookup=1,verify=1,refresh=1,create=1,health=1", "--allocations-file", counter,
                "--progress", "off", "-o", "json")
            figures.take("allocations", lambda: json.loads(output_of(command, timeout=120)))


def measure_rounds(programs, options, figures):
    """The rounds come last: what fails at once ends the run before they took their time."""
    measure_one_server(programs, options, figures)
    count_allocations(programs, figures)
    stripped = SCRATCH / "posternd-stripped"
    output_of(["strip", "-o", stripped, programs / "posternd"], timeout=60)
    figures.take("binary", lambda: stripped.stat().st_size / 2**20)
    stripped.unlink()
    with contextlib.ExitStack() as stack:
        rounds = Rounds(programs, options, figures, stack)
        for number in range(options.rounds):
            began = time.monotonic()
            rounds.run()
            print(f"bench: round {number + 1} of {options.rounds} took {time.monotonic() - began:.0f} s", file=sys.stderr)


def measure_one_server(programs, options, figures):
    """Measures how a server starts, and what it keeps for idle connections and for providers."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        with Server(programs, directory, figures.failures) as server:
            server.seed("bench", "--hashes", "synthetic", "--users", options.users, "--sessions", 0,
                        "--password-users", 0)
        with Server(programs, directory, figures.failures) as server:
            time.sleep(0.5)
            figures.take("start", lambda: server.start_milliseconds)
            figures.take("memory", lambda: server.anonymous_bytes() / 2**20)
            idle = json.loads(output_of(server.command("conns", "--connections", 2000, "-o", "json"), timeout=60))
            figures.take("idle", lambda: idle["bytes_per_connection"] / 1024)
            by_tls = server.command("conns", "--connections", 10000, *server.over_tls, "-o", "json")
            idle_tls = json.loads(output_of(by_tls, timeout=180))
            figures.take("idle TLS", lambda: idle_tls["bytes_per_connection"] / 1024)
            grown = json.loads(output_of(server.command("providers", "-o", "json"), timeout=120))
            figures.take("providers", lambda: grown["growth_bytes"] / 1e6)
