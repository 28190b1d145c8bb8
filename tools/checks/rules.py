#!/usr/bin/python3
"""Runs the examples in the comments of the tools' Python: the doctests of every file in tools/ that has some.

The interpreter is Debian's, because it has the protobuf module that tools/generator needs.
"""
import doctest
import importlib
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[1]
# What others import by its name alone.
sys.path[:0] = [str(TOOLS / "checks"), str(TOOLS / "peers")]


def has_examples(text, is_python):
    """Whether a file is Python and has examples. A script without a suffix is Python if its first line says so.

    >>> [has_examples(text, False) for text in ("#!/usr/bin/env python3\\n>>> 1\\n", "#!/bin/sh\\n>>> 1\\n")]
    [True, False]
    """
    return (is_python or text.partition("\n")[0].endswith("python3")) and ">>> " in text


def module(path):
    """The module of a file, under the name by which others import it: doctest finds nothing in a second copy of it."""
    if not path.suffix:
        made = module_from_spec(spec_from_loader(path.name, SourceFileLoader(path.name, str(path))))
        made.__loader__.exec_module(made)
        return made
    root, name = path.parent, path.stem
    while (root / "__init__.py").exists():
        root, name = root.parent, f"{root.name}.{name}"
    sys.path.insert(0, str(root))
    return importlib.import_module(name)


def main():
    failed = False
    for path in sorted(TOOLS.rglob("*")):
        if path.suffix not in (".py", "") or not path.is_file():
            continue
        if not has_examples(path.read_text(), path.suffix == ".py"):
            continue
        found = module(path)
        result = doctest.testmod(found)
        failed |= result.failed > 0
        if result.attempted == 0 or not path.samefile(found.__file__):
            print(f"{path.relative_to(TOOLS.parent)}: doctest does not find its examples")
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
