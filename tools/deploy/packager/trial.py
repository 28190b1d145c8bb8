"""Installs, uses, upgrades, removes and purges the package in a clean Debian root."""
import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from . import debian
from .programs import DEPLOY


def run(folder, output):
    if os.geteuid() != 0:
        sys.exit("package: a clean root needs root")
    first, second = debian.build(folder, output), debian.build(folder, output, release="upgrade")
    with tempfile.TemporaryDirectory(prefix="postern-root-") as scratch:
        root = Path(scratch)
        try:
            clean_root(root)
            steps(root, first, second)
        finally:
            subprocess.run(["umount", "-q", root / "proc"], check=False)
    print(f"package: {first.name} was installed, used, upgraded, removed and purged")


def clean_root(root):
    debootstrap(root, "--variant=minbase", "--include=adduser")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    in_root(root, "apt-get", "update", "-qq")


def debootstrap(root, *options):
    """A Debian of this machine's release, from the sources that this machine uses."""
    sources = "\n".join(path.read_text() for path in Path("/etc/apt").glob("sources.list*/*.sources"))
    sources += Path("/etc/apt/sources.list").read_text() if Path("/etc/apt/sources.list").exists() else ""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    subprocess.run(["mmdebstrap", "--quiet", *options, release["VERSION_CODENAME"], root, "-"], input=sources, text=True,
                   check=True, stdout=subprocess.DEVNULL)


def steps(root, first, second):
    apt(root, "install", first)
    mode = (root / "var/lib/postern").stat().st_mode & 0o777
    expect(mode == 0o700, f"the data directory has mode {mode:o}")
    expect(not in_root(root, "ldd", "/usr/sbin/posternd").count("not found"), "a library is missing")
    in_root(root, "bash", "-n", "/usr/share/bash-completion/completions/postern")
    for page in ("man8/posternd.8.gz", "man1/postern.1.gz", "man1/postern-user-import.1.gz"):
        expect((root / "usr/share/man" / page).exists(), f"no {page}")
    with serving(root) as postern:
        postern("tenant", "create", "acme")
        postern("--tenant", "acme", "user", "create", "--email", "ann@example.com")
    apt(root, "install", second)
    with serving(root) as postern:
        expect("ann@example.com" in postern("--tenant", "acme", "user", "list"), "the upgrade lost a user")
    apt(root, "remove", "postern")
    expect(not (root / "usr/sbin/posternd").exists(), "removing left the server")
    expect((root / "var/lib/postern/data.mdb").exists(), "removing took the accounts")
    expect((root / "etc/postern/posternd.json").exists(), "removing took the settings")
    apt(root, "install", second)
    with serving(root) as postern:
        expect("ann@example.com" in postern("--tenant", "acme", "user", "list"), "a removal lost a user")
    # As systemd makes it, for the access log.
    (root / "var/log/postern").mkdir()
    apt(root, "purge", "postern")
    for left in ("var/lib/postern", "var/log/postern", "etc/postern/posternd.json", "usr/bin/postern"):
        expect(not (root / left).exists(), f"purging left /{left}")
    expect("postern" not in in_root(root, "getent", "passwd"), "purging left the user")


@contextlib.contextmanager
def serving(root):
    """The server, started as the unit starts it; yields a function that runs `postern` against it."""
    rpc, http = free_port(), free_port()
    command = unit_setting("ExecStart")
    user = unit_setting("User")
    variables = [unit_setting("Environment"), f"POSTERN_LISTEN_ADDRESS=127.0.0.1:{rpc}",
                 f"POSTERN_HTTP_ADDRESS=127.0.0.1:{http}"]
    process = subprocess.Popen(
        ["chroot", root, "setpriv", "--reuid", user, "--regid", unit_setting("Group"), "--clear-groups",
         "--no-new-privs", "env", *variables, *shlex.split(command)], stderr=subprocess.PIPE, text=True)
    try:
        wait_until_ready(process, http)
        yield lambda *arguments: in_root(
            root, "postern", "--server", f"127.0.0.1:{rpc}", "--key-file", "/var/lib/postern/admin-key", *arguments)
        process.send_signal(signal.SIGTERM)
        expect(process.wait(timeout=30) == 0, f"the server ended with {process.returncode}")
    finally:
        process.kill()
        process.communicate()


def wait_until_ready(process, http):
    for _ in range(300):
        if process.poll() is not None:
            sys.exit(f"package: the server did not start: {process.stderr.read()}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{http}/readyz", timeout=5) as answer:
            return expect(answer.status == 200, "the server is not ready")
        time.sleep(0.1)
    sys.exit("package: the server is not ready after 30 seconds")


def unit_setting(name):
    lines = (DEPLOY / "systemd/postern.service").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith(f"{name}="))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def apt(root, action, package):
    if isinstance(package, Path):
        shutil.copy(package, root / "root")
        package = f"/root/{package.name}"
    in_root(root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", action, "-qq", "--yes", "--no-install-recommends",
            package)


def in_root(root, *command):
    done = subprocess.run(["chroot", root, *command], text=True, capture_output=True)
    expect(done.returncode == 0, f"{shlex.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def expect(is_true, what):
    if not is_true:
        sys.exit(f"package: {what}")
