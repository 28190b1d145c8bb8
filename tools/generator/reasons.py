"""Everything that is made from the reasons in proto/postern/v1/reasons.proto: the constants that the server throws with,
the codes that PosternAuth shows for them, and the table in docs/protocol.md."""

import re
import textwrap
from pathlib import Path

from .naming import escaped, lower_camel
from .swift_values import header

SOURCE = "proto/postern/v1/reasons.proto"
AUTH_CODES = "Sources/PosternAuth/AuthErrorCode.swift"
ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN = "<!-- Reasons: made by tools/generate from proto/postern/v1/reasons.proto. -->\n"
END = "<!-- End of the reasons. -->\n"


def write_constants(schema, folder):
    """Sources/Base/Generated: gRPC's status codes; the reasons, their names on the wire and their statuses."""
    _write_statuses(schema.statuses, folder)
    lines = header(SOURCE, [])[:-1]
    lines += ["/// Why a call was refused: `Failure.reason` and `ErrorInfo.reason` are `name`.",
              "public enum Reason: Int32, Sendable, CaseIterable {"]
    for reason in schema.reasons:
        lines += [f"    /// {line}" for line in textwrap.wrap(reason.doc, 110, break_on_hyphens=False)]
        lines.append(f"    case {escaped(reason.swift_name)} = {reason.number}")
    lines += ["}", "", "extension Reason {", "    /// What travels.", "    public var name: String {",
              "        switch self {"]
    lines += [f'        case .{reason.swift_name}: "{reason.name}"' for reason in schema.reasons]
    lines += ["        }", "    }", "", "    /// The status that the reason usually comes with.",
              "    public var status: StatusCode {", "        switch self {"]
    lines += _grouped(schema.reasons, lambda reason: lower_camel(reason.statuses[0][1]))
    lines += ["        }", "    }", "", "    /// Nil for a name that is not in the list: a newer server's.",
              "    public init?(name: String) {", "        guard let reason = Self.byName[name] else { return nil }",
              "        self = reason", "    }", "",
              "    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })", "}"]
    _save(folder, "Reason.swift", lines)


def _write_statuses(statuses, folder):
    lines = header(SOURCE, [])[:-1]
    lines += ["/// gRPC's status codes, by number (google.rpc.Code).",
              "public enum StatusCode: Int32, Sendable, CaseIterable {"]
    lines += [f"    case {escaped(lower_camel(name))} = {number}" for number, name in statuses]
    lines += ["", "    /// The name as logs, metrics and the CLI write it: `PERMISSION_DENIED`.", "    public var name: String {",
              "        switch self {"]
    lines += [f'        case .{lower_camel(name)}: "{name}"' for _, name in statuses]
    _save(folder, "StatusCode.swift", [*lines, "        }", "    }", "}"])


def write_auth_codes(schema, folder):
    """Sources/PosternAuth/Generated: FirebaseAuth's code of a reason."""
    lines = header(SOURCE, ["import Base"])
    lines += ["extension AuthErrorCode {", "    /// Nil where the status decides.", "    init?(_ reason: Reason) {",
              "        let code: AuthErrorCode? =", "            switch reason {"]
    known = [reason for reason in schema.reasons if reason.auth_code]
    lines += _grouped(known, lambda reason: reason.auth_code, "            ")
    lines += ["            default: nil", "            }", "        guard let code else { return nil }",
              "        self = code", "    }", "}"]
    _save(folder, "AuthErrorCode+Reason.swift", lines)


def write_auth_names(_schema, folder):
    """Sources/PosternAuth/Generated: the names of the codes, as AuthErrorCode.swift declares them."""
    text = (ROOT / AUTH_CODES).read_text()
    declared = re.findall(r"public static let (\w+) = AuthErrorCode\((\d+)\)", text)
    lines = header(AUTH_CODES, [])[:-1]
    lines += ["extension AuthErrorCode {", "    static let names: [Int: String] = ["]
    lines += [f'        {number}: "{name}",' for name, number in declared]
    _save(folder, "AuthErrorCode+Names.swift", [*lines, "    ]", "}"])


def with_table(schema, page):
    """The page with the table of all reasons between the two marks."""
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:start] + "\n" + _table(schema.reasons) + "\n" + page[end:]


def _table(reasons):
    rows = ["| reason | status | what happened, and what to do |", "|---|---|---|"]
    for reason in sorted(reasons, key=lambda reason: (reason.client_only, reason.name)):
        statuses = ", ".join(f"{number} {name}" for number, name in reason.statuses)
        made = "In the client libraries. " if reason.client_only else ""
        rows.append(f"| `{reason.name}` | {statuses} | {made}{reason.doc} |")
    return "\n".join(rows) + "\n"


def _grouped(reasons, key, indent="        "):
    """The cases of a switch, with those that have the same result together."""
    groups = {}
    for reason in reasons:
        groups.setdefault(key(reason), []).append(reason)
    for result, members in groups.items():
        names = ", ".join(f".{reason.swift_name}" for reason in members)
        rows = textwrap.wrap(names, 108, break_on_hyphens=False)
        yield f"{indent}case {rows[0]}" + ("" if len(rows) > 1 else ":")
        for index, row in enumerate(rows[1:], 2):
            yield f"{indent}    {row}" + ("" if index < len(rows) else ":")
        yield f"{indent}    .{result}"


def _save(folder, name, lines):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")
