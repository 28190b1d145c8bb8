"""One server from its first start to its last stop: phases of work and faults, each followed by every check."""
import shutil
import threading
import time

from . import checker
from .caller import Caller, Refused, Unknown
from .faults import CONDITIONS, ENDINGS, Ending, FailingDisk, PowerLoss, WrongClock, WrongClockAtStart
from .filler import Filler
from .server import KILLED, DidNotStart, Server, seeded
from .verify import verify
from .worker import Worker

WORKERS, SWEEP_SECONDS = 4, 70
RIGHT_WITHIN_SECONDS = 900  # steps of five minutes affect no session and no token


class Round:
    def __init__(self, options, seed, folder, report):
        self.options, self.seed, self.report = options, seed, report
        self.server = Server(options.posternd, options.shim, folder, options.disk)
        self.server.filler = Filler(self.server, report)
        self.choices = seeded(seed, "round")
        self.workers = [Worker(number, self.server, seeded(seed, number), report) for number in range(WORKERS)]
        self.before = b""  # the data file as it was at the last stop
        self.story = []  # what was done, for the person who repeats it

    def run(self, end):
        """Phases until `end` (monotonic) or a finding."""
        self.end = end
        try:
            self.first_start()
            for worker in self.workers:
                worker.prepare()
            self.server.filler.prepare()
            for _ in range(self.options.phases):
                if time.monotonic() > end or self.report.findings:
                    break
                self.phase()
            self.last_stop()
        except DidNotStart as error:
            status = error.args[0]
            self.report.find(f"the server did not start: {'it hangs' if status is None else f'status {status}'}")
        except (Refused, Unknown) as error:
            self.report.find(f"{type(error).__name__}: {error}")
        finally:
            self.server.control.heal()
            self.server.kill()

    def clear(self):
        shutil.rmtree(self.server.data, ignore_errors=True)
        shutil.rmtree(self.server.folder, ignore_errors=True)

    def first_start(self):
        """Starts the server, and kills it at some of its writes: what is there must be enough for the next start."""
        for _ in range(0 if "first start" in self.options.without else self.choices.choice((0, 1, 1, 2, 3))):
            self.server.control.kill_tears = self.choices.randrange(2)
            self.server.control.kill_countdown = self.choices.randrange(1, 50)
            try:
                self.server.start()
                self.server.kill()
            except DidNotStart as error:
                if error.args[0] != KILLED:
                    raise
            self.tell("first start")
            if self.choices.random() < 0.5:
                self.server.lose_power(self.choices)
                self.tell("and the power was lost")
        self.start()

    def start(self):
        self.server.control.heal()
        self.server.start()
        self.report.count("restarts")

    def tell(self, what):
        self.report.count(what)
        self.story.append(what)
        if self.options.verbose:
            print(f"  {what}", flush=True)

    def phase(self):
        picked, ending_kind = self.draw()
        length, pause = self.choices.uniform(0.1, 1.5), 0.0
        if any(issubclass(kind, WrongClock) for kind in picked) and self.choices.random() < 0.04:
            length, pause = SWEEP_SECONDS, 0.05  # once a minute a server sweeps what it takes for expired
        length = min(length, max(1.0, self.end - time.monotonic()))
        self.tell(ending_kind.name)
        conditions = [self.begin(kind, ending_kind) for kind in picked]
        for worker in self.workers:
            worker.is_clock_right = not any(issubclass(kind, WrongClock) for kind in picked)
            worker.is_time_right = WrongClockAtStart not in picked
            worker.has_reserve = not issubclass(ending_kind, FailingDisk)
        stop = threading.Event()
        # Daemons: SIGTERM and Ctrl-C end the process while they work.
        threads = [threading.Thread(target=worker.run, args=(stop, pause), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        died_early = self.server.wait(length)
        ending = ending_kind(self.server, self.choices, self.report, conditions)
        if died_early is None:
            ending.strike()
        for condition in reversed(conditions):  # a disk is not emptied while syncs hang
            condition.end()
        stop.set()
        for thread in threads:
            thread.join()
        status = ending.finish() if died_early is None else died_early
        self.server.control.heal()
        if died_early is not None or status not in ending.allowed:
            self.report.find(f"the server ended with status {status} under {self.under(conditions, ending)}; its log:\n"
                             f"{self.server.log_tail()}")
        self.settle(status, power_was_lost=isinstance(ending, PowerLoss))

    def draw(self):
        """The phase's conditions and its ending."""
        count = self.choices.choices((0, 1, 2, 3), (2, 4, 2, 1))[0]
        ending = self.choices.choices([kind for kind, _ in ENDINGS], [weight for _, weight in ENDINGS])[0]
        picked = sorted(self.choices.sample(CONDITIONS, count), key=CONDITIONS.index)  # one restarts the server: first
        picked = [kind for kind in picked if kind.name not in self.options.without]
        return picked, Ending if ending.name in self.options.without else ending

    def begin(self, kind, ending):
        self.tell(kind.name)
        condition = kind(self.server, self.choices, self.report, ending)
        if issubclass(kind, WrongClock):
            self.story.append(f"by {self.server.control.clock_offset_micros / 1e6:g} s")
        return condition

    def under(self, conditions, ending):
        return ", ".join([condition.name for condition in conditions] + [ending.name])

    def roll_back(self):
        """Puts an older store in the place of the present one. The server must refuse it, because it brings back what was
        revoked since."""
        path = self.server.data / "data.mdb"
        present = path.read_bytes()
        if not self.before or "rolled back store" in self.options.without:
            return
        self.tell("rolled back store")
        path.write_bytes(self.before)
        try:
            self.server.start()
            self.report.find("a store from before was served, as if it were the present one")
        except DidNotStart as error:
            if error.args[0] is None or error.args[0] <= 0:
                self.report.find(f"a store from before was not refused: status {error.args[0]}")
        self.server.kill()
        path.write_bytes(present)

    def settle(self, status, power_was_lost):
        """Checks after each phase the raw store, if the server is gone, and then everything that was acknowledged."""
        if status is not None:
            self.check_store()
            if self.choices.random() < 0.25 and not power_was_lost:
                self.roll_back()
            self.before = (self.server.data / "data.mdb").read_bytes()
            self.start()
        self.must_work()
        for worker in self.workers:
            worker.is_clock_right = worker.is_time_right = True
        threads = [threading.Thread(target=verify, args=(worker,), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if status is not None and self.server.process.poll() is not None:
            self.report.find(f"the server ended with status {self.server.process.poll()} without a fault; its log:\n"
                             f"{self.server.log_tail()}")

    def check_store(self):
        store = checker.check(self.server.data)
        self.report.count("raw checks")
        self.report.count("records checked", store.record_count)
        for kind, text in store.findings:
            self.report.find(f"raw store: {kind}: {text}")

    def must_work(self):
        """Checks that writes work again by themselves when nothing is wrong any more."""
        caller = Caller(self.server, self.report)
        try:
            caller.surely("Tenants/Update", tenant_id="torture-0", tenant={"display_name": "works"},
                          update_mask={"paths": ["display_name"]})
        except (Refused, Unknown) as error:
            self.report.find(f"nothing is wrong any more, and no write works: {error}")
        status, body = self.server.healthz()
        if status != 200:
            self.report.find(f"a server that works says on /healthz: {status} {body}")
        caller.close()
        self.must_go_right()

    def must_go_right(self):
        """Waits for the right time: a server that went on looks at the clock once a second, and is wrong until then."""
        caller, end = Caller(self.server, self.report), time.monotonic() + 20
        while True:
            try:
                answer = caller.surely("Tenants/Create", tenant_id="time", validate_only=True)
            except (Refused, Unknown) as error:
                self.report.find(f"nothing is wrong any more, and nobody tells the time: {error}")
                break
            off = answer.tenant.created_at_micros / 1e6 - time.time()
            if abs(off) < RIGHT_WITHIN_SECONDS:
                break
            if time.monotonic() > end:
                self.report.find(f"the clock is right again, and the server's time is off by {off:g} s")
                break
            time.sleep(0.05)
        caller.close()

    def last_stop(self):
        if not self.report.findings:
            self.server.terminate()
            if (status := self.server.wait(15.0)) != 0:
                self.report.find(f"the last SIGTERM: status {status}")
                self.server.kill()
            self.check_store()

    def keep(self, target):
        """Keeps everything for the person who looks for the bug."""
        shutil.copytree(self.server.folder, target, dirs_exist_ok=True)
        shutil.copytree(self.server.data, target / "data", dirs_exist_ok=True)
        (target / "story").write_text("\n".join([f"seed {self.seed}", *self.story, *self.report.findings]) + "\n")
