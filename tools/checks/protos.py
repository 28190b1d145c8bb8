#!/usr/bin/python3
"""Checks that proto/public, the .proto files for clients in other languages, compiles with stock tools: with protoc for
each language that it brings, and with grpc_tools where it is installed. tools/generate checks that the copies are current.
"""
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "proto" / "public"
LANGUAGES = ["cpp", "csharp", "java", "kotlin", "objc", "php", "pyi", "python", "ruby"]


def main():
    files = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.proto"))
    if not files:
        sys.exit("proto/public is empty")
    compile_with(["protoc"], [f"--{language}_out" for language in LANGUAGES], files)
    tools = "protoc"
    if importlib.util.find_spec("grpc_tools"):
        compile_with([sys.executable, "-m", "grpc_tools.protoc"], ["--python_out", "--grpc_python_out"], files)
        tools += " and grpc_tools"
    print(f"{len(files)} files, {len(LANGUAGES)} languages, {tools}")


def compile_with(command, outputs, files):
    """Makes all outputs in one run, because a run reads all files first. Each output gets a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        made = {output: Path(scratch) / output.strip("-") for output in outputs}
        for folder in made.values():
            folder.mkdir()
        # Only proto/public and the files that protoc brings itself can be imported.
        done = subprocess.run([*command, f"-I{FOLDER}", "-I/usr/include",
                               *(f"{output}={folder}" for output, folder in made.items()), *files],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode or done.stderr:
            sys.exit(f"{' '.join(command)} {' '.join(outputs)}: {done.stderr}")
        for output, folder in made.items():
            if not any(path.is_file() for path in folder.rglob("*")):
                sys.exit(f"{output}: nothing was made")


if __name__ == "__main__":
    main()
