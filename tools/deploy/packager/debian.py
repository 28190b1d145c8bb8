"""The Debian package."""
import gzip
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import manual
from .programs import DEPLOY, ROOT, install, output_of, version

CONTROL = """Package: postern
Version: {version}
Architecture: {architecture}
Maintainer: Postern <postern@localhost>
Section: net
Priority: optional
Depends: adduser, {libraries}
Installed-Size: {kilobytes}
Description: multi-tenant authentication server
 Keeps the accounts of internal back ends' users, proves who somebody is, and hands out signed tokens: what Firebase
 Authentication and Identity Platform do, over a binary RPC. One process and one embedded database.
 .
 The package has the server (posternd), the command line tool (postern) and a systemd unit.
"""


def build(folder, output, release=None, quick=False):
    """Makes the package and returns its path. `release` is added to the version, for an upgrade. `quick` makes a package
    that is not compressed, to look into."""
    full_version = version(folder) + (f"+{release}" if release else "")
    architecture = output_of(["dpkg", "--print-architecture"])
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        install(folder, root)
        put_files(root)
        for command, section in (("posternd", 8), ("postern", 1)):
            put(root / f"usr/share/man/man{section}/{command}.{section}.gz",
                gzip.compress(manual.page(folder / command, command, section, full_version).encode(), mtime=0))
        for command in output_of([folder / "postern", "help", "commands"]).splitlines():
            put(root / f"usr/share/man/man1/postern-{command.replace(' ', '-')}.1.gz",
                gzip.compress(manual.command_page(folder / "postern", command, full_version).encode(), mtime=0))
        for shell, path in (("bash", "bash-completion/completions/postern"), ("zsh", "zsh/vendor-completions/_postern"),
                            ("fish", "fish/vendor_completions.d/postern.fish")):
            put(root / "usr/share" / path, output_of([folder / "postern", "completion", shell]).encode() + b"\n")
        control = root / "DEBIAN"
        control.mkdir()
        for script in ("postinst", "prerm", "postrm"):
            shutil.copy(DEPLOY / "debian" / script, control / script)
            (control / script).chmod(0o755)
        (control / "conffiles").write_text("/etc/postern/posternd.json\n")
        kilobytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
        (control / "control").write_text(CONTROL.format(
            version=full_version, architecture=architecture, kilobytes=kilobytes, libraries=libraries(root, scratch)))
        package = output / f"postern_{full_version}_{architecture}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", "-Znone" if quick else "-Zxz", root, package],
                       check=True, stdout=subprocess.DEVNULL)
    return package


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


def put_files(root):
    documentation = root / "usr/share/doc/postern"
    put(root / "etc/postern/posternd.json", (DEPLOY / "debian/posternd.json").read_bytes())
    put(root / "lib/systemd/system/postern.service", (DEPLOY / "systemd/postern.service").read_bytes())
    put(documentation / "copyright", (DEPLOY / "debian/copyright").read_bytes())
    put(documentation / "changelog.gz", gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0))
    put(documentation / "alerts.yml", (DEPLOY / "prometheus/alerts.yml").read_bytes())
    for path in root.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def libraries(root, scratch):
    """The packages of the shared libraries, with the versions they need."""
    work = Path(scratch) / "source"
    (work / "debian").mkdir(parents=True)
    (work / "debian/control").write_text("Source: postern\n\nPackage: postern\nArchitecture: any\n")
    found = output_of(
        ["dpkg-shlibdeps", "-O", *(f"-e{path}" for path in (root / "usr/sbin/posternd", root / "usr/bin/postern"))],
        cwd=work, stderr=subprocess.DEVNULL)
    return next(line.partition("=")[2] for line in found.splitlines() if line.startswith("shlibs:Depends="))
