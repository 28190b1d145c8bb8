"""The image for containers: the programs and the libraries they need, nothing else, not even a shell."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import debian, trial
from .programs import DEPLOY, install, version

USER = 65532
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\npostern:x:{USER}:{USER}:Postern:/var/lib/postern:/sbin/nologin\n"
GROUP = f"root:x:0:\npostern:x:{USER}:\n"


def build(folder, output):
    """Makes the image and returns its archive, for `podman load` or `docker load`.

    Docker's format, because OCI's has no health check; every runtime of OCI images takes it.
    """
    if os.geteuid() != 0:
        sys.exit("package: an image needs root")
    release = version(folder)
    archive = output / f"postern_{release}_image.tar"
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="postern-image-") as scratch:
        root = Path(scratch) / "root"
        make_root(folder, root, scratch)

        def buildah(*command):
            return subprocess.run(
                ["buildah", "--storage-driver", "vfs", "--root", f"{scratch}/storage", "--runroot", f"{scratch}/run",
                 *command], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

        container = buildah("from", "scratch")
        buildah("copy", "-q", container, str(root), "/")
        buildah("copy", "-q", "--chown", f"{USER}:{USER}", "--chmod", "0700", container, str(empty(scratch)),
                "/var/lib/postern")
        buildah("config", "--user", f"{USER}:{USER}", "--env", "SWIFT_BACKTRACE=enable=no", "--volume",
                "/var/lib/postern", "--port", "7400", "--port", "7401", "--stop-signal", "SIGTERM", "--entrypoint",
                '["/usr/sbin/posternd", "--config", "/etc/postern/posternd.json"]', "--cmd", "", "--healthcheck",
                'CMD ["/usr/bin/postern", "--quiet", "server", "health"]', "--healthcheck-interval", "10s",
                "--label", f"org.opencontainers.image.version={release}", "--label",
                "org.opencontainers.image.title=Postern", container)
        buildah("commit", "-q", "--format", "docker", container, f"docker-archive:{archive}:postern:{release}")
    return archive


def empty(scratch):
    folder = Path(scratch) / "empty"
    folder.mkdir()
    return folder


def make_root(folder, root, scratch):
    programs = Path(scratch) / "programs"
    install(folder, programs)
    needed = re.sub(r"\s*\([^)]*\)", "", debian.libraries(programs, scratch)).replace(" ", "")
    trial.debootstrap(root, "--variant=extract", f"--include={needed}")
    for unused in [*root.glob("usr/lib/*/gconv"), *root.glob("usr/share/doc/*/changelog*")]:
        shutil.rmtree(unused) if unused.is_dir() else unused.unlink(missing_ok=True)
    install(folder, root)
    debian.put(root / "etc/postern/posternd.json", (DEPLOY / "debian/posternd.json").read_bytes())
    debian.put(root / "etc/passwd", PASSWD.encode())
    debian.put(root / "etc/group", GROUP.encode())
    # The authorities that sign the certificates of identity providers and mail servers.
    debian.put(root / "etc/ssl/certs/ca-certificates.crt", Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
