"""Compares the load tool with h2load: both make the same gRPC calls to the same server, in turn.

In a closed loop the two are compared by their rates, and by the server's CPU time for a call, which shows whether both
really asked for the same. The rate says what a mean latency says (it is the calls in flight, divided by that latency), but
it means the same in both tools. A latency does not: h2load counts a call's time from when it writes a request,
postern-bench from when it could have written it.
"""
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import peers

from .server import SCRATCH, Server
from .table import spread

SHAPES = ["16x1", "64x1", "8x16"]
# The tools agree when the median of the rounds' ratios differs from 1 by at most this share.
AGREEMENT = 0.10


def message(tenant, uid):
    """A postern.v1.UsersGetRequest with gRPC's prefix."""
    fields = b"\x0a" + bytes([len(tenant)]) + tenant.encode() + b"\x12" + bytes([len(uid)]) + uid.encode()
    return b"\0" + struct.pack(">I", len(fields)) + fields


METHODS = {
    "get": ("postern.v1.Users/Get", message("bench", "u" + "0" * 27)),
    "health": ("grpc.health.v1.Health/Check", b"\0\0\0\0\0"),
}


def h2load(server, operation, shape, seconds):
    method, body = METHODS[operation]
    folder = Path(server.directory)
    key = (folder / "data" / "admin-key").read_text().strip()
    (folder / "request").write_bytes(body)
    connections, in_flight = shape.split("x")
    before = peers.cpu_seconds(server.process)
    done = subprocess.run(
        ["h2load", "-t", "1", "-c", connections, "-m", in_flight, "-D", str(seconds), "--warm-up-time=1",
         "-d", folder / "request", "-H", "content-type: application/grpc", "-H", "te: trailers",
         "-H", f"authorization: Bearer {key}", f"http://127.0.0.1:{server.port}/{method}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds + 60)
    found = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed", done.stdout)
    if done.returncode or not found or int(found.group(3)) or not int(found.group(2)):
        sys.exit(f"bench: h2load failed:\n{done.stdout}{done.stderr}")
    count = int(found.group(2))
    # The measured CPU time includes the warm-up, and the count does not.
    cpu = (peers.cpu_seconds(server.process) - before) * seconds / (seconds + 1)
    return {"rate": count / seconds, "CPU": cpu / count * 1e6}


def ours(server, operation, shape, seconds):
    connections, in_flight = shape.split("x")
    said = server.load("bench", f"{operation}=1", seconds, "--transport", "grpc", "--connections", connections,
                       "--in-flight", in_flight)
    return {"rate": said["operations"][0]["requests_per_second"], "CPU": said["server"]["cpu_microseconds_per_request"]}


def rounds(server, operation, shape, options):
    """One pair of results per round, ours first in the pair. The tools take turns in running first."""
    pairs = []
    for number in range(options.rounds):
        order = [ours, h2load] if number % 2 == 0 else [h2load, ours]
        measured = {tool: tool(server, operation, shape, options.seconds) for tool in order}
        pairs.append((measured[ours], measured[h2load]))
    return pairs


def check(programs, options, failures):
    """Prints a line for each figure; returns those in which the tools do not agree."""
    apart = []
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory, Server(programs, directory, failures) as server:
        server.seed("bench", "--hashes", "synthetic", "--users", 1000, "--sessions", 0, "--password-users", 0)
        print("| by gRPC | postern-bench | h2load | ratio | |\n|---|---|---|---|---|")
        for operation in METHODS:
            for shape in SHAPES:
                pairs = rounds(server, operation, shape, options)
                for figure in pairs[0][0]:
                    first, second = ([pair[side][figure] for pair in pairs] for side in [0, 1])
                    ratios = [one / other for one, other in zip(first, second)]
                    agrees = abs(median(ratios) - 1) <= AGREEMENT
                    name = f"{operation}, {shape}: {figure}"
                    unit = "/s" if figure == "rate" else "µs"
                    print(f"| {name} | {spread(first)} {unit} | {spread(second)} {unit} | {spread(ratios)} | "
                          f"{'agree' if agrees else 'APART'} |", flush=True)
                    if not agrees:
                        apart.append(name)
    return apart
