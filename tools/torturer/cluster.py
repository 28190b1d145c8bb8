"""Several nodes of a cluster on loopback, their engine, and a caller that goes from node to node."""
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

from .caller import Caller
from .layout import ROOT
from .proxy import Proxy
from .server import Server, free_port

SCHEMA = "torture"


class Engine:
    """A PostgreSQL of its own (tools/postgres). It ends with this process, however that ends."""

    # Reads until the other end of the pipe is closed, which the system does for a process that was killed. Tries twice,
    # because the engine may only just be starting.
    KEEPER = 'cat >/dev/null; for _ in 1 2; do "$0" kill "$1" && break; sleep 0.5; done; rm -rf "$1"'

    def __init__(self, folder):
        self.folder, self.port, self.is_running = Path(folder), free_port(), False
        # In a session of its own, so that Ctrl-C in a terminal does not end it before its work is done.
        self.keeper = subprocess.Popen(
            ["bash", "-c", self.KEEPER, str(ROOT / "tools/postgres"), str(folder)], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def _run(self, *arguments):
        subprocess.run([ROOT / "tools/postgres", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, timeout=120)

    def start(self):
        if not self.is_running:
            self._run("start", self.folder, self.port)
            self.is_running = True

    def end(self, how):
        """Ends the engine: `how` is "kill", as a crash does, or "stop", in good order."""
        if self.is_running:
            self.is_running = False
            self._run(how, self.folder)

    def close(self):
        """Ends the engine for good, and deletes its files."""
        self.is_running = False
        self.keeper.stdin.close()
        self.keeper.wait(60)


class Node(Server):
    def __init__(self, cluster, number, program, shim, folder):
        self.cluster, self.number = cluster, number
        self.proxy = Proxy(("127.0.0.1", cluster.engine.port))
        url = f"postgresql://postern@127.0.0.1:{self.proxy.port}/postgres"
        super().__init__(program, shim, folder, settings=[
            "--journal", url, "--journal-schema", SCHEMA, "--signing-algorithm", "ES256", "--issuer",
            "https://torture.example"])
        self.is_stopped = False

    @property
    def key(self):
        return self.cluster.key

    def begin_cluster(self):
        """Makes this node's store the first of the cluster."""
        command = [str(self.program), "--data-directory", str(self.data), "--cluster-init", *self.settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def take_master_key(self, other):
        shutil.copy(other.data / "master-key", self.data / "master-key")

    def lose_disk(self):
        """Deletes the store of a dead node. The master key stays, as if it were kept elsewhere, as it should be."""
        for path in self.data.iterdir():
            if path.name != "master-key":
                path.unlink()

    def stop_clocks(self):
        """SIGSTOP: the process is there and does nothing."""
        self.is_stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        if self.is_stopped:
            self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False


class Cluster:
    """Takes the place of a `Worker`'s server: each connection goes to one of the nodes that run."""

    def __init__(self, program, shim, folder, count=3, choices=random):
        self.folder, self.choices, self.is_clock_right = Path(folder), choices, True
        self.folder.mkdir(parents=True, exist_ok=True)
        # The engine runs as an ordinary user, who must be able to enter these folders.
        os.chmod(self.folder, 0o711)
        os.chmod(self.folder.parent, 0o711)
        self.engine = Engine(self.folder / "engine")
        try:
            self.engine.start()
        except BaseException:
            self.engine.close()
            raise
        self.nodes = [Node(self, number, program, shim, self.folder / f"node-{number}") for number in range(count)]
        self.key = ""

    def begin(self):
        first = self.nodes[0]
        first.begin_cluster()
        self.key = (first.data / "admin-key").read_text().strip()
        for node in self.nodes[1:]:
            node.take_master_key(first)
        for node in self.nodes:
            node.start()

    @property
    def address(self):
        running = [node for node in self.nodes if node.is_running and not node.is_stopped]
        return self.choices.choice(running or self.nodes).address

    def close(self):
        for node in self.nodes:
            node.go_on()
            node.control.heal()
            if node.process:
                node.kill()
            node.proxy.close()
        self.engine.close()


class RoamingCaller(Caller):
    """Goes to another node now and then, and must not see a difference: each call asks for the latest state there is."""

    CALLS_PER_NODE = 4

    def call(self, method, metadata=(), **fields):
        if self.server.choices.randrange(self.CALLS_PER_NODE) == 0:
            self.close()
        return super().call(method, metadata={"x-postern-consistency": "latest", **dict(metadata)}, **fields)
