"""tools/cluster bench: what a cluster costs, and how fast a change reaches its nodes, on this machine."""
import json
import os
import statistics
import subprocess
import time

from .caller import Caller, Refused, Report, Unknown
from .cluster import Cluster
from .server import build_shim

TICKS = os.sysconf("SC_CLK_TCK")
SESSIONS, SECONDS, REVOCATIONS, FAIL_OVERS = 1000, 6, 50, 5
PATIENCE_SECONDS = 60  # for what has to happen soon


def run(options, folder):
    shim, report, result = build_shim(folder), Report(), {}
    for count in (1, 2, 3):
        cluster = Cluster(options.posternd, shim, folder / f"cluster-{count}", count)
        try:
            cluster.begin()
            result[f"{count} nodes"] = load(options, cluster, folder)
            if count == 3:
                result["revocation, acknowledged on one node to refused on another"] = revocations(cluster, report)
                result["crash of the engine: seconds without writes"] = fail_overs(cluster, report)
        finally:
            cluster.close()
    print(json.dumps(result, indent=2))
    return 1 if report.findings else 0


def bench(options, node, *arguments):
    """Starts postern-bench against one node; returns the process."""
    return subprocess.Popen(
        [options.posternd.with_name("postern-bench"), arguments[0], "--server", node.address, "--key-file",
         node.cluster.nodes[0].data / "admin-key", *map(str, arguments[1:])], stdout=subprocess.DEVNULL)


def finish(processes):
    for process in processes:
        if process.wait(120) != 0:
            raise SystemExit(f"cluster: {process.args[0]} ended with status {process.returncode}")


def load(options, cluster, folder):
    """Measures refreshes in a closed loop, then creations at a low rate, through all nodes at once."""
    states = [folder / f"state-{len(cluster.nodes)}-{node.number}" for node in cluster.nodes]
    for node, state in zip(cluster.nodes, states):
        finish([bench(options, node, "seed", "--state", state, "--tenant", f"bench-{node.number}", "--users", 1000,
                      "--password-users", 1, "--sessions", SESSIONS, "--hashes", "synthetic")])
    result = {}
    for name, arguments in (
            ("refresh, closed loop", ("--mix", "refresh=1", "--connections", 4, "--in-flight", 32)),
            ("create at 120/s", ("--mix", "create=1", "--rate", 120 // len(cluster.nodes), "--connections", 4))):
        files = [folder / f"result-{node.number}.json" for node in cluster.nodes]
        before, engine_before = [cpu(node.process.pid) for node in cluster.nodes], cpu_of_engine(cluster)
        began = time.monotonic()
        finish([bench(options, node, "run", *arguments, "--state", state, "--seconds", SECONDS, "--json", file)
                for node, state, file in zip(cluster.nodes, states, files)])
        elapsed = time.monotonic() - began
        runs = [json.loads(file.read_text()) for file in files]
        nodes_cpu = sum(cpu(node.process.pid) - at for node, at in zip(cluster.nodes, before))
        result[name] = summary(runs, nodes_cpu, cpu_of_engine(cluster) - engine_before, elapsed)
    return result


def summary(runs, nodes_cpu, engine_cpu, elapsed):
    operations = [run["operations"][0] for run in runs]
    latencies = [operation["latency_microseconds"] for operation in operations]
    return {
        "per second": round(sum(operation["requests_per_second"] for operation in operations)),
        "p50 ms": round(statistics.median(latency["p50"] for latency in latencies) / 1000, 2),
        "p99 ms": round(max(latency["p99"] for latency in latencies) / 1000, 2),
        "processors, nodes": round(nodes_cpu / elapsed, 2), "processors, engine": round(engine_cpu / elapsed, 2),
    }


def cpu(pid):
    """Seconds of processor time."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_of_engine(cluster):
    """The seconds of the engine's living processes: its connections last as long as the nodes."""
    postmaster = int((cluster.engine.folder / "data/postmaster.pid").read_text().split()[0])
    found = subprocess.run(["pgrep", "-P", str(postmaster)], stdout=subprocess.PIPE, text=True, check=True)
    return sum(cpu(pid) for pid in [postmaster, *map(int, found.stdout.split())])


def revocations(cluster, report):
    """Milliseconds from the answer of one node to the first refusal of another, which is asked without pause."""
    here, there, found = Caller(cluster.nodes[0], report), Caller(cluster.nodes[1], report), []
    here.surely("Tenants/Create", tenant_id="bench-news", tenant={"synthetic": True}, update_mask={"paths": ["synthetic"]})
    user = here.surely("Users/Create", tenant_id="bench-news", email="ada@example.com").user
    for _ in range(REVOCATIONS):
        custom = here.surely("Users/CreateCustomToken", tenant_id="bench-news", uid=user.uid).custom_token
        tokens = here.surely("Accounts/SignInWithCustomToken", tenant_id="bench-news", token=custom).tokens
        there.surely("Tokens/VerifyIdToken", tenant_id="bench-news", id_token=tokens.id_token)
        here.surely("Users/RevokeTokens", tenant_id="bench-news", uid=user.uid)
        acknowledged = time.perf_counter()
        while True:
            try:
                there.call("Tokens/VerifyIdToken", tenant_id="bench-news", id_token=tokens.id_token)
            except Refused as refusal:
                if refusal.reason != "TOKEN_EXPIRED":
                    raise
                break
            if time.perf_counter() > acknowledged + PATIENCE_SECONDS:
                raise SystemExit("cluster: a revoked token is still good on another node")
        found.append((time.perf_counter() - acknowledged) * 1000)
        time.sleep(1 - time.time() % 1)  # tokens of one second are revoked together
    found.sort()
    return {"p50 ms": round(found[len(found) // 2], 2), "p99 ms": round(found[int(len(found) * 0.99)], 2),
            "max ms": round(found[-1], 2), "count": len(found)}


def fail_overs(cluster, report):
    """The engine crashes and starts again at once, while one writer asks node 0 without pause."""
    caller, gaps = Caller(cluster.nodes[0], report), []
    for number in range(FAIL_OVERS):
        cluster.engine.end("kill")
        began = time.monotonic()
        cluster.engine.start()
        started = time.monotonic()
        while True:
            try:
                caller.call("Tenants/Update", tenant_id="bench-news", tenant={"display_name": str(number)},
                            update_mask={"paths": ["display_name"]})
                break
            except (Refused, Unknown) as error:
                if time.monotonic() > started + PATIENCE_SECONDS:
                    raise SystemExit(f"cluster: no write works after a crash of the engine: {error}") from None
                time.sleep(0.005)
        gaps.append((time.monotonic() - began, time.monotonic() - started))
    return {"in all": [round(gap, 2) for gap, _ in gaps], "after the engine was there": [round(gap, 2) for _, gap in gaps]}
