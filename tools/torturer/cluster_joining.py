"""tools/cluster joining: how long a snapshot of many users takes, and how long a node takes to join by it."""
import json
import re
import subprocess
import threading
import time

from .client import Connection
from .cluster import Cluster
from .layout import ROOT

SEED_SECONDS, SNAPSHOT_SECONDS, JOIN_SECONDS = 1200, 180, 300


def run(options, folder):
    # Without faults.c below the nodes and without a proxy before the engine: both would be measured, too.
    cluster = Cluster(options.posternd, "", folder / "cluster", 2)
    first, second = cluster.nodes
    for node in cluster.nodes:
        node.settings[1] = f"postgresql://postern@127.0.0.1:{cluster.engine.port}/postgres"
    result = {"users": options.users}
    try:
        first.begin_cluster()
        cluster.key = (first.data / "admin-key").read_text().strip()
        second.take_master_key(first)
        first.start()
        result["seconds of seeding"] = seed(options, first, folder)
        with Memory(first) as memory:
            result["seconds of the snapshot"] = make_snapshot(cluster, first)
        parts = "SELECT sum(octet_length(body)) FROM torture.postern_snapshot_part"
        result["MiB of its parts in the engine"] = mebibytes(sql(cluster, parts))
        result["MiB of the making node, before and most"] = memory.result
        with Memory(second) as memory, Memory(first) as serving:
            result["seconds until the joining node serves"] = join(second)
        result["MiB of the joining node, most"] = memory.result[1]
        result["MiB of the serving node meanwhile, most"] = serving.result[1]
        result["MiB of the joined data file"] = mebibytes((second.data / "data.mdb").stat().st_blocks * 512)
        result["the stores agree"] = agree(first, second)
    finally:
        cluster.close()
        print(json.dumps(result, indent=2))
    return 0 if result["the stores agree"] and result["seconds until the joining node serves"] <= 60 else 1


def seed(options, node, folder):
    began = time.monotonic()
    subprocess.run(
        [options.posternd.with_name("postern-bench"), "seed", "--server", node.address, "--key-file",
         node.data / "admin-key", "--state", folder / "state", "--users", str(options.users), "--password-users", "1",
         "--sessions", "1", "--hashes", "synthetic"], check=True, stdout=subprocess.DEVNULL, timeout=SEED_SECONDS)
    return round(time.monotonic() - began, 1)


def make_snapshot(cluster, node):
    """Seconds that the node took for a snapshot, as its log says. The rounds of its keeper come once a minute."""
    wait_for(lambda: sql(cluster, "SELECT count(*) FROM torture.postern_snapshot WHERE NOT complete") == 0)
    sql(cluster, "DELETE FROM torture.postern_snapshot RETURNING 0")
    made = "made a snapshot of the cluster"
    known = node.log_path.read_text(errors="replace").count(made)
    wait_for(lambda: node.log_path.read_text(errors="replace").count(made) > known)
    line = [line for line in node.log_path.read_text(errors="replace").splitlines() if made in line][-1]
    return round(int(re.search(r"milliseconds\D*(\d+)", line)[1]) / 1000, 2)


def wait_for(is_so):
    deadline = time.monotonic() + SNAPSHOT_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit("cluster: no snapshot was made in time")
        time.sleep(0.2)


def join(node):
    """Seconds from the start of the process until it answers as healthy: then it has reached the journal's end."""
    began = time.monotonic()
    node.start(waits=False)
    while True:
        if node.process.poll() is not None:
            raise SystemExit(f"cluster: the joining node ended with status {node.process.returncode}")
        if node.healthz()[0] == 200:
            return round(time.monotonic() - began, 2)
        if time.monotonic() - began > JOIN_SECONDS:
            raise SystemExit("cluster: the node did not join in time")
        time.sleep(0.05)


def agree(first, second):
    digests = []
    for node in (first, second):
        connection = Connection(node.address, node.key, 120.0)
        found = connection.call("postern.v1.Project/DigestStore", timeout=120.0)
        connection.socket.close()
        digests.append([(table.table, table.rows, table.sha256) for table in found.tables])
    return digests[0] == digests[1]


def sql(cluster, statement):
    """The number that a statement returns; 0 if it returns none."""
    found = subprocess.run([ROOT / "tools/postgres", "sql", cluster.engine.folder, statement], check=True,
                           stdout=subprocess.PIPE, text=True, timeout=60)
    return int((found.stdout.split() or ["0"])[0])


def mebibytes(count):
    return round(count / (1 << 20), 1)


class Memory:
    """The anonymous memory of a node, sampled ten times a second. What the store maps does not count: the system can take it
    back."""

    def __init__(self, node):
        self.node, self.seen, self.is_over = node, [], threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def _look(self):
        while not self.is_over.wait(0.1):
            try:
                self.seen.append(mebibytes(self.node.memory()))
            except (OSError, AttributeError):  # it has not been started yet, or has ended
                continue

    @property
    def result(self):
        """The first sample and the largest."""
        return [self.seen[0], max(self.seen)] if self.seen else [0, 0]
