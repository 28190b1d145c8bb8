"""Builds the peers that Postern is compared with, and measures one figure at a time: see README.md beside this file.

Everything is on loopback. Every server is given a time to live, and only processes that were started here are killed.
"""
import contextlib
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / ".build-peers"
CORES = os.cpu_count()
PACKAGES = {
    "floor": ["gcc", "libc6-dev", "liblmdb-dev", "libprotobuf-c-dev", "protobuf-c-compiler"],
    "grpc": ["g++", "pkg-config", "libgrpc++-dev", "libprotobuf-dev", "protobuf-compiler", "protobuf-compiler-grpc",
             "nghttp2-client"],
    "h2load": ["nghttp2-client"],
    "limits": ["gcc", "libc6-dev", "liblmdb-dev", "libsodium-dev", "libssl-dev"],
}
# What each program of limits/ links.
LIBRARIES = {"argon2id": ["-lsodium", "-lcrypto"], "durable": ["-lsodium", "-lcrypto", "-llmdb"], "signatures": ["-lcrypto"], "commit": ["-llmdb"], "distance": []}
C_FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
UID = b"u" + b"0" * 27


def output_of(command, timeout):
    """What a command prints. If the command fails, its output is printed and the run ends."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, cwd=BUILD)
    if done.returncode != 0:
        sys.exit(f"peers: {shlex.join(done.args)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(missing):
    root = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run([*root, "apt-get", "update", "-qq"], check=True, timeout=300)
    subprocess.run([*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq",
                    "--no-install-recommends", *missing], check=True, timeout=900, stdout=sys.stderr)


def require_packages(names, may_install):
    """Installs the Debian packages that are missing, or names them and ends the run."""
    wanted = sorted({package for name in names for package in PACKAGES[name]})
    known = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *wanted], timeout=60,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    missing = [package for package in wanted if f"{package} installed\n" not in known]
    if missing and may_install:
        install(missing)
    elif missing:
        sys.exit(f"peers: missing {' '.join(missing)}; install them, or run again with --install")


def built(name, sources, *commands):
    """The program `name`, built by the commands unless it is newer than its sources."""
    BUILD.mkdir(exist_ok=True)
    program = BUILD / name
    newest = max(path.stat().st_mtime for path in [*sources, Path(__file__)])
    if not program.exists() or program.stat().st_mtime < newest:
        for command in commands:
            output_of(command, timeout=300)
    return program


def cpu_seconds(process):
    """User and system time of a process so far, of all its threads (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Peer:
    """A running server and the load for it: `load(connections, in_flight, seconds)` returns (requests, seconds it took)."""

    def __init__(self, process, load):
        self.process, self.load = process, load

    def measure(self, shape, seconds):
        """`shape` is connections x requests in flight on each, as 64x1."""
        connections, in_flight = (int(part) for part in shape.split("x"))
        self.load(connections, in_flight, 1)  # warms caches, not counted
        before = cpu_seconds(self.process)
        requests, took = self.load(connections, in_flight, seconds)
        cpu = cpu_seconds(self.process) - before
        return {"requests_per_second": requests / took, "server_cpu_microseconds": cpu / requests * 1e6,
                "server_cpu_share": cpu / took}


@contextlib.contextmanager
def serving(command):
    """Yields a server's process and port, and kills the process at the end. The process also ends by itself, and with it
    the wait for its port."""
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, cwd=BUILD) as server:
        try:
            line = server.stdout.readline()
            if not line.strip().isdigit():
                sys.exit(f"peers: {command[0]} did not start")
            yield server, int(line)
        finally:
            server.kill()


@contextlib.contextmanager
def floor(time_to_live, threads=CORES):
    source, proto = HERE / "floor", HERE / "lookup.proto"
    parts = [proto, *source.iterdir()]
    messages = ["protoc-c", f"--c_out={BUILD}", f"--proto_path={HERE}", proto]
    server = built("floor-server", parts, messages, [
        "cc", *C_FLAGS, f"-I{BUILD}", "-o", "floor-server", source / "server.c", BUILD / "lookup.pb-c.c",
        "-llmdb", "-lprotobuf-c"])
    program = built("floor-load", parts, ["cc", *C_FLAGS, "-o", "floor-load", source / "load.c"])
    with (tempfile.TemporaryDirectory(dir=BUILD) as store,
          serving([server, store, threads, time_to_live]) as (process, port)):
        def load(connections, in_flight, seconds):
            requests, took = output_of([program, port, connections, in_flight, seconds], timeout=seconds + 30).split()
            return int(requests), float(took)

        yield Peer(process, load)


@contextlib.contextmanager
def grpc(time_to_live):
    source, proto = HERE / "grpc" / "server.cc", HERE / "lookup.proto"
    BUILD.mkdir(exist_ok=True)
    plugin = output_of(["which", "grpc_cpp_plugin"], timeout=10).strip()
    flags = output_of(["pkg-config", "--cflags", "--libs", "grpc++", "protobuf"], timeout=10).split()
    server = built(
        "grpc-server", [proto, source],
        ["protoc", f"--proto_path={HERE}", f"--cpp_out={BUILD}", f"--grpc_out={BUILD}",
         f"--plugin=protoc-gen-grpc={plugin}", proto],
        ["c++", "-O2", f"-I{BUILD}", "-o", "grpc-server", source, "lookup.pb.cc", "lookup.grpc.pb.cc", *flags])
    with serving([server, time_to_live]) as (process, port):
        yield grpc_load(process, f"http://127.0.0.1:{port}/peers.Users/Get", "acme", UID, answer_bytes=370)


def grpc_load(process, url, tenant, uid, answer_bytes, headers=(), streams_at_first=None):
    """A gRPC server that h2load loads with gets of one user. An answer has at least `answer_bytes` bytes.

    `streams_at_first` is how many streams the server allows a connection that has shown no credential yet. Clients of gRPC
    wait until the server tells them; h2load does not, so its calls above that number are refused and do not count.
    """
    message = b"\x0a" + bytes([len(tenant)]) + tenant.encode() + b"\x12" + bytes([len(uid)]) + uid
    BUILD.mkdir(exist_ok=True)
    request = BUILD / f"grpc-request-{process.pid}"
    request.write_bytes(b"\0" + struct.pack(">I", len(message)) + message)
    given = [word for header in ["content-type: application/grpc", "te: trailers", *headers] for word in ["-H", header]]

    def load(connections, in_flight, seconds):
        said = output_of(["h2load", "-t", 1, "-c", connections, "-m", in_flight, "-D", seconds, "-d", request, *given, url],
                         timeout=seconds + 30)
        requests = int(re.search(r"(\d+) succeeded", said).group(1))
        data = int(re.search(r"\((\d+)\) data", said).group(1))
        failed = int(re.search(r"(\d+) failed", said).group(1))
        refused = connections * max(0, in_flight - streams_at_first) if streams_at_first else 0
        # A failed RPC is a 200 without data: only answers with the record count.
        if requests == 0 or data < requests * answer_bytes or failed > refused:
            sys.exit(f"peers: gRPC did not answer as it should:\n{said}")
        return requests, seconds

    return Peer(process, load)


def limit_program(name):
    source = HERE / "limits"
    return built(name, [source / f"{name}.c", *source.glob("*.h")],
                 ["cc", *C_FLAGS, "-o", name, source / f"{name}.c", *LIBRARIES[name]])


def limit(name, *arguments, seconds):
    """The rate, and the CPU time of each operation, that a program of limits/ measured."""
    count, took, cpu, *beside = output_of([limit_program(name), *arguments, seconds], timeout=seconds + 60).split()
    return {"per_second": int(count) / float(took), "cpu_microseconds": float(cpu) / int(count) * 1e6,
            **({"beside_hash_microseconds": float(beside[0]) * 1e6} if beside else {})}


def commits(batch, seconds):
    with tempfile.TemporaryDirectory(dir=BUILD) as store:
        return limit("commit", store, batch, seconds=seconds)


def sign_ins(connections, seconds):
    """The sign-ins of a server that only hashes, signs and commits."""
    with tempfile.TemporaryDirectory(dir=BUILD) as store:
        return limit("durable", store, CORES, connections, seconds=seconds)


def distance(seconds=0.1):
    """Nanoseconds in which a cache line goes from one processor to another; None with one processor."""
    return int(output_of([limit_program("distance"), seconds], timeout=10)) if CORES > 1 else None
