"""The programs that are packaged."""
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "tools/deploy"
NAMES = {"posternd": "usr/sbin", "postern": "usr/bin"}


def build():
    """The folder with a release build that needs no Swift on the machine where it runs."""
    command = ["swift", "build", "-c", "release", "--static-swift-stdlib"]
    for name in NAMES:
        subprocess.run([*command, "--product", name], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return Path(output_of([*command, "--show-bin-path"], cwd=ROOT))


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
    """As the server says it: "posternd 0.1.0"."""
    return output_of([folder / "posternd", "--version"]).split()[1]
