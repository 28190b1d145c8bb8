"""Writes docs/performance.md and its plots from the figures of a run."""
import os
from datetime import date
from pathlib import Path
from statistics import median

from . import plots, scale, table
from .server import CORES, ROOT

FOLDER = ROOT / "docs" / "performance"


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def steps(csv):
    """(rate, p50, p99) for each second of a run with a rising rate, each the slowest operation's in that second.

    >>> steps("head\\n1,get,9,0,50,60,70,80,90,9,1,100,0.5\\n1,verify,9,0,40,60,90,80,90,9,1,100,0.5")
    [(100.0, 0.05, 0.09)]
    """
    seconds = {}
    for line in csv.splitlines()[1:]:
        cells = line.split(",")
        if cells[11] and cells[4]:  # without answers there are no latencies
            before = seconds.get(cells[0], (0, 0, 0))
            seconds[cells[0]] = (float(cells[11]), max(before[1], float(cells[4]) / 1000), max(before[2], float(cells[6]) / 1000))
    return list(seconds.values())


def allocations(figures):
    found = figures.values.get("allocations")
    if not found:
        return ""
    lines = ["| operation | calls of malloc a request | server CPU |", "|---|---|---|"]
    for operation in found[0]["operations"]:
        each = [one for value in found for one in value["operations"] if one["name"] == operation["name"]]
        lines.append(f'| {operation["name"]} | {table.spread([one["allocations_per_request"] for one in each])} | '
                     f'{table.spread([one["cpu_microseconds_per_request"] for one in each])} µs |')
    return ("\n## Allocations\n\nOne request at a time on each of 8 connections, each operation alone, with a library loaded that "
            "counts calls of malloc.\n\n" + "\n".join(lines) + "\n")


def detail(row):
    measured = row.cells()
    load = f"{median(row.loads):.2f}" if row.loads else ""
    verdict = {"": "", "within": "within", "MISSED": "**missed**" + ("" if row.misses_clearly else ", within the spread")}
    spread = f"{row.spread:.0%}" + (" **(above 10 %)**" if row.spread > table.SPREAD_MAX else "") if len(row.ours) > 1 else ""
    return [*measured[:5], verdict[measured[5]], spread, load, row.near_and_far()]


def conditions():
    return {"date": date.today().isoformat(), "processors": CORES, "processor": processor(),
            "load_average": round(os.getloadavg()[0], 1)}


def told(conditions):
    """When and on which machine the figures were measured, as far as they record it."""
    if not conditions:
        return ""
    load = conditions.get("load_average")
    busy = (f", load average {load} at the end. One far above the number of processors means that other programs ran: then "
            "the ratios say more than the figures" if load is not None else "")
    return f'{conditions["date"]}, {conditions["processors"]} processors ({conditions["processor"]}){busy}; '


def write(rows, many, figures, conditions):
    """`many`: the rows of `scale`, which are measured once."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "goals.svg").write_text(plots.goals(rows + many))
    lines = [
        "# Performance", "",
        "Written by `tools/bench --write-readme`; do not edit. What the figures mean and how they are measured: "
        "[bench.md](bench.md).", "",
        f"{told(conditions)}{len(rows[0].ours)} rounds. In each floor, peer and posternd were measured in turn, "
        "each with as many threads; the load tool ran on the same processors. The middle of the rounds, in brackets the least "
        "and the greatest.", "",
        "![How much of each goal is used up](performance/goals.svg)", "",
        "A dot right of the line misses its goal; the bar is all rounds. For a rate the goal was divided by what was measured.", ""]
    csv = figures.values.get("steps")
    if csv:
        (FOLDER / "latency.svg").write_text(plots.latencies(steps(csv[-1])))
        lines += ["![Response time against rate](performance/latency.svg)", "",
                  "`Get`, `Verify` and `Lookup` in equal parts by an open loop on 64 connections; a dot a second, of the slowest of "
                  "the three. Where the dots turn up, server and load tool together have used up the processors.", ""]
    head = ["what", "measured", "beside it", "ratio", "goal", "", "spread", "load tool's CPUs", "processors apart"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(detail(row)) + " |" for row in rows + many]
    if many:
        lines += ["", scale.told(figures)]
    missed = [row.what for row in rows + many if not row.holds]
    lines += ["", f"Missed: {', '.join(missed)}." if missed else "No goal is missed."]
    text = "\n".join(lines) + "\n" + allocations(figures) + """
## What is not measured here

| goal | why |
|---|---|
| `Users.Get` six times cheaper than OpenLDAP's slapd | slapd is not among the peers |
"""
    (ROOT / "docs" / "performance.md").write_text(text)
