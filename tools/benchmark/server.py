"""A posternd for the benchmark alone, and the load tool that measures it. Only processes started here are ended."""
import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import peers

ROOT = Path(__file__).resolve().parent.parent.parent
SCRATCH = ROOT / ".build-bench"
CORES = os.cpu_count()
SHAPES = {
    "64x1": ["--connections", 64, "--in-flight", 1],
    "8x32": ["--connections", 8, "--in-flight", 32],
    # Keeps every hashing worker busy, and their queue short.
    "few": ["--connections", 4 * CORES, "--in-flight", 1],
}


def output_of(command, timeout):
    """What a command prints. If the command fails, its output is printed and the run ends."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"bench: {shlex.join(done.args)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(*arguments):
    """The folder of the programs that `tools/release` builds with these arguments, or of those that a benchmark needs."""
    arguments = arguments or ("posternd", "postern", "postern-bench")
    print("bench: tools/release", *arguments, file=sys.stderr)
    return Path(output_of(["tools/release", *arguments], timeout=3600).strip())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def covers(background, measured):
    """Whether a load ran during all of the time in which another one counted.

    >>> long = {"started_at_microseconds": 1_000_000, "seconds": 4.0}
    >>> covers(long, {"started_at_microseconds": 2_000_000, "seconds": 3.0})
    True
    >>> covers(long, {"started_at_microseconds": 2_100_000, "seconds": 3.0})
    False
    """
    begins, ends = zip(*((said["started_at_microseconds"], said["started_at_microseconds"] + said["seconds"] * 1e6)
                         for said in (background, measured)))
    return begins[0] <= begins[1] and ends[1] <= ends[0]


class Server:
    """`failures` collects what load tools say about answers that failed."""

    def __init__(self, programs, directory, failures, *flags):
        self.programs, self.directory, self.failures, self.flags = programs, Path(directory), failures, flags
        self.environment = {}

    def __enter__(self):
        self.port, self.http_port = free_port(), free_port()
        self.make_certificate()
        self.log = open(self.directory / "log", "ab")
        said = self.log.tell()
        began = time.monotonic()
        self.process = subprocess.Popen(
            [str(part) for part in [
                self.programs / "posternd", "--data-directory", self.directory / "data", "--listen-address",
                f"127.0.0.1:{self.port}", "--http-address", f"127.0.0.1:{self.http_port}", "--tls-certificate-file", self.certificates / "server.pem",
                "--tls-key-file", self.certificates / "server-key.pem", *self.flags]],
            stdout=self.log, stderr=self.log, env={**os.environ, "SWIFT_BACKTRACE": "enable=no", **self.environment})
        # Not by connecting: a free port is in the range that clients connect from, so a client could connect to itself.
        while b'"message":"serving"' not in (self.directory / "log").read_bytes()[said:]:
            if self.process.poll() is not None or time.monotonic() - began > 30:
                self.__exit__()
                sys.exit(f"bench: posternd did not start:\n{(self.directory / 'log').read_text()[-2000:]}")
            time.sleep(0.0005)
        self.start_milliseconds = (time.monotonic() - began) * 1000
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()

    @property
    def certificates(self):
        return self.directory / "certificates"

    @property
    def over_tls(self):
        """The flags of postern-bench for TLS; the port takes plain text as well."""
        return ["--ca-file", self.certificates / "ca.pem"]

    def make_certificate(self):
        if not self.certificates.exists():
            output_of([self.programs / "postern", "server", "cert", self.certificates, "--ip", "127.0.0.1"], timeout=30)

    def grpc(self, tenant):
        """This server as a gRPC peer that h2load asks for the first seeded user."""
        key = (self.directory / "data" / "admin-key").read_text().strip()
        return peers.grpc_load(
            self.process, f"http://127.0.0.1:{self.port}/postern.v1.Users/Get", tenant, peers.UID,
            answer_bytes=100, headers=[f"authorization: Bearer {key}"], streams_at_first=16)

    def metrics(self):
        """The figures of /metrics, by their names and labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}/metrics", timeout=30) as page:
            lines = page.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def command(self, name, *flags):
        return [self.programs / "postern-bench", name, "--server", f"127.0.0.1:{self.port}", "--server-pid",
                self.process.pid, "--key-file", self.directory / "data" / "admin-key", *flags]

    def seed(self, tenant, *flags):
        state = self.directory / tenant
        command = [self.programs / "postern-bench", "seed", "--server", f"127.0.0.1:{self.port}", "--key-file",
                   self.directory / "data" / "admin-key", "--tenant", tenant, "--state", state, *flags]
        print("bench:", output_of(command, timeout=300).strip(), file=sys.stderr)

    def update_tenant(self, tenant, *flags):
        output_of([self.programs / "postern", "--server", f"127.0.0.1:{self.port}", "--key-file",
                   self.directory / "data" / "admin-key", "--yes", "tenant", "update", tenant, *flags], timeout=30)

    def load_command(self, tenant, mix, seconds, *flags):
        return self.command("run", "--state", self.directory / tenant, "--mix", mix, "--seconds", seconds, "-o", "json",
                            "--i-own-this", "--progress", "off", *flags)

    def load(self, tenant, mix, seconds, *flags):
        """The result of `postern-bench run`. `flags` shape the load: one of SHAPES, or a rate."""
        command = [str(part) for part in self.load_command(tenant, mix, seconds, *flags)]
        return self.checked(subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds + 120, cwd=ROOT))

    def load_beside(self, tenant, mix, seconds, flags, measure):
        """The result of a load that ran while `measure` was called, and the result of `measure`."""
        command = [str(part) for part in self.load_command(tenant, mix, seconds, *flags)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as load:
            try:
                time.sleep(1)
                measured = measure()
                said, errors = load.communicate(timeout=seconds + 120)
            except BaseException:
                load.kill()
                raise
        background = self.checked(subprocess.CompletedProcess(command, load.returncode, said, errors))
        if not covers(background, measured):
            self.failures.append(f"{mix}: did not run during all of what was measured beside it")
        return background, measured

    def checked(self, done):
        """The result of a load. Failed answers and unsent requests are added to `failures`, and the run goes on."""
        if not done.stdout.strip():
            sys.exit(f"bench: {shlex.join(done.args)} failed:\n{done.stderr}")
        said = json.loads(done.stdout)
        mix = said["configuration"]["mix"]
        if done.returncode != 0:
            self.failures.append(f"{mix}: {(done.stderr.strip().splitlines() or [''])[-1]}")
        for operation in said["operations"]:
            if operation["errors"]:
                self.failures.append(f"{mix}: {operation['name']}: {operation['errors']}")
        return said

    def anonymous_bytes(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        sys.exit("bench: the system does not say how much memory is the server's own")
