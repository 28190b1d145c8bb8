"""The programs that are packaged."""
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "tools/deploy"
NAMES = {"posternd": "usr/sbin", "postern": "usr/bin"}


def build():
    """The folder with a release build that needs no Swift on the machine where it runs."""
    return Path(output_of([ROOT / "tools/release", *NAMES]))


def output_of(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout.strip()


def install(folder, root):
    """Puts the programs under `root`, stripped."""
    for name, place in NAMES.items():
        (root / place).mkdir(parents=True, exist_ok=True)
        target = root / place / name
        subprocess.run(["strip", "-o", target, folder / name], check=True)
        target.chmod(0o755)


def version(folder):
    """The version in what the server prints: "posternd 0.1.0"."""
    return output_of([folder / "posternd", "--version"]).split()[1]
