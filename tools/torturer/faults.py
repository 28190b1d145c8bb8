"""What can happen to a server: conditions that last for a while, and endings. Both are drawn from the round's seed."""
import errno
import os
import time
from pathlib import Path

from .caller import Caller, Refused, Unknown
from .hostile import Attackers
from .server import DRAIN_SECONDS, KILLED

MINUTE, HOUR, DAY = 60 * 10**6, 3600 * 10**6, 86_400 * 10**6
STORE_FAILED = 70
# A stop that had to be cut short, because a sync hangs: see docs/operations.md.
CUT_SHORT = 75


class Condition:
    """Begins before the workers and ends after them."""
    name = "nothing"

    def __init__(self, server, choices, report, ending):
        self.server, self.choices, self.report, self.ending = server, choices, report, ending
        self.begin()

    def begin(self):
        pass

    def end(self):
        pass


class FullDisk(Condition):
    name = "full disk"

    def begin(self):
        """Usually fills the server's own file system, if it has one. Otherwise faults.c refuses to grow files."""
        pages = self.choices.choice((0, 1, 2, 5, 20, 100, 1000))
        self.ballast = None
        if self.server.disk and self.choices.random() < 0.7:
            self.ballast = Path(self.server.disk) / "ballast"
            free = os.statvfs(self.server.disk)
            with open(self.ballast, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail - pages) * free.f_frsize)
        else:
            self.server.control.size_limit = (self.server.data / "data.mdb").stat().st_size + 4096 * pages
        # A reserve cannot help a call that fails at random on a disk with room.
        self.server.filler.begin(expects_relief=not issubclass(self.ending, FailingDisk))

    def end(self):
        self.server.filler.end()
        if self.ballast:
            self.ballast.unlink()
        self.server.control.size_limit = 0


class WrongClock(Condition):
    name = "clock step"
    steps = (-3 * HOUR, -HOUR, -5 * MINUTE, -10**6, 10**6, 5 * MINUTE, 2 * HOUR, 15 * DAY, 365 * DAY)

    def begin(self):
        self.server.control.clock_offset_micros = self.choices.choice(self.steps)

    def end(self):
        self.server.control.clock_offset_micros = 0


class WrongClockAtStart(WrongClock):
    """Then nothing in the process shows that the clock is wrong."""
    name = "wrong clock at a start"

    def begin(self):
        self.server.terminate()
        if self.server.wait(DRAIN_SECONDS + 10) is None:
            self.server.kill()
        super().begin()
        self.server.start()


class BlockedLog(Condition):
    name = "blocked log"

    def begin(self):
        self.server.reads_log = False

    def end(self):
        self.server.reads_log = True


class HangingSync(Condition):
    name = "hanging sync"

    def begin(self):
        self.server.control.sync_hangs = 1

    def end(self):
        self.server.control.sync_hangs = 0


class HostilePeers(Condition):
    name = "hostile peers"

    def begin(self):
        self.attackers = Attackers(self.server, self.choices, self.report)

    def end(self):
        self.attackers.end()


CONDITIONS = (WrongClockAtStart, FullDisk, WrongClock, BlockedLog, HangingSync, HostilePeers)


class Ending:
    """The event that ends a phase. `allowed` are exit statuses; None stands for a server that goes on."""
    name, allowed = "nothing", (None,)

    def __init__(self, server, choices, report, conditions):
        self.server, self.choices, self.report = server, choices, report
        self.conditions = [type(condition) for condition in conditions]

    def strike(self):
        """Called while the workers run."""

    def finish(self):
        """Called after the workers ended. Returns the exit status, or None."""
        return self.server.process.poll()


class Kill(Ending):
    name, allowed = "kill -9", (KILLED,)

    def finish(self):
        return self.server.kill()

    def strike(self):
        self.server.kill()


class KillAtWrite(Kill):
    """Kills at one write or sync, before it or in the middle of it."""
    name = "kill at a write"

    def strike(self):
        self.server.control.kill_tears = self.choices.randrange(2)
        self.server.control.kill_countdown = self.choices.randrange(1, 60)
        if self.server.wait(2.0) is None:
            self.server.kill()


class PowerLoss(KillAtWrite):
    name = "power loss"

    def finish(self):
        status = self.server.kill()
        self.report.count("sectors lost with the power", self.server.lose_power(self.choices))
        return status


class Terminate(Ending):
    name = "SIGTERM"

    def strike(self):
        self.server.terminate()
        began = time.monotonic()
        status = self.server.wait(DRAIN_SECONDS + 10)
        if status is None:
            self.report.find(f"SIGTERM did not end the server within {DRAIN_SECONDS + 10} s")
            self.server.kill()
        self.report.count("seconds of draining", int(time.monotonic() - began))

    @property
    def allowed(self):
        return (0, CUT_SHORT) if HangingSync in self.conditions else (0,)


class FailingDisk(Ending):
    """Some calls fail, then no more. The process ends by itself, or all is well again."""
    allowed = (None, STORE_FAILED)

    def strike(self):
        control = self.server.control
        control.write_error = self.choices.choice(self.errors)
        before = control.fault_count
        setattr(control, self.field, self.choices.choice((1, 1, 2, 5)))
        self.server.wait(1.0)
        setattr(control, self.field, 0)
        if control.fault_count > before:
            self.wait_for_outcome(time.monotonic() + 15)

    def wait_for_outcome(self, end):
        """Waits until the server ends, or writes work."""
        caller = Caller(self.server, self.report)
        while self.server.wait(0.2) is None and time.monotonic() < end:
            try:
                caller.call("Tenants/Update", tenant_id="torture-0", tenant={"display_name": "works"},
                            update_mask={"paths": ["display_name"]})
                break
            except (Refused, Unknown):
                pass
        caller.close()


class WriteError(FailingDisk):
    name, field, errors = "failing write", "write_error_count", (errno.EIO, errno.ENOSPC, errno.EDQUOT)


class MetaError(FailingDisk):
    name, field, errors = "failing meta page", "meta_error_count", (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT)


class ShortWrite(FailingDisk):
    name, field, errors = "short write", "short_write_count", (0,)


class SyncError(FailingDisk):
    name, field, errors = "failing sync", "sync_error_count", (errno.EIO,)

    def strike(self):
        before = self.server.control.lost_sync_count
        super().strike()
        # On a full disk an EIO is taken for a short write: see docs/decisions/0030.
        if FullDisk in self.conditions:
            return
        if self.server.control.lost_sync_count > before and self.server.wait(10.0) is None:
            self.report.find("a failed sync did not end the process: later ones would claim success")


ENDINGS = ((Ending, 2), (Kill, 4), (KillAtWrite, 5), (PowerLoss, 5), (Terminate, 3), (WriteError, 1), (MetaError, 1),
           (ShortWrite, 1), (SyncError, 1))
