"""Measures many users, many tenants and many verifiers, once, because each fills a store of its own. Each figure names the
size it was measured at. The goals are for the full size. Goals that the small size can meet too are rates, or sizes per
item.
"""
import json
import os
import tempfile

from .server import SCRATCH, Server, output_of
from .table import Row

# The sizes of `--scale`: how many users, tenants and verifiers.
SIZES = {"small": (50_000, 5_000, 200), "full": (1_000_000, 100_000, 1_000)}


def measure(programs, size, figures):
    users, tenants, verifiers = SIZES[size]
    loads = [os.getloadavg()[0]]

    def said(server, command, *flags):
        return json.loads(output_of(server.command(command, *flags, "-o", "json"), timeout=900))

    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        with Server(programs, directory, figures.failures) as server:
            figures.take("scale users", lambda: said(server, "users", "--users", users))
            figures.take("scale tenants", lambda: said(server, "tenants", "--tenants", tenants))
        with Server(programs, directory, figures.failures) as server:
            figures.take("scale start", lambda: {
                "users": users, "tenants": tenants, "milliseconds": server.start_milliseconds,
                "anonymous_bytes": server.anonymous_bytes()})
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        with Server(programs, directory, figures.failures) as server:
            server.seed("bench", "--hashes", "synthetic", "--users", 1000, "--sessions", 1000, "--password-users", 0)
            figures.take("scale revocation", lambda: said(
                server, "revocation", "--state", server.directory / "bench", "--verifiers", verifiers))
    loads.append(os.getloadavg()[0])
    figures.values["scale loads"] = [[round(load, 1) for load in loads]]


def told(figures):
    """The load of the machine before and after the measurement."""
    if "scale loads" not in figures.values:
        return ""
    before, after = figures.values["scale loads"][0]
    return (f"Of many users, tenants and verifiers: measured once, with a load average of {before} before and {after} behind it. "
            "`tools/bench --scale full` measures a million users, `small` 50,000.")


def rows(figures):
    """The rows of the figures that were measured."""
    made = []

    def add(name, what, read, unit, most=None, least=None):
        made.append(Row(what, [read(value) for value in figures.values[name]], unit, most=most, least=least,
                        distances=figures.distances[name]))

    if "scale users" in figures.values:
        many = figures.values["scale users"][0]
        of = f'{many["users"]:,} users'
        add("scale users", f"{of}: imported with their hashes", lambda value: value["users"] / value["import_seconds"], "/s",
            least=round(1_000_000 / 90))
        add("scale users", f"{of}: own memory meanwhile, at most", lambda value: value["import_anonymous_bytes_max"] / 1e6, "MB",
            most=200)
        for index in [name for name in many["latency_milliseconds"] if name != "Count"]:
            add("scale users", f"{of}: by {index}, p99", lambda value: value["latency_milliseconds"][index]["p99"], "ms", most=1)
        if "Count" in many["latency_milliseconds"]:
            add("scale users", f"{of}: counted, p99", lambda value: value["latency_milliseconds"]["Count"]["p99"], "ms", most=5)
    if "scale tenants" in figures.values:
        count = figures.values["scale tenants"][0]["tenants"]
        of = f"{count:,} tenants, each read once"
        # Among few tenants, memory that does not grow with them is most of it.
        add("scale tenants", f"{of}: own memory for each", lambda value: value["growth_bytes"] / value["tenants"], "B",
            most=600 if count >= 100_000 else None)
        add("scale tenants", f"{of}: p99", lambda value: value["get_p99_milliseconds"], "ms")
    if "scale start" in figures.values:
        of = figures.values["scale start"][0]
        add("scale start", f'start over {of["users"]:,} users and {of["tenants"]:,} tenants', lambda value: value["milliseconds"],
            "ms", most=150)
        add("scale start", "own memory after it, with them", lambda value: value["anonymous_bytes"] / 2**20, "MiB", most=60)
    if "scale revocation" in figures.values:
        of = figures.values["scale revocation"][0]
        load = f'{of["verifiers"]:,} verifiers, {of["verifications_per_second"]:,.0f} verifications/s'
        for share in ["p50", "p99"]:
            add("scale revocation", f"a revocation, from acknowledged to known by a verifier, {load}: {share}",
                lambda value: value["latency_milliseconds"][share] * 1000, "µs")
    return made
