"""One posternd under torture: started with faults.c preloaded, fed, hurt and ended."""
import ctypes
import fcntl
import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from .client import ClientError, connect

READY_SECONDS, DRAIN_SECONDS = 60, 5
KILLED = -signal.SIGKILL


class Control(ctypes.Structure):
    """`struct control` of faults.c, mapped into the server as well."""
    _fields_ = [(name, ctypes.c_int64) for name in (
        "clock_offset_micros", "size_limit", "write_error", "write_error_count", "meta_error_count",
        "short_write_count", "sync_error_count", "sync_hangs", "kill_countdown", "kill_tears", "write_count",
        "sync_count", "fault_count", "lost_sync_count")]

    def heal(self):
        """Ends every fault; the counts stay."""
        for name, _ in self._fields_[:10]:
            setattr(self, name, 0)


class DidNotStart(Exception):
    """Carries the server's exit status, or None if it hangs."""


class Server:
    def __init__(self, program, shim, folder, disk=None, settings=()):
        """`disk`: a small file system for this server alone. If it is None, the data lies in `folder`."""
        self.program, self.shim, self.folder, self.settings = program, shim, Path(folder), list(settings)
        self.disk, self.data, self.journal = disk, Path(disk or folder) / "data", self.folder / "journal"
        self.log_path, self.process, self.reads_log = self.folder / "log", None, True
        self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.journal.mkdir(parents=True, exist_ok=True)
        path = self.folder / "control"
        path.write_bytes(bytes(ctypes.sizeof(Control)))
        with open(path, "r+b") as file:
            self.mapping = mmap.mmap(file.fileno(), 0)
        self.control = Control.from_buffer(self.mapping)
        self.address, self.http_port = f"127.0.0.1:{free_port()}", free_port()

    @property
    def key(self):
        return (self.data / "admin-key").read_text().strip()

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def start(self, waits=True):
        """Returns when the server serves, or at once if it need not wait. Raises DidNotStart."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")}
        environment |= {"LD_PRELOAD": str(self.shim), "TORTURE_CONTROL": str(self.folder / "control"),
                        "TORTURE_DIRECTORY": str(self.data), "TORTURE_JOURNAL": str(self.journal),
                        "SWIFT_BACKTRACE": "enable=no"}
        command = [str(self.program), "--data-directory", str(self.data), "--listen-address", self.address,
                   "--http-address", f"127.0.0.1:{self.http_port}", "--drain-timeout-seconds", str(DRAIN_SECONDS)]
        self.reads_log = True
        reading, writing = os.pipe()
        fcntl.fcntl(writing, 1031, 4096)  # F_SETPIPE_SZ: a log that nobody reads is full soon
        self.process = subprocess.Popen(command + self.settings, stdin=subprocess.DEVNULL, stdout=writing,
                                        stderr=writing, env=environment, start_new_session=True)
        os.close(writing)
        threading.Thread(target=self._copy_log, args=(reading,), daemon=True).start()
        deadline = time.monotonic() + READY_SECONDS
        while waits:
            if self.process.poll() is not None:
                raise DidNotStart(self.process.returncode)
            try:
                connect(self.address, self.key).call("grpc.health.v1.Health/Check", timeout=5.0)
                return
            except (ClientError, OSError):
                pass
            if time.monotonic() > deadline:
                raise DidNotStart(None)
            time.sleep(0.02)

    def _copy_log(self, reading):
        with open(self.log_path, "ab") as log, open(reading, "rb", buffering=0) as pipe:
            while True:
                while not self.reads_log:
                    time.sleep(0.01)
                if not (chunk := pipe.read(4096)):
                    return
                log.write(chunk)
                log.flush()

    def wait(self, seconds):
        """The exit status, or None when the server still runs then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        if self.is_running:
            self.process.kill()
        return self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def lose_power(self, choices):
        """Takes back a part of what a dead server wrote and never synced, in pieces of a sector."""
        lost, choices = 0, seeded(choices.random())  # what comes later must not depend on how much there is to lose
        for log in sorted(self.journal.iterdir()):
            entries, data = [], log.read_bytes()
            while len(data) >= 16:
                offset, count = struct.unpack_from("<QQ", data)
                entries.append((offset, data[16:16 + count]))
                data = data[16 + count:]
            path = self.data / log.name
            if not path.exists():
                continue
            chance = choices.choice((0.1, 0.5, 0.9, 1.0))
            with open(path, "r+b") as file:
                for offset, old in reversed(entries):
                    for start in range(0, len(old), 512):
                        if choices.random() < chance:
                            file.seek(offset + start)
                            file.write(old[start:start + 512])
                            lost += 1
        self.forget_journal()
        return lost

    def forget_journal(self):
        for log in self.journal.iterdir():
            log.unlink()

    def healthz(self):
        """The HTTP status and the body of /healthz."""
        try:
            with socket.create_connection(("127.0.0.1", self.http_port), 5) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b""
                while chunk := connection.recv(65536):
                    answer += chunk
            head, _, body = answer.partition(b"\r\n\r\n")
            return int(head.split()[1]), body.decode()
        except (OSError, ValueError, IndexError) as error:
            return 0, str(error)

    def log_tail(self, count=15):
        lines = self.log_path.read_text(errors="replace").splitlines() if self.log_path.exists() else []
        return "\n".join(lines[-count:])

    def memory(self):
        """Bytes of anonymous memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        return 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def build_shim(folder):
    """Compiles faults.c into `folder`."""
    source, library = Path(__file__).with_name("faults.c"), Path(folder) / "faults.so"
    compiler = next((name for name in ("cc", "clang", "gcc") if shutil.which(name)), None)
    if not compiler:
        raise SystemExit("torture: there is no C compiler")
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"],
                   check=True)
    return library


def seeded(*parts):
    """A random generator of its own for each use, so that no use depends on how the others went."""
    return random.Random(":".join(map(str, parts)))
