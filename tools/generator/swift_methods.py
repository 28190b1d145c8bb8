"""Sources/Service/Generated/Methods.swift: every method's descriptor, and the list of all handlers.
Tests/ServerTests/Generated/MethodRows.swift: every method's row in the table of who may call it."""

from pathlib import Path

from .naming import escaped, lower_first
from .swift_values import COLUMNS, doc_lines, header


def write(schema, folder):
    folder = Path(folder)
    folder.mkdir(parents=True)
    services = [s for f in schema.files for s in f.services]
    lines = header("the services in proto/", ["import Messages"])
    lines.append("extension MethodDescriptor {")
    for service in services:
        for method in service.methods:
            lines += [*_descriptor(service, method), ""]
    lines[-1] = "}"
    lines += ["", "/// Every method with its handler; the handler of Users.Get is the type UsersGet.",
              "func registerAll(_ registry: inout Registry) {"]
    for service in services:
        for method in service.methods:
            name = service.name + method.name
            lines.append(f"    registry.register({name}.self, .{lower_first(name)})")
    (folder / "Methods.swift").write_text("\n".join([*lines, "}", ""]))


def write_rows(schema, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = header("the services in proto/", [])[:-1]
    lines += ["extension MethodTable {", "    /// The rows that tests declare, by the full names of the methods.",
              "    static let all: [String: Row] = ["]
    for service in (s for f in schema.files for s in f.services):
        lines += [f'        "{service.full_name}/{method.name}": {lower_first(service.name + method.name)},'
                  for method in service.methods]
    (folder / "MethodRows.swift").write_text("\n".join([*lines, "    ]", "}", ""]))


def _descriptor(service, method):
    arguments = [
        f'service: "{service.full_name}"', f'method: "{method.name}"',
        f"requestStreaming: {str(method.client_streaming).lower()}",
        f"responseStreaming: {str(method.server_streaming).lower()}",
        *[f"{name}: {literal}" for name, literal in method.rule],
    ]
    lines = [*doc_lines(method.doc, "    ")]
    lines.append(f"    static let {escaped(lower_first(service.name + method.name))} = MethodDescriptor(")
    row = "       "
    for index, argument in enumerate(arguments):
        piece = f" {argument}" + ("," if index + 1 < len(arguments) else ")")
        if len(row) + len(piece) > COLUMNS:
            lines.append(row)
            row = "       "
        row += piece
    return [*lines, row]
