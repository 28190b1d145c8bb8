"""Makes postern/v1 from the repository's proto/public: `python3 make_stubs.py [FOLDER WITH THE PROTO FILES]`.

Stubs are made where they are used, by the compiler of grpcio-tools, or else by protoc, because generated code has to fit
the protobuf that it runs with.
"""
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STUBS = HERE / "postern" / "v1"
#: What the package needs, for pip: pyproject.toml names this file.
REQUIREMENTS = HERE / "requirements.txt"


def make(proto=HERE.parent.parent / "proto" / "public"):
    """Writes postern/v1/*_pb2.py and their type hints. With grpcio-tools it also writes *_pb2_grpc.py: the package does not
    use these, but a program that calls with the stubs of gRPC finds them in no other package. Without the proto files, as
    in an sdist, the present stubs stay."""
    if not proto.is_dir():
        if any(STUBS.glob("*_pb2.py")):
            return write_requirements()
        sys.exit(f"{proto} is missing: build from a checkout")
    compiler, stubs = ["protoc", "-I/usr/include"], []
    if importlib.util.find_spec("grpc_tools"):
        import grpc_tools

        compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{Path(grpc_tools.__file__).parent / '_proto'}"]
        stubs = [f"--grpc_python_out={HERE}"]
    elif not shutil.which("protoc"):
        sys.exit("neither grpcio-tools nor protoc is installed")
    files = sorted(str(path.relative_to(proto)) for path in proto.rglob("*.proto"))
    subprocess.run([*compiler, f"-I{proto}", f"--python_out={HERE}", f"--pyi_out={HERE}", *stubs, *files], check=True)
    (STUBS / "__init__.py").write_text('"""The messages of postern.v1, made from proto/public."""\n')
    write_requirements()


def write_requirements():
    """Writes REQUIREMENTS. Stubs refuse a protobuf and a grpcio that are older than what made them, which they name;
    stubs of Debian 12 name nothing."""
    def made_by(pattern, suffix, otherwise):
        found = [re.search(pattern, path.read_text(), re.MULTILINE) for path in STUBS.glob(f"*{suffix}.py")]
        return next((match[1] for match in found if match), otherwise)

    protobuf = made_by(r"^# Protobuf Python Version: ([\d.]+)$", "_pb2", "4.21")
    grpcio = made_by(r"^GRPC_GENERATED_VERSION = '([\d.]+)'$", "_pb2_grpc", "1.51")
    REQUIREMENTS.write_text(f"grpcio>={grpcio}\nprotobuf>={protobuf}\ncryptography>=38\n")


if __name__ == "__main__":
    make(*(Path(argument) for argument in sys.argv[1:2]))
