"""Sources/Identity/Generated/SignInMethodName.swift: a name for each file in Sources/Identity/Accounts/SignIn/Methods.
Tests/ServerTests/Generated/SignInMethods.swift: the method of each name, for the tests' tables."""

from pathlib import Path

from .naming import lower_first
from .swift_values import header

FOLDER = "Sources/Identity/Accounts/SignIn/Methods"


def write_names(_schema, folder):
    lines = header(f"the files in {FOLDER}", [])[:-1]
    lines += [
        f"/// The ways to sign in: one for each file in {FOLDER}.",
        "public enum SignInMethodName: String, CaseIterable, Sendable {",
        *[f"    case {lower_first(name)}" for name in _types()],
        "}",
    ]
    _write(folder, "SignInMethodName.swift", lines)


def write_methods(_schema, folder):
    lines = header(f"the files in {FOLDER}", ["import Identity"])
    lines += [
        "extension SignInMethodName {",
        "    /// The method of this name.",
        "    var method: any SignInMethod.Type {",
        "        switch self {",
        *[f"        case .{lower_first(name)}: {name}.self" for name in _types()],
        "        }",
        "    }",
        "}",
    ]
    _write(folder, "SignInMethods.swift", lines)


def _types():
    return sorted(path.stem for path in (Path(__file__).resolve().parents[2] / FOLDER).glob("*.swift"))


def _write(folder, name, lines):
    folder = Path(folder)
    folder.mkdir(parents=True)
    (folder / name).write_text("\n".join([*lines, ""]))
