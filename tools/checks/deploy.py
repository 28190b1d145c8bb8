#!/usr/bin/env python3
"""Checks that the files for operators in tools/deploy/ match the server: every metric in them, and in docs/, is one of
/metrics, every setting is one of posternd's, every probe is a route, the unit may write to every folder that docs/ names;
scripts and rules are well formed. docs/metrics.md has a row for each metric. Where Prometheus' promtool is installed, it
tries the alerts.
"""
import json
import re
import shutil
import subprocess
import sys

from swift_source import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from generator.metrics import metrics_of_server  # noqa: E402

DEPLOY = ROOT / "tools/deploy"
METRIC = re.compile(r"\b(?:postern|process|rpc_server)_[a-z_]+\b")


def metrics_of(text):
    """The names of metrics in a text, without the suffixes that a histogram adds to its name.

    >>> sorted(metrics_of('rate(postern_x_total[5m]) / rpc_server_y_seconds_bucket{rpc_method="a"}'))
    ['postern_x_total', 'rpc_server_y_seconds']
    """
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in METRIC.findall(text)}


def metrics_named(page):
    """The metrics that a page names whole.

    >>> sorted(metrics_named('`postern_x_total`, `postern_y{kind="a"}`, `_dead`, `postern_z_…`, postern_client.py'))
    ['postern_x_total', 'postern_y']
    """
    return metrics_of("".join(re.findall(r"`[a-z_]+[`{]", page)))


def folders_made(unit):
    """The folders that systemd makes for a unit, and lets it write to.

    >>> sorted(folders_made("StateDirectory=postern\\nStateDirectoryMode=0700\\nRuntimeDirectory=postern"))
    ['/run/postern', '/var/lib/postern']
    """
    parents = {"Runtime": "/run", "State": "/var/lib", "Logs": "/var/log"}
    return {f"{parents[kind]}/{name}" for kind, name in re.findall(r"^(Runtime|State|Logs)Directory=(\S+)$", unit, re.M)}


def short_patience(unit, kubernetes):
    """Faults of a supervisor that gives a start up: an upgrade would never end, and a passing trouble would stay.

    >>> short_patience("StartLimitIntervalSec=0\\nTimeoutStartSec=infinity", "failureThreshold: 3600")
    []
    >>> len(short_patience("TimeoutStartSec=120", "failureThreshold: 120"))
    3
    """
    faults = [f"systemd: the unit has to say {line}" for line in ("StartLimitIntervalSec=0", "TimeoutStartSec=infinity")
              if line not in unit.splitlines()]
    if not re.search(r"failureThreshold: \d{4,}", kubernetes):
        faults.append("kubernetes: the startup probe gives an upgrade no time")
    return faults


def faults_of_pages(known):
    """The metrics of docs/ that the server has not, and those that docs/metrics.md leaves out."""
    engine = "".join(path.read_text() for path in (ROOT / "Sources/Cluster").glob("*Tables.swift"))
    tables = set(re.findall(r"CREATE TABLE \S*(postern_[a-z_]+)", engine))
    for page in sorted((ROOT / "docs").glob("*.md")):
        for metric in sorted(metrics_named(page.read_text()) - known - tables):
            yield f"docs/{page.name}: the server has no metric {metric}"
    for metric in sorted(known - metrics_named((ROOT / "docs/metrics.md").read_text())):
        yield f"docs/metrics.md: {metric} is missing (tools/generate)"


def main():
    faults = []
    known = {name for name, _, _ in metrics_of_server()}
    dashboard = json.loads((DEPLOY / "grafana/postern.json").read_text())
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []))
    for name, text in {"grafana/postern.json": queries,
                       **{f"prometheus/{file.name}": file.read_text() for file in (DEPLOY / "prometheus").iterdir()}}.items():
        faults += [f"{name}: the server has no metric {metric}" for metric in sorted(metrics_of(text) - known)]
    faults += faults_of_pages(known)
    kubernetes = (DEPLOY / "kubernetes/postern.yaml").read_text()
    keys = set(re.findall(r'key: "([a-z_]+)"', (ROOT / "Sources/posternd/Setting.swift").read_text()))
    settings = set(re.findall(r"name: POSTERN_([A-Z_]+)", kubernetes))
    settings |= {key.upper() for key in json.loads((DEPLOY / "debian/posternd.json").read_text())}
    faults += [f"posternd has no setting {name}" for name in sorted(settings) if name.lower() not in keys]
    routes = set(re.findall(r'"(/[a-z]+)": \{', (ROOT / "Sources/Service/SidePort.swift").read_text()))
    faults += [f"kubernetes: the HTTP port has no {path}" for path in re.findall(r"path: (/[a-z]+)", kubernetes)
               if path not in routes]
    texts = "".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    named = set(re.findall(r"(?:/run|/var/lib|/var/log)/postern\b", texts))
    unit = (DEPLOY / "systemd/postern.service").read_text()
    faults += short_patience(unit, kubernetes)
    made = folders_made(unit)
    faults += [f"systemd: docs/ names {folder}, which the unit does not make" for folder in sorted(named - made)]
    for script in ("postinst", "prerm", "postrm"):
        faults += run(["sh", "-n", str(DEPLOY / "debian" / script)])
    if shutil.which("promtool"):
        faults += run(["promtool", "check", "rules", "alerts.yml"])
        faults += run(["promtool", "test", "rules", "alerts_test.yml"])
    print(*faults, sep="\n", end="\n" if faults else "")
    sys.exit(bool(faults))


def run(command):
    done = subprocess.run(command, cwd=DEPLOY / "prometheus", capture_output=True, text=True)
    return [done.stdout + done.stderr] if done.returncode else []


if __name__ == "__main__":
    main()
