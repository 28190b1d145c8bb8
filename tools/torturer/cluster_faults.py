"""The faults that a cluster has to survive. A fault begins while the workers work; its end mends what it broke."""
import time


class Fault:
    name = ""

    def __init__(self, round_):
        self.cluster, self.choices, self.report, self.before = (
            round_.cluster, round_.choices, round_.report, round_.before)
        self.node = self.choices.choice(self.cluster.nodes)
        self.duration, self.freezes = self.choices.uniform(0.2, 3.0), round_.freezes

    def begin(self):
        pass

    def end(self):
        pass


class KilledNode(Fault):
    name = "kill -9 of a node"

    def begin(self):
        self.node.go_on()
        self.node.kill()

    def end(self):
        time.sleep(self.duration / 4)
        self.restart()

    def restart(self):
        """Does not wait until the node serves: it may need its engine, which another fault still keeps away."""
        if not self.node.is_running:
            self.node.start(waits=False)


class OldDisk(KilledNode):
    """A node comes back with its disk of an earlier time: it has to read again what it forgot."""
    name = "node with an old disk"

    def end(self):
        path, number = self.node.data / "data.mdb", self.node.number
        present = path.read_bytes()
        if number in self.before:
            path.write_bytes(self.before[number])
            (self.node.data / "lock.mdb").unlink(missing_ok=True)
        self.before[number] = present
        self.restart()


class StoppedInOrder(KilledNode):
    name = "SIGTERM of a node"

    def begin(self):
        self.node.go_on()
        if self.node.is_running:
            self.node.terminate()
            if (status := self.node.wait(20.0)) not in (0, 75):
                self.report.find(f"SIGTERM of node {self.node.number}: status {status}; its log:\n{self.node.log_tail()}")


class FrozenNode(Fault):
    """SIGSTOP, in a long run now and then for longer than every timeout. What the node had begun ends later, or never."""
    name = "SIGSTOP of a node"

    def begin(self):
        if self.node.is_running:
            self.node.stop_clocks()
        time.sleep(self.choices.choice(self.freezes))

    def end(self):
        self.node.go_on()


class KilledEngine(Fault):
    name = "crash of the engine"

    def begin(self):
        self.cluster.engine.end("kill")
        time.sleep(self.duration)

    def end(self):
        self.cluster.engine.start()


class StoppedEngine(KilledEngine):
    name = "restart of the engine"

    def begin(self):
        self.cluster.engine.end("stop")
        time.sleep(self.duration)


class LostAnswers(Fault):
    name = "answers of the engine lost"
    what = "answer"

    def begin(self):
        end = time.monotonic() + self.duration
        while time.monotonic() < end:
            self.choices.choice(self.cluster.nodes).proxy.lose(self.what)
            time.sleep(0.15)

    def end(self):
        for node in self.cluster.nodes:
            node.proxy.heal()


class LostQuestions(LostAnswers):
    name = "questions to the engine lost"
    what = "question"


class CutConnections(LostAnswers):
    name = "connections to the engine cut"

    def begin(self):
        for _ in range(5):
            self.choices.choice(self.cluster.nodes).proxy.cut()
            time.sleep(self.duration / 5)


class SlowEngine(LostAnswers):
    """Nothing passes and nothing ends, for as long as an engine in trouble may take."""
    name = "engine frozen for one node"

    def begin(self):
        self.node.proxy.freeze()
        time.sleep(self.choices.choice(self.freezes))


FAULTS = (KilledNode, OldDisk, StoppedInOrder, FrozenNode, KilledEngine, StoppedEngine, LostAnswers, LostQuestions,
          CutConnections, SlowEngine)
