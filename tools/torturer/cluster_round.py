"""A cluster from its beginning to its last stop: phases of work and faults, each followed by every check."""
import shutil
import struct
import threading
import time

from . import checker
from .caller import Caller, Refused, Unknown
from .cluster import Cluster, RoamingCaller
from .cluster_faults import FAULTS
from .rivals import Rivals
from .server import DidNotStart, seeded
from .verify import verify
from .worker import Worker

WORKERS, NODES, NODE_IS_BACK_SECONDS = 3, 3, 60
# Seconds that a node or its way to the engine stands still. The last is longer than every timeout, and only for long runs.
FREEZES = (0.5, 2.0, 12.0)
# The keys that each node has for itself alone: no entry of the journal writes them.
OWN_KEYS = {"meta": (b"journal", b"witness", b"schema", b"upgraded", b"usage", b"time", b"mended")}


class ClusterRound:
    def __init__(self, options, seed, folder, report):
        self.options, self.seed, self.report = options, seed, report
        self.choices, self.freezes = seeded(seed, "round"), FREEZES[:2] if options.seconds else FREEZES
        self.cluster = Cluster(options.posternd, options.shim, folder, NODES, seeded(seed, "nodes"))
        self.workers = [Worker(number, self.cluster, seeded(seed, number), report) for number in range(WORKERS)]
        for worker in self.workers:
            worker.caller = RoamingCaller(self.cluster, report)
        self.rivals = Rivals(self.cluster, seeded(seed, "rivals"), report)
        self.before, self.story = {}, []  # node → its data file at an earlier stop; what was done

    def run(self, end):
        """Phases until `end` (monotonic) or a finding."""
        self.end = end
        try:
            self.cluster.begin()
            for member in (*self.workers, self.rivals):
                member.prepare()
            for _ in range(self.options.phases):
                if time.monotonic() > end or self.report.findings:
                    break
                self.phase()
            self.last_stop()
        except DidNotStart as error:
            self.report.find(f"a node did not start: status {error.args[0]}")
        except (Refused, Unknown) as error:
            self.report.find(f"{type(error).__name__}: {error}")
        finally:
            for node in self.cluster.nodes:
                self.story.append(f"log of node {node.number}:\n{node.log_tail(30)}")
            self.cluster.close()

    def clear(self):
        shutil.rmtree(self.cluster.folder, ignore_errors=True)

    def tell(self, what):
        self.report.count(what)
        self.story.append(what)
        if self.options.verbose:
            print(f"  {what}", flush=True)

    def phase(self):
        stop = threading.Event()
        members = (*self.workers, self.rivals)
        # Daemons: Ctrl-C ends the process while they work.
        threads = [threading.Thread(target=member.run, args=(stop, 0.0), daemon=True) for member in members]
        for thread in threads:
            thread.start()
        kinds = [kind for kind in FAULTS if kind.name not in self.options.without]
        faults = [kind(self) for kind in self.choices.sample(kinds, min(len(kinds), self.choices.choice((0, 1, 1, 2, 2))))]
        for fault in faults:
            time.sleep(self.choices.uniform(0.1, 0.6))
            self.tell(fault.name)
            fault.begin()
        time.sleep(self.choices.uniform(0.3, 1.5))
        for fault in faults:
            fault.end()
        time.sleep(self.choices.uniform(0.0, 0.5))
        stop.set()
        for thread in threads:
            thread.join()
        self.settle()

    def settle(self):
        """Checks, with all faults gone, that every node works, and that each has everything that was acknowledged."""
        for node in self.cluster.nodes:
            if not node.is_running:
                self.report.find(
                    f"node {node.number} ended with status {node.process.poll()}; its log:\n{node.log_tail()}")
                return
        self.all_must_work()
        threads = [threading.Thread(target=verify, args=(worker,), daemon=True) for worker in self.workers]
        threads.append(threading.Thread(target=self.rivals.verify, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.choices.random() < 0.25:
            self.compare()

    def all_must_work(self):
        for node in self.cluster.nodes:
            caller = Caller(node, self.report)
            try:
                caller.surely("Tenants/Update", seconds=NODE_IS_BACK_SECONDS, tenant_id="torture-0",
                              tenant={"display_name": "works"}, update_mask={"paths": ["display_name"]})
            except (Refused, Unknown) as error:
                self.report.find(f"nothing is wrong any more, and no write works on node {node.number}: {error}")
            deadline = time.monotonic() + NODE_IS_BACK_SECONDS
            while (health := node.healthz())[0] != 200:
                if time.monotonic() > deadline:
                    self.report.find(f"node {node.number} works, and says on /healthz: {health}")
                    break
                time.sleep(0.1)
            caller.close()

    def compare(self):
        """Stops all nodes at the same entry, and checks that each store is sound and that all are equal."""
        stores = self.stop_at_one_entry()
        self.tell("stores compared")
        for number, store in stores.items():
            self.report.count("raw checks")
            self.report.count("records checked", store.record_count)
            for kind, text in store.findings:
                self.report.find(f"raw store of node {number}: {kind}: {text}")
        first, *others = stores.values()
        for name in first.payloads:
            for store in others:
                if (found := difference(name, first.payloads[name], store.payloads[name])) is not None:
                    self.report.find(f"table {name}: the stores of two nodes differ at {found!r}")
        for node in self.cluster.nodes:
            node.start()

    def stop_at_one_entry(self):
        for attempt in range(10):
            for node in self.cluster.nodes:
                if not node.is_running:
                    node.start()
            self.all_must_work()
            time.sleep(0.2 * (attempt + 1))  # so that the last entry reaches every node
            for node in self.cluster.nodes:
                node.kill()
            stores = {node.number: checker.check(node.data) for node in self.cluster.nodes}
            if len({position(store) for store in stores.values()}) == 1:
                return stores
        self.report.find(f"the nodes do not come to the same entry: {[position(store) for store in stores.values()]}")
        return stores

    def last_stop(self):
        if self.report.findings:
            return
        self.compare()
        for node in self.cluster.nodes:
            node.terminate()
        for node in self.cluster.nodes:
            if (status := node.wait(20.0)) != 0:
                self.report.find(f"the last SIGTERM of node {node.number}: status {status}")

    def keep(self, target):
        """Keeps everything for the person who looks for the bug."""
        shutil.copytree(self.cluster.folder, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("engine"))
        (target / "story").write_text("\n".join([f"seed {self.seed}", *self.story, *self.report.findings]) + "\n")


def position(store):
    """The entry that a store is at, and its hash."""
    place = store.payloads["meta"].get(b"journal", bytes(56))
    return struct.unpack(">Q", place[16:24])[0], place[24:]


def difference(table, rows, others):
    """The first key at which they differ; None where they are equal."""
    for key in sorted(rows.keys() | others.keys()):
        if rows.get(key) != others.get(key) and key not in OWN_KEYS.get(table, ()):
            return key
    return None
